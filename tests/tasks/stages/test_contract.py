"""What every stage has in common: the modes, and which failures are tried again."""

import asyncio
from typing import Any

import pytest
from prefect.states import Completed, State, exception_to_failed_state

from cppcl.errors import DataUnavailableError, InputError, PictureError, TooManyBadPicturesError
from storage import DamagedArtifactError, Recipe, StoreAccessError, Writer
from tasks.progress import Progress, listening, log, tell
from tasks.stages.contract import StageNotStoredError, produce, stage_task, worth_a_retry
from tasks.stages.names import DESCRIPTIONS, STAGES


def failed(error: Exception) -> State:
    return asyncio.run(exception_to_failed_state(error))


@pytest.mark.parametrize(
    "error",
    [
        InputError("alpha=-1"),
        PictureError("a.png: truncated"),
        TooManyBadPicturesError("3 of 12"),
        DataUnavailableError("weights"),
        StageNotStoredError("extract"),
        DamagedArtifactError("block 1"),
        ValueError("shape"),
        TypeError("argument"),
        KeyError("name"),
        AttributeError("name"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_wrong_input_is_not_tried_again(error):
    assert not worth_a_retry(None, None, failed(error))


@pytest.mark.parametrize(
    "error",
    [OSError(5, "Input/output error"), ConnectionError("scheduler"), TimeoutError("nfs")],
    ids=lambda error: type(error).__name__,
)
def test_trouble_of_the_machine_is_tried_again(error):
    assert worth_a_retry(None, None, failed(error))


def test_a_full_disk_is_not_tried_again():
    assert not worth_a_retry(None, None, failed(StoreAccessError("disk full")))


def test_a_completed_task_is_not_tried_again():
    assert not worth_a_retry(None, None, Completed(data=1))


def test_task_is_named_cached_only_on_a_hit(workspace):
    recipe = Recipe("split", "1", {"seed": 0})

    def stage(mode: Any = "reuse") -> Any:
        return produce(
            workspace.store, recipe, lambda w: w.put_json("n", 1), mode=mode, label="seed 0"
        )

    task = stage_task(stage)
    assert task.fn().cached is False
    state = task.fn()
    assert (state.name, state.data.cached) == ("Cached", True)
    assert task.fn("force").cached is False
    assert (task.retries, task.persist_result) == (2, False)


def test_failed_computation_publishes_nothing(workspace):
    recipe = Recipe("split", "1", {})

    def create(writer: Writer) -> None:
        writer.put_json("n", 1)
        raise InputError("no")

    with pytest.raises(InputError):
        produce(workspace.store, recipe, create, mode="reuse", label="x")
    assert workspace.store.find(recipe.reference) is None


def test_listeners_hear_only_within_their_block():
    heard: list[Any] = []
    with listening(heard.append, heard.append):
        tell(Progress("train", "cprl", 1, 2))
        log("hello")
    tell(Progress("train", "cprl", 2, 2))
    log("nobody")
    assert heard == [Progress("train", "cprl", 1, 2), "hello"]


def test_every_stage_is_described():
    assert tuple(DESCRIPTIONS) == STAGES
    assert STAGES[0] == "fetch"
    assert STAGES[-1] == "report"
