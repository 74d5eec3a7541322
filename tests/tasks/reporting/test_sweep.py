"""The artifact of a sweep: what it holds, what its key depends on, what it is made from."""

from typing import Any

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.report.sweep import Axis
from storage import Recipe, Reference, Writer
from tasks.reporting.report import Scores
from tasks.reporting.sweep import evaluations_behind, sweep_of_experiment
from tasks.stages.contract import StageNotStoredError, StageResult
from tests.cppcl.report.pages import rows_of

ATOMS = Axis("n_atoms", (3, 4))
OPTIONS = {"alpha": 0.01, "n_rounds": 2, "initialization": {"n_initial_rounds": 1}}


@pytest.fixture(scope="module")
def scores(stages: Any) -> dict[int, Scores]:
    """Evaluations of two methods for each number of atoms; twice, as if of two splits."""

    def evaluated(method: str, **options: Any) -> Reference:
        reference: Reference = stages.evaluate(stages.encode(stages.train(method, options, None)))
        return reference

    cosine = evaluated("centred_cosine")
    return {
        number: {
            "instance": {
                "cprl": [evaluated("cprl", n_atoms=n, **OPTIONS), cosine],
                "cosine": [cosine, cosine],
            }
        }
        for number, n in enumerate(ATOMS.values)
    }


def render(stages: Any, scores: dict[int, Scores], **changes: Any) -> StageResult:
    given = {"experiment": "tiny-sweep", "axes": [ATOMS], "score": "map"}
    return sweep_of_experiment(workspace=stages.workspace, scores=scores, **given | changes)


def test_the_table_holds_the_scores_of_the_evaluations(stages, scores):
    store = stages.workspace.store
    artifact = store.open(render(stages, scores).reference)
    assert artifact.names == ["sweep.csv", "sweep.html", "sweep.json", "sweep.png"]
    lines = rows_of(artifact.text("sweep.csv"))
    order = [(line["n_atoms"], line["method"]) for line in lines]
    assert order == [("3", "cprl"), ("3", "cosine"), ("4", "cprl"), ("4", "cosine")]
    for line, number in zip(lines, (0, 0, 1, 1), strict=True):
        documents = [
            store.open(reference).json("scores.json")
            for reference in scores[number]["instance"][line["method"]]
        ]
        values = [document["scores"]["map"] for document in documents]
        assert float(line["mean"]) == pytest.approx(np.mean(values))
        assert float(line["std"]) == pytest.approx(np.std(values, ddof=1))
        assert float(line["chance"]) == pytest.approx(documents[0]["chance"]["map"])
    assert float(lines[0]["mean"]) != float(lines[1]["mean"])


def test_what_its_key_depends_on(stages, scores):
    def here(scores: dict[int, Scores] = scores, **changes: Any) -> StageResult:
        return render(stages, scores, **{"experiment": "keys", **changes})

    first, again = here(), here()
    assert (first.cached, again.cached) == (False, True)
    assert again.reference == first.reference
    swapped = {n: {"instance": dict(reversed(p["instance"].items()))} for n, p in scores.items()}
    others = [
        here(score="rank_1"),
        here(experiment="other"),
        here(axes=[Axis("alpha", (3, 4))]),
        here(axes=[Axis("n_atoms", (3, 5))]),
        here({0: scores[0]}),
        here({0: scores[1], 1: scores[0]}),
        here(swapped),
    ]
    assert len({first.reference, *(other.reference for other in others)}) == 8
    used = stages.workspace.store.open(first.reference).inputs
    assert set(used.values()) == {
        reference
        for protocols in scores.values()
        for references in protocols["instance"].values()
        for reference in references
    }


def test_a_combination_that_was_not_run_is_missing(stages, scores):
    axes = [Axis("crop", (None, [1, 2])), ATOMS]
    artifact = stages.workspace.store.open(
        render(stages, {1: scores[0], 2: scores[1]}, axes=axes).reference
    )
    document = artifact.json("sweep.json")
    assert document["missing"] == [{"crop": None, "n_atoms": 3}, {"crop": [1, 2], "n_atoms": 4}]
    assert document["rows"][0]["values"] == {"crop": None, "n_atoms": 4}
    assert document["rows"][2]["values"] == {"crop": [1, 2], "n_atoms": 3}


def test_a_score_that_is_not_known_is_named(stages, scores):
    with pytest.raises(InputError, match=r"score='rank_9' .*'cprl' .*rank_1, rank_2, map"):
        render(stages, scores, score="rank_9")
    with pytest.raises(StageNotStoredError, match="'sweep'"):
        render(stages, scores, experiment="not run", mode="require")


def test_evaluations_are_those_of_a_report_in_the_order_of_its_splits(stages):
    """More than ten, whose names do not sort by number, and names that begin alike."""
    store = stages.workspace.store
    made = [Recipe("evaluate", str(number)).reference for number in range(16)]
    inputs = {f"p 1.cprl.{number}": reference for number, reference in enumerate(made[:12])}
    inputs |= {"p 1.cprl_a.0": made[12], "p 1.cprl_a.1": made[13], "p.cprl.0": made[14]}
    recipe = Recipe("report", "1", {}, {"table": made[15], **inputs})

    def write(writer: Writer) -> None:
        writer.put_text("report.html", "")

    report = store.get_or_create(recipe, write).artifact.reference
    found = evaluations_behind(store, report, {"p": ["cprl"], "p 1": ["cprl_a", "cprl"]})
    assert found == {"p": {"cprl": [made[14]]}, "p 1": {"cprl_a": made[12:14], "cprl": made[:12]}}
    assert list(found["p 1"]) == ["cprl_a", "cprl"]
