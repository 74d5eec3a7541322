"""Methods beside each other and beside a publication: in the record of a run and its report."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from cppcl.retrieval.comparison import mean_interval, paired_difference
from cppcl.retrieval.metrics import summarise
from flows.selection import Selection
from tasks.workspace import Workspace
from tests.cppcl.report.pages import rows_of

pytestmark = pytest.mark.usefixtures("inline_blocks_of_module")

PUBLISHED = {
    "source": "Table 1 of a publication",
    "score": "rank_2",
    "trials": 1,
    "values": {"centred_cosine": 0.0},
    "titles": {"centred_cosine": "Cosine, centred"},
}


@pytest.fixture(scope="module")
def experiment_file(tmp_path_factory, draw_pictures, make_experiment) -> Path:
    folder = tmp_path_factory.mktemp("comparisons")
    configuration = make_experiment(draw_pictures(folder / "shapes"))
    configuration["protocols"]["instance"]["published"] = PUBLISHED
    methods = configuration["protocols"]["category"]["methods"]
    configuration["protocols"]["category"]["methods"] = {"raw_cosine": None, **methods}
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(configuration, sort_keys=False))
    return path


@pytest.fixture(scope="module")
def chain(run_plain, experiment_file, tmp_path_factory) -> Any:
    return run_plain(experiment_file, Workspace(tmp_path_factory.mktemp("workspace")))


@pytest.fixture(scope="module")
def summary(chain: Any) -> Any:
    return chain.record.summary(chain.workspace.store)


def query_values(chain: Any, protocol: str, method: str, score: str) -> Any:
    """Score and number of every query of each split, straight from what is stored."""
    store = chain.workspace.store
    values, rows = [], []
    for reference in chain.record.scores[protocol][method]:
        artifact = store.open(reference)
        rows.append(artifact.array("query_rows"))
        if score == "map":
            values.append(artifact.array("average_precision"))
        else:
            values.append(1.0 * (artifact.array("first_relevant_rank") <= int(score[-1])))
    return values, rows


def test_differences_are_those_of_the_stored_evaluations(chain, summary):
    first = ["experiment", "metrics", "conventions", "differences", "published"]
    assert list(summary)[:5] == first
    assert list(summary["differences"]) == ["instance", "category"]
    for protocol, first, second, score in (
        ("instance", "cprl", "centred_cosine", "rank_1"),
        ("category", "raw_cosine", "class_cca", "map"),
    ):
        found = summary["differences"][protocol]
        assert (found["first"], found["score"]) == (first, score)
        ours, rows = query_values(chain, protocol, first, score)
        theirs, same_rows = query_values(chain, protocol, second, score)
        for one, two in zip(rows, same_rows, strict=True):
            np.testing.assert_array_equal(one, two)
        expected = paired_difference(ours, theirs, rows)
        assert found["methods"] == {second: {**vars(expected), "verdict": expected.verdict}}
        metrics = summary["metrics"][protocol]
        assert expected.mean == pytest.approx(metrics[first][score] - metrics[second][score])


def test_every_method_stands_beside_the_publication(chain, summary):
    assert list(summary["published"]) == ["instance"]
    found = summary["published"]["instance"]
    assert {name: found[name] for name in ("source", "score", "trials")} == {
        name: PUBLISHED[name] for name in ("source", "score", "trials")
    }
    assert list(found["methods"]) == ["cprl", "centred_cosine"]
    for name, (title, published, verdict) in {
        "cprl": ("cprl", None, None),
        "centred_cosine": ("Cosine, centred", 0.0, "reached"),
    }.items():
        row = found["methods"][name]
        interval = mean_interval(*query_values(chain, "instance", name, "rank_2"))
        scores = summary["metrics"]["instance"][name]
        documents = [
            chain.workspace.store.open(r).json("scores.json")["scores"]
            for r in chain.record.scores["instance"][name]
        ]
        assert row == {
            "title": title,
            "published": published,
            **vars(interval),
            "std": scores["rank_2_std"],
            "first_mean": summarise(documents[:1])["rank_2"],
            "first_std": None,
            "verdict": verdict,
        }
        assert row["mean"] == pytest.approx(scores["rank_2"])


def test_the_report_holds_the_same_numbers(chain, summary):
    report = chain.workspace.store.open(chain.pieces["report"][0].reference)
    rows = rows_of(report.text("differences.csv"))
    assert {(r["protocol"], r["first"], r["method"]): float(r["difference"]) for r in rows} == {
        (protocol, found["first"], method): row["mean"]
        for protocol, found in summary["differences"].items()
        for method, row in found["methods"].items()
    }
    rows = rows_of(report.text("published.csv"))
    assert {r["title"]: (float(r["low"]), r["verdict"]) for r in rows} == {
        row["title"]: (row["low"], row["verdict"] or "")
        for row in summary["published"]["instance"]["methods"].values()
    }
    page = report.text("report.html")
    assert page.count("<h3>Differences</h3>") == 2
    assert page.count("<h3>Beside the published numbers</h3>") == 1


def test_the_report_tells_how_training_went(chain):
    from tasks.lineage import Lineage
    from tasks.reporting.report import training_of

    store = chain.workspace.store
    references = chain.record.scores["instance"]["cprl"]
    found = training_of(store, references)
    models = [Lineage.of_evaluation(store, reference).training for reference in references]
    largest = [model.array("history.image_sd_v").max() for model in models]
    assert found["sd of v, image"] == pytest.approx(np.mean(largest))
    assert found["seconds"] == pytest.approx(np.mean([model.run["seconds"] for model in models]))
    assert set(training_of(store, chain.record.scores["instance"]["centred_cosine"])) == {
        "seconds"
    }
    page = store.open(chain.pieces["report"][0].reference).text("report.html")
    assert "sd of v, sketch" in page


def test_instances_of_a_split_file_are_compared_by_rank_1(chain):
    from tasks.reporting.report import protocol_scores

    options = chain.experiment.protocols["instance"].model_dump(mode="json")
    scores = chain.record.scores["instance"]
    for split, score in (
        ({"rule": "file", "target": "groups"}, "rank_1"),
        ({"rule": "file", "target": "labels"}, "map"),
        ({"rule": "category"}, "map"),
    ):
        changed = {**options, "split": split}
        result = protocol_scores(chain.workspace.store, "instance", scores, changed)
        assert result.main_score == score


def test_the_first_method_belongs_to_the_key_of_the_report(
    chain, run_plain, experiment_file, tmp_path
):
    configuration = yaml.safe_load(experiment_file.read_text())
    methods = configuration["protocols"]["instance"]["methods"]
    configuration["protocols"]["instance"]["methods"] = dict(reversed(methods.items()))
    path = tmp_path / "turned.yaml"
    path.write_text(yaml.safe_dump(configuration, sort_keys=False))
    turned = run_plain(path, chain.workspace)
    assert [name for name, rs in turned.pieces.items() if not rs[0].cached] == ["report"]
    found = turned.record.summary(chain.workspace.store)
    assert found["differences"]["instance"]["first"] == "centred_cosine"


def test_nothing_is_compared_without_a_report(chain, run_plain, experiment_file):
    selection = Selection("evaluate", None, ())
    alone = run_plain(experiment_file, chain.workspace, selection=selection)
    summary = alone.record.summary(chain.workspace.store)
    assert list(summary)[:4] == ["experiment", "metrics", "conventions", "training"]
