"""What is done to runs: kinds of faults, and the acts that they consist of."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import psutil

DELAY_S = 0.2
"""How much later everything arrives, each way, on a slow network."""
PAUSE_S = 3
DROPS = 3


class Struck(NamedTuple):
    """What an act can reach.

    Attributes
    ----------
    pid : int
        Flow process, which leads a session.
    cluster : ForeignCluster or None
        The one that was started for the run.
    rng : random.Random
        For what an act leaves to chance.
    """

    pid: int
    cluster: Any
    rng: random.Random


def kill_group(struck: Struck) -> None:
    os.killpg(struck.pid, signal.SIGKILL)


def kill_flow(struck: Struck) -> None:
    os.kill(struck.pid, signal.SIGKILL)


def stop_flow(struck: Struck) -> None:
    os.kill(struck.pid, signal.SIGTERM)


def kill_worker(struck: Struck) -> None:
    for worker in shared_workers()[:1]:
        worker.kill()


def kill_workers(struck: Struck) -> None:
    for worker in shared_workers():
        worker.kill()


def freeze_worker(struck: Struck) -> None:
    for worker in shared_workers()[:1]:
        worker.suspend()
        time.sleep(PAUSE_S)
        worker.resume()


def freeze_worker_for_good(struck: Struck) -> None:
    for worker in shared_workers()[:1]:
        worker.suspend()


def kill_scheduler(struck: Struck) -> None:
    struck.cluster.processes[0].kill()


def delay(struck: Struck) -> None:
    for cable in (cable for pair in struck.cluster.cables for cable in pair):
        cable.delay(DELAY_S)


def drop(struck: Struck) -> None:
    for _ in range(DROPS):
        for cable in struck.rng.choice(struck.cluster.cables):
            cable.drop()
        time.sleep(struck.rng.uniform(0, 2))


def cut(struck: Struck) -> None:
    cables = struck.rng.choice(struck.cluster.cables)
    for cable in cables:
        cable.cut()
    time.sleep(PAUSE_S)
    for cable in cables:
        cable.join()


def cut_for_good(struck: Struck) -> None:
    for cable in struck.rng.choice(struck.cluster.cables):
        cable.cut()


class Kind(NamedTuple):
    """A kind of fault.

    Attributes
    ----------
    name : str
        What is done.
    act : callable
        Does it.
    cluster : {'shared', 'local', 'foreign', 'cabled'}
        One that outlives the run, one of the run's own, or one that is started for it.
    at_work : bool
        True if it is done in a stage that uses the cluster.
    survived : bool
        True if the run must succeed nevertheless.
    twice : bool
        True if another run of the same experiment goes on beside it.
    """

    name: str
    act: Callable[[Struck], None]
    cluster: str = "shared"
    at_work: bool = False
    survived: bool = False
    twice: bool = False


KINDS = (
    Kind("flow process killed, its cluster goes on", kill_flow),
    Kind("a worker killed", kill_worker, at_work=True, survived=True),
    Kind("flow process killed, with all workers", kill_group, "local"),
    Kind("everything to and from workers 200 ms later", delay, "cabled", True, True),
    Kind("all workers killed", kill_workers, at_work=True, survived=True),
    Kind("run stopped (SIGTERM)", stop_flow),
    Kind("connections of workers dropped, three times", drop, "cabled", True, True),
    Kind("a worker frozen for 3 s", freeze_worker, at_work=True, survived=True),
    Kind("two runs at once, one killed", kill_flow, twice=True),
    Kind("a worker cut off for 3 s", cut, "cabled", True, True),
    Kind("scheduler killed", kill_scheduler, "foreign", at_work=True),
    Kind("a worker frozen for good", freeze_worker_for_good, at_work=True, survived=True),
    Kind("flow process killed, its cluster goes on", kill_flow, at_work=True),
    Kind("a worker killed", kill_worker, at_work=True, survived=True),
    Kind("a worker cut off for good", cut_for_good, "cabled", True, True),
)


def shared_workers() -> list[psutil.Process]:
    """Workers of the cluster that outlives the runs."""
    found = [process for process in psutil.Process().children() if is_worker(process)]
    if not found:
        raise RuntimeError("no worker was found to be struck, so the fault would prove nothing")
    return found


def end_frozen_workers() -> None:
    """End workers that were frozen for good, so that the next fault finds none."""
    for process in psutil.Process().children():
        if is_worker(process) and process.status() == psutil.STATUS_STOPPED:
            process.kill()


def is_worker(process: psutil.Process) -> bool:
    """True if a process is a worker that a nanny started."""
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.Error:
        return False
