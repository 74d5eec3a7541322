"""Progress artifacts of Prefect: made once, changed at most once a second, with the rate."""

from typing import Any

import pytest

import tasks.prefect_progress
from tasks.prefect_progress import prefect_progress


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float, str]]:
    """What would be made and changed, in a task that runs."""
    calls: list[tuple[str, float, str]] = []

    def create(progress: float, description: str) -> str:
        calls.append(("create", progress, description))
        return "id"

    def update(identifier: str, progress: float, description: str) -> None:
        assert identifier == "id"
        calls.append(("update", progress, description))

    class Context:
        @staticmethod
        def get() -> Any:
            return object()

    monkeypatch.setattr(tasks.prefect_progress, "create_progress_artifact", create)
    monkeypatch.setattr(tasks.prefect_progress, "update_progress_artifact", update)
    monkeypatch.setattr(tasks.prefect_progress, "TaskRunContext", Context)
    return calls


def test_rate_and_time_to_go_stand_beside_what_it_is(shown, monkeypatch):
    now = iter([10.0, 10.5, 12.0, 12.0, 12.1])
    monkeypatch.setattr("tasks.prefect_progress.time.monotonic", lambda: next(now))
    with prefect_progress("image hog") as show:
        show(0.1, "61 a second, 0:30 to go")
        show(0.2, "too soon")
        show(0.3, "60 a second, 0:25 to go")
        show(1.0)
    assert shown == [
        ("create", 10.0, "image hog: 61 a second, 0:30 to go"),
        ("update", 30.0, "image hog: 60 a second, 0:25 to go"),
        ("update", 100.0, "image hog"),
    ]


def test_nothing_is_made_outside_a_task(shown, monkeypatch):
    monkeypatch.setattr(
        tasks.prefect_progress,
        "TaskRunContext",
        type("None", (), {"get": staticmethod(lambda: None)}),
    )
    with prefect_progress("image hog") as show:
        show(0.5, "61 a second")
    assert shown == []
