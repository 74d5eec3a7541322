"""What a rehearsal on made pictures says of the whole data set."""

from __future__ import annotations

import pytest

from tests.benchmarks.rehearse_tuberlin import configure, project


@pytest.mark.parametrize(
    ("values", "exponent", "expected"),
    [
        ([3.0, 6.0], 1.0, 42.0),  # 2 + n / 100
        ([3.0, 18.0], 2.0, 1602.0),  # 2 + (n / 100)²
        ([3.0, 2.0], 1.0, 2.0),  # less with more: no growth
        ([0.0, 2.0], 1.0, 20.0),  # no growth is faster than from nothing
    ],
)
def test_projection(values, exponent, expected):
    assert project([100, 400], values, 4000, exponent) == pytest.approx(expected)


@pytest.mark.parametrize("samples", [1000, 224_000])
def test_configuration(samples, tmp_path):
    experiment, classes = configure(samples, ["cprl.alpha=0.5"], tmp_path)
    unseen = set(experiment.protocols["unseen"].split.labels)
    assert unseen < set(classes)
    assert len(classes) == (250 if samples == 224_000 else 22)
    assert experiment.protocols["unseen"].methods["cprl"].model_dump()["alpha"] == 0.5
