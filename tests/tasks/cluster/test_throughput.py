"""Rates, time to go and stragglers, by a clock of its own."""

import pytest

from tasks.cluster.throughput import Throughput
from tasks.workers.blocks import BlockReport


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def report(number: int, seconds: float, worker: str, rows: int = 10, peak: int = 1) -> BlockReport:
    return BlockReport(number, rows, 0, seconds, worker, peak)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_rates_are_of_all_workers_and_of_each(clock):
    throughput = Throughput(100, clock)
    assert throughput.seconds_of_a_row is None
    for number in range(3):
        throughput.add(report(number, 5.0, "a"))
    throughput.add(report(3, 10.0, "b"))
    clock.now = 20.0
    assert throughput.rate == pytest.approx(2.0)
    assert throughput.seconds_left == pytest.approx(30.0)
    assert throughput.seconds_of_a_row == pytest.approx(0.5)
    assert str(throughput) == "2 a second, 0:30 to go; each worker 2, 1"
    clock.now = 20_000.0
    assert str(throughput).startswith("0.002 a second, 8:20:00 to go")


def test_notes_are_of_each_worker(clock):
    throughput = Throughput(100, clock)
    throughput.add(report(0, 5.0, "a", peak=7))
    throughput.add(report(1, 3.0, "b", peak=9))
    throughput.add(report(2, 5.0, "a", rows=5, peak=8))
    assert throughput.notes() == {
        "worker_seconds": 13.0,
        "stragglers": 0,
        "workers": {
            "a": {
                "blocks": 2,
                "rows": 15,
                "seconds": 10.0,
                "rows_per_second": 1.5,
                "peak_memory_bytes": 8,
            },
            "b": {
                "blocks": 1,
                "rows": 10,
                "seconds": 3.0,
                "rows_per_second": 3.333,
                "peak_memory_bytes": 9,
            },
        },
    }


@pytest.mark.parametrize(("slow", "expected"), [(2.9, 0), (3.1, 1)])
def test_a_straggler_takes_far_longer_than_most(slow, expected, clock):
    throughput = Throughput(100, clock)
    for number in range(6):
        throughput.add(report(number, 1.0, "a"))
    throughput.add(report(6, slow, "b"))
    assert throughput.stragglers == expected


def test_short_blocks_do_not_straggle(clock):
    throughput = Throughput(100, clock)
    for number in range(6):
        throughput.add(report(number, 0.01, "a"))
    throughput.add(report(6, 0.9, "a"))
    assert throughput.stragglers == 0


def test_nothing_done_is_told_without_a_rate(clock):
    throughput = Throughput(100, clock)
    assert throughput.rate == 0
    assert throughput.seconds_left == float("inf")
    assert throughput.stragglers == 0
