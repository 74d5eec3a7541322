"""A model is promoted while its score holds, and can be taken back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cppcl.errors import InputError
from storage import Recipe
from tasks.promotion import history, promote, take_back
from tasks.workspace import Workspace

Runs = Callable[..., str]


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture
def record(place: Workspace) -> Runs:
    """Record a run of `shapes` with a score; returns its name."""
    stamps = (f"202601{day:02}T000000000000Z" for day in range(1, 32))

    def make(
        score: float,
        *,
        model: int | None = None,
        target: str = "labels",
        method: str = "cprl",
        validation: list[float] | None = None,
        name: str = "shapes",
    ) -> str:
        stamp = next(stamps)
        made = place.store.get_or_create(
            Recipe("encode", "1", {"n": stamp if model is None else model}, {}),
            lambda writer: writer.put_json("a.json", {}),
        ).artifact.reference
        split = place.store.get_or_create(
            Recipe("split", "1", {}, {}), lambda writer: writer.put_json("a.json", {})
        ).artifact
        evaluation = place.store.get_or_create(
            Recipe("evaluate", "1", {"target": target}, {"codes": made, "split": split.reference}),
            lambda writer: writer.put_json("a.json", {}),
        ).artifact.reference
        searches = [
            {"table": [{"mean": 0.0, "best": False}, {"mean": mean, "best": True}]}
            for mean in validation or []
        ]
        path = place.record_run(
            name,
            stamp,
            {
                "experiment": name,
                "artifacts": {"encode": made.key, "evaluate": evaluation.key},
                "all_artifacts": [str(made), str(evaluation)],
                "metrics": {"p": {method: {"map": score, "map_std": 0.5, "rank_1": score / 2}}},
                "evaluations": {"p": {method: [str(evaluation)]}},
                **({"tuned": {"p": {method: searches}}} if validation else {}),
            },
        )
        return path.stem

    return make


def served(place: Workspace) -> str:
    """Run whose model `cppcl search shapes` uses."""
    key = place.find_model("shapes").key
    records = place.run_records().items()
    (run,) = [name for name, record in records if record["artifacts"].get("encode") == key]
    return run


def test_without_a_promotion_the_latest_run_is_served(place, record):
    record(0.5)
    second = record(0.1)
    assert served(place) == second


def test_the_first_is_promoted_and_stays_when_the_next_is_worse(place, record):
    first = record(0.5)
    decision = promote(place, "shapes")
    assert decision.promoted
    assert decision.entry["score"] == 0.5
    assert decision.entry["score_name"] == "map"
    second = record(0.489)
    decision = promote(place, "shapes")
    assert not decision.promoted
    assert f"{second} has mAP 48.9 per cent of cprl (p)" in decision.reason
    assert f"had 50.0, more than the 1.0 points above it that are tolerated, so {first} stays" in (
        decision.reason
    )
    assert served(place) == first
    assert place.find_model(second) != place.find_model("shapes"), "a run is found by its name"


def test_small_losses_do_not_add_up(place, record):
    for score, holds in ((0.5, True), (0.495, True), (0.491, True), (0.486, False)):
        record(score)
        assert promote(place, "shapes").promoted is holds, score


def test_what_is_forced_is_the_bar_from_then_on(place, record):
    record(0.5)
    promote(place, "shapes")
    forced = record(0.3)
    assert promote(place, "shapes", force=True).promoted
    assert served(place) == forced
    record(0.295)
    assert promote(place, "shapes").promoted


def test_back_and_back_again(place, record):
    first = record(0.5)
    promote(place, "shapes")
    second = record(0.6)
    promote(place, "shapes")
    third = record(0.7)
    promote(place, "shapes")
    assert [entry["run"] for entry in take_back(place, "shapes")] == [third, second]
    assert served(place) == second
    assert [entry["run"] for entry in take_back(place, "shapes")] == [second, first]
    assert served(place) == first
    with pytest.raises(InputError, match=f"only {first} was promoted for 'shapes'"):
        take_back(place, "shapes")
    states = {entry["run"]: entry["state"] for entry in history(place, "shapes")}
    assert states == {first: "served", second: "withdrawn", third: "withdrawn"}


def test_what_was_taken_back_is_not_promoted_again_by_the_clock(place, record):
    record(0.5)
    promote(place, "shapes")
    record(0.6, model=1)
    promote(place, "shapes")
    take_back(place, "shapes")
    record(0.6, model=1)  # next week nothing has changed
    decision = promote(place, "shapes")
    assert not decision.promoted
    assert "was taken back; --force promotes it again" in decision.reason
    assert promote(place, "shapes", force=True).promoted
    assert [entry["state"] for entry in history(place, "shapes")] == ["before", "served"]


def test_the_same_model_is_promoted_once(place, record):
    first = record(0.5, model=1)
    promote(place, "shapes")
    record(0.5, model=1)
    assert promote(place, "shapes").promoted
    assert [entry["run"] for entry in history(place, "shapes")] == [first]


def test_instances_are_judged_by_rank_1_and_searches_by_validation(place, record):
    record(0.5, target="groups")
    assert promote(place, "shapes").entry["score"] == 0.25
    record(0.9, name="other", validation=[0.2, 0.4])
    entry = promote(place, "other").entry
    assert entry["score_name"] == "validation"
    assert entry["score"] == pytest.approx(0.3)
    record(0.1, name="other", validation=[0.3, 0.4])
    assert promote(place, "other").promoted, "test scores play no part"


def test_a_run_is_judged_as_the_promoted_one_was(place, record):
    record(0.5)
    promote(place, "shapes")
    record(0.5, validation=[0.1])
    assert promote(place, "shapes").entry["score_name"] == "map"


def test_scores_that_do_not_compare(place, record):
    record(0.5)
    promote(place, "shapes")
    record(0.9, method="ridge_cca")
    decision = promote(place, "shapes")
    assert not decision.promoted
    assert "which do not compare" in decision.reason


@pytest.mark.parametrize("score", ["map_std", "rank_7", "validation"])
def test_a_score_that_is_not_there(score, place, record):
    record(0.5)
    with pytest.raises(InputError, match="score"):
        promote(place, "shapes", score=score)


def test_a_run_of_another_experiment_is_refused(place, record):
    record(0.5)
    other = record(0.5, name="other")
    with pytest.raises(InputError, match="one of experiment 'other', not of 'shapes'"):
        promote(place, "shapes", run=other)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda state: state.clear(), "does not say what is promoted"),
        (lambda state: state["promoted"][0].pop("score_name"), r"promoted\[0\] has no score_name"),
        (lambda state: state["withdrawn"].append(5), r"withdrawn\[0\] has no bar"),
        (lambda state: state.update(withdrawn=3), "withdrawn is no list"),
    ],
)
def test_a_damaged_entry_is_named(place, record, change, said):
    record(0.5)
    promote(place, "shapes")
    file = place.promotions / "shapes.json"
    state = json.loads(file.read_text())
    change(state)
    file.write_text(json.dumps(state))
    for act in (promote, take_back, history):
        with pytest.raises(InputError, match=rf"shapes\.json:? {said}"):
            act(place, "shapes")


def test_gc_keeps_what_is_served_and_what_was_before(place, record, cppcl):
    models = []
    for score in (0.5, 0.6, 0.7):
        record(score)
        promote(place, "shapes")
        models.append(place.find_model("shapes"))
    record(0.1)  # the latest run stays anyway
    result = cppcl("store", "gc", "--workspace", place.root)
    assert result.code == 0, result.stderr
    left = set(place.store.references("encode"))
    assert models[0] not in left
    assert set(models[1:]) <= left
    take_back(place, "shapes")
    assert place.find_model("shapes") == models[1]


def test_the_command(place, record, cppcl):
    def command(*arguments: object) -> Any:
        return cppcl("promote", "shapes", *arguments, "--workspace", place.root)

    assert command().code == 2
    first = record(0.5)
    assert command().stdout == f"promoted {first}: mAP 50.0 per cent of cprl (p)\n"
    second = record(0.4)
    refused = command("--json")
    assert (refused.code, refused.json()["promoted"]) == (1, False)
    assert command("--tolerance", "0.2").code == 0
    assert served(place) == second
    assert command("--back").stdout == (
        f"took back {second}; cppcl search shapes uses {first} again\n"
    )
    listed = command("--list").stdout
    assert "served" in listed
    assert "withdrawn" in listed
    assert [entry["run"] for entry in command("--list", "--json").json()] == [first, second]
    assert command("--back").code == 2
    outside = cppcl("promote", "../shapes", "--list", "--json", "--workspace", place.root / "runs")
    assert outside.json() == []
