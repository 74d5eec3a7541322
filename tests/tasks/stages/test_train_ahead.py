"""Several trainings at once on a cluster: what goes there, what comes back."""

from typing import Any

import pytest

from tasks.cluster.session import Cluster, cluster_session
from tasks.progress import Progress, listening
from tasks.stages.train import train_method, train_several

OPTIONS = {"n_atoms": 4, "n_rounds": 6, "initialization": {"n_initial_rounds": 2}, "alpha": 0.01}
TWO = {"first": OPTIONS, "second": {**OPTIONS, "alpha": 0.02}}


class Interrupted(BaseException):
    """As when the process is killed: nothing in a task may catch it."""


def recipes(stages: Any, named: dict[str, dict[str, Any]]) -> list[Any]:
    return [(stages.training("cprl", options), label) for label, options in named.items()]


@pytest.mark.flow
def test_a_cluster_learns_what_one_process_learns(stages, dask_cluster):
    store = stages.workspace.store
    here = [store.open(stages.train("cprl", options, None)) for options in TWO.values()]
    bytes_here = [{name: a.array(name).tobytes() for name in a.names} for a in here]
    files_here = [a.path.stat().st_ino for a in here]
    closed_form = stages.training("centred_cosine", {})
    wanted = [*recipes(stages, TWO), (closed_form, "closed form")]
    heard: list[Progress] = []
    with listening(heard.append):
        seconds = train_several(workspace=stages.workspace, recipes=wanted, mode="force")
    assert seconds.keys() == {closed_form.reference, *(artifact.reference for artifact in here)}
    for before, bytes_before, file in zip(here, bytes_here, files_here, strict=True):
        there = store.open(before.reference)
        assert there.path.stat().st_ino != file  # made anew
        assert {name: there.array(name).tobytes() for name in there.names} == bytes_before
        assert seconds[there.reference] > 0
    for label in TWO:
        *rounds, end = [(p.done, p.total) for p in heard if p.label == label]
        assert rounds == sorted(rounds)  # those that came before the end
        assert end == (1, 1)
    assert {p.stage for p in heard} == {"train"}
    loaded = dask_cluster.client().run(lambda: set(__import__("sys").modules))
    assert any("tasks.workers.training" in names for names in loaded.values())
    assert not any("prefect" in names for names in loaded.values())


@pytest.mark.flow
def test_rounds_are_told_while_they_are_learned(stages, dask_cluster):
    rounds = {"n_rounds": 500, "pacing": {"stop_when_selected": False}}
    long = {label: {**options, **rounds} for label, options in TWO.items()}
    heard: list[Progress] = []
    with listening(heard.append):
        train_several(workspace=stages.workspace, recipes=recipes(stages, long))
    told = [p for p in heard if p.total == 500]
    assert {p.label for p in told} <= set(TWO)
    assert len(told) > 10


@pytest.mark.flow
def test_an_interrupted_training_goes_on_there(stages, dask_cluster, monkeypatch, said):
    def interrupt(progress: Progress) -> None:
        if (progress.done, progress.total) == (4, 6):
            raise Interrupted

    monkeypatch.setattr("tasks.workers.rounds.SHARE", 1e9)  # a checkpoint each round
    with pytest.raises(Interrupted), listening(interrupt):
        stages.train("cprl", TWO["second"], None)
    done = train_several(workspace=stages.workspace, recipes=recipes(stages, TWO))
    assert len(done) == 2
    assert "second: 3 of 6 rounds were done" in said
    artifact = stages.workspace.store.open(stages.training("cprl", TWO["second"]).reference)
    assert artifact.run["notes"]["rounds_of_this_call"] == 3


@pytest.mark.parametrize(
    ("named", "memory", "mode"),
    [
        ({"alone": OPTIONS}, "3GiB", "reuse"),
        (
            {
                "one": OPTIONS,
                "on a GPU": {**OPTIONS, "device": "cuda", "coding": {"code_solver": "gradient"}},
            },
            "3GiB",
            "reuse",
        ),
        (TWO, "10kB", "reuse"),
        (TWO, "3GiB", "require"),
    ],
    ids=["a single one", "one on a GPU", "more than a worker holds", "nothing may be computed"],
)
def test_what_is_left_to_the_stage(stages, named, memory, mode):
    with cluster_session(memory_per_worker=memory) as session:
        wanted = recipes(stages, named)
        assert train_several(workspace=stages.workspace, recipes=wanted, mode=mode) == {}
        assert session._client is None


def test_what_is_stored_is_not_trained_again(stages):
    for options in TWO.values():
        stages.train("cprl", options, None)
    with cluster_session() as session:
        assert train_several(workspace=stages.workspace, recipes=recipes(stages, TWO)) == {}
        assert session._client is None


def test_what_was_just_trained_is_not_called_stored(stages):
    recipe = stages.training("cprl", OPTIONS)
    stages.train("cprl", OPTIONS, None)
    for mode in ("reuse", "force"):
        result = train_method(workspace=stages.workspace, recipe=recipe, seconds=2.5, mode=mode)
        assert (result.reference, result.cached, result.seconds) == (recipe.reference, False, 2.5)
    assert train_method(workspace=stages.workspace, recipe=recipe).cached


@pytest.mark.parametrize(("limits", "expected"), [((5, 3), 3), ((0, 7), 7)])
def test_memory_of_a_worker_elsewhere_is_that_of_the_least(monkeypatch, limits, expected):
    class Client:
        def scheduler_info(self, n_workers: int) -> Any:
            assert n_workers == -1
            return {"workers": {str(n): {"memory_limit": m} for n, m in enumerate(limits)}}

    there = Cluster("tcp://127.0.0.1:1", None, "3GiB")
    monkeypatch.setattr(there, "client", Client)
    assert there.memory_of_a_worker() == expected


def test_memory_of_a_local_worker_is_what_was_asked():
    here = Cluster("local", None, "2GiB")
    assert here.memory_of_a_worker() == 2 * 2**30
    assert here._client is None
