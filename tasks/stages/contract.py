"""What every task has in common: ask the store, compute, publish, return a reference."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed, State
from prefect.tasks import Task, exponential_backoff

from cppcl.errors import CppclError
from storage import Recipe, Reference, Store, StoreError, Writer
from tasks.progress import Progress, tell

Mode = Literal["reuse", "force", "require"]
"""``reuse`` what is stored, ``force`` a new computation, or ``require`` that it is stored."""


@dataclass(frozen=True)
class StageResult:
    """What a stage left in the store.

    Attributes
    ----------
    reference : Reference
        The artifact.
    cached : bool
        True if it was stored before.
    seconds : float
        Wall time of this call.
    """

    reference: Reference
    cached: bool
    seconds: float


class StageNotStoredError(CppclError):
    """A stage that must have run before has left nothing in the store."""


def produce(
    store: Store, recipe: Recipe, create: Callable[[Writer], None], *, mode: Mode, label: str
) -> StageResult:
    """Take an artifact from the store, or compute and publish it.

    Parameters
    ----------
    store : Store
        Where artifacts are.
    recipe : Recipe
        What it is made from.
    create : callable
        Fills a writer with the artifact.
    mode : {'reuse', 'force', 'require'}
        What to do with a stored artifact.
    label : str
        Which piece of the stage this is, for progress.

    Raises
    ------
    StageNotStoredError
        If ``mode`` is ``require`` and it is not stored.
    """
    started = time.perf_counter()
    if mode == "require":
        if store.find(recipe.reference) is None:
            raise StageNotStoredError(
                f"stage {recipe.stage!r} ({label}) has not been run with these options; "
                f"run it first, or start earlier: --from {recipe.stage}"
            )
        cached = True
    else:
        tell(Progress(recipe.stage, label, 0, 1))
        cached = store.get_or_create(recipe, create, force=mode == "force").cached
    seconds = time.perf_counter() - started
    tell(Progress(recipe.stage, label, 1, 1, cached=cached, seconds=seconds))
    return StageResult(recipe.reference, cached, seconds)


def check_finite(values: NDArray[Any], what: str) -> None:
    """Raise `CppclError` for numbers of a learned thing that are not finite: nothing is stored."""
    if np.issubdtype(values.dtype, np.inexact) and (bad := int((~np.isfinite(values)).sum())):
        raise CppclError(
            f"{what}: {bad} of {values.size} values are not finite, so nothing is stored; look "
            "at the features and the options of what computed them"
        )


def worth_a_retry(task: Any, task_run: Any, state: State) -> bool:
    """True if a failed task may succeed when tried again: not on bad input or damage."""
    try:
        state.result()
    except (CppclError, StoreError, TypeError, ValueError, KeyError, AttributeError):
        return False
    except Exception:
        return True
    return False


PREFECT_OPTIONS: dict[str, Any] = {
    "retries": 2,
    "retry_delay_seconds": exponential_backoff(backoff_factor=2),
    "retry_condition_fn": worth_a_retry,
    "cache_policy": NO_CACHE,
    "persist_result": False,
}
"""Of every task. Prefect's own caching is off: it would call a result cached that is gone."""


def stage_task(function: Callable[..., StageResult]) -> Task[..., StageResult]:
    """Prefect task around a stage; its state is named Cached when the store had the result."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return Completed(name="Cached", data=result) if result.cached else result

    return task(run, name=function.__name__, **PREFECT_OPTIONS)
