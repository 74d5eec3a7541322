"""Grids in an experiment: what is refused, how they are set, what is trained and reported."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cppcl.errors import InputError
from deployments.commands.run import tuning_rows
from flows.configuration.describe import all_options, options_of
from flows.configuration.experiment import Tuning
from flows.configuration.load import load_experiment
from flows.record import RunRecord
from flows.selection import Selection
from storage import Reference
from tasks.stages.contract import StageResult


@pytest.fixture
def write(tmp_path: Path, make_experiment: Callable[..., dict[str, Any]]) -> Callable[..., str]:
    """Write the tiny experiment with a grid for CPRL, and return the file."""

    def write(grid: Any, **options: Any) -> str:
        configuration = make_experiment(tmp_path / "shapes")
        cprl = configuration["protocols"]["instance"]["methods"]["cprl"]
        configuration["protocols"]["instance"]["methods"]["cprl"] = {
            **cprl,
            **options,
            "tune": grid,
        }
        path = tmp_path / "experiment.yaml"
        path.write_text(yaml.safe_dump(configuration))
        return str(path)

    return write


def grid_of(source: str, *overrides: str) -> Any:
    return load_experiment(source, overrides).protocols["instance"].methods["cprl"].tune


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"alhpa": [0.1]}, r"cprl\.tune: cprl has no option 'alhpa'; did you mean 'alpha'"),
        ({"alpha": []}, r"cprl\.tune: grid\['alpha'\]=\(\) must be a list of at least one"),
        ({"alpha": [0.1, 0.1]}, r"cprl\.tune: grid\['alpha'\].* holds a value twice"),
        ({"beta": [1, 1.0]}, r"cprl\.tune: grid\['beta'\].* holds a value twice"),
        ({"alpha": [0.1, "low"]}, r"cprl\.tune: alpha: .*number.* \(got 'low'\)"),
        ({"n_atoms": [4, True]}, r"cprl\.tune: n_atoms=True must be a number"),
        ({"pacing": {"regularizer": ["B", "C"]}}, r"pacing\.regularizer: .* \(got 'C'\)"),
        ({}, r"cprl\.tune: {} must name options with the values to try"),
        ([0.1, 0.2], r"cprl\.tune: \[0\.1, 0\.2\] must name options"),
        # Each value is possible, but not with the others.
        ({"alpha": [0.1, -1]}, r"methods\.cprl\.cprl: alpha=-1\.0 must be"),
        ({"pacing": {"selection": ["binary"]}}, r"methods\.cprl\.cprl: .*use regularizer='A'"),
    ],
)
def test_wrong_grids_are_named(write, grid, message):
    with pytest.raises(InputError, match=message):
        load_experiment(write(grid))


def test_values_have_the_types_of_their_options(write):
    grid = grid_of(write({"beta": [1, 2.5], "n_atoms": [4, 8], "pacing": {"gamma0": [None, 1]}}))
    assert grid == {"beta": (1.0, 2.5), "n_atoms": (4, 8), "pacing": {"gamma0": (None, 1.0)}}
    assert [type(value) for value in grid["beta"]] == [float, float]
    assert [type(value) for value in grid["n_atoms"]] == [int, int]


def test_a_combination_may_be_possible_where_the_options_alone_are_not(write):
    assert grid_of(write({"pacing": {"regularizer": ["A"], "selection": ["binary", "relaxed"]}}))


def test_grids_are_set_on_the_command_line(write):
    source = write({"alpha": [0.1, 0.2]})
    assert grid_of(source, "cprl.tune.alpha=[0.3, 0.4]") == {"alpha": (0.3, 0.4)}
    assert grid_of(source, "cprl.tune={beta: [1, 2]}") == {"beta": (1.0, 2.0)}
    assert grid_of(source, "cprl.tune=null") is None
    assert grid_of(source, "tuning.n_folds=5") == {"alpha": (0.1, 0.2)}
    # To set an option is to settle its grid.
    assert grid_of(source, "alpha=0.5") == {"alpha": (0.5,)}
    assert grid_of("emoji") is None
    assert grid_of("emoji", "instance.methods.cprl.tune={alpha: [0.1, 0.2]}")


def test_an_experiment_with_a_grid_reads_back(write):
    experiment = load_experiment(write({"alpha": [0.1, 0.2]}))
    assert type(experiment).model_validate(experiment.model_dump(mode="json")) == experiment
    assert "tune" not in experiment.protocols["instance"].methods["cprl"].arguments()


def test_grids_are_described(write):
    sections = options_of(load_experiment(write({"alpha": [0.1, 0.2]})))
    rows = {row[0]: row for row in sections["protocols.instance.methods.cprl (method: cprl)"]}
    assert rows["tune.alpha"][1] == "[0.1, 0.2]"
    assert "chosen on training rows" in rows["tune.alpha"][2]
    known = {row[0] for row in all_options()["tuning"]}
    assert known == set(Tuning.model_fields)


@pytest.mark.parametrize(
    ("split", "held_out", "score"),
    [
        ({"rule": "instance"}, "classes", "rank_1"),
        ({"rule": "category"}, "samples", "map"),
        ({"rule": "unseen"}, "classes", "map"),
    ],
)
def test_folds_are_like_the_test(tmp_path, make_experiment, split, held_out, score):
    configuration = make_experiment(tmp_path / "shapes")
    configuration["protocols"] = {"one": {"split": split, "methods": {"raw_cosine": None}}}
    file = tmp_path / "experiment.yaml"
    file.write_text(yaml.safe_dump(configuration))
    protocol = load_experiment(str(file)).protocols["one"]
    settled = Tuning().search_options(protocol)
    assert (settled["held_out"], settled["score"]) == (held_out, score)
    given = Tuning(held_out="samples", score="rank_5").search_options(protocol)
    assert (given["held_out"], given["score"]) == ("samples", "rank_5")


@pytest.mark.usefixtures("inline_blocks")
def test_the_best_options_are_trained(shapes, write, run_plain, workspace):
    """One alpha leaves no code, the other learns; whichever is first, the latter is trained."""
    source = write({"alpha": [50.0, 0.01]}, alpha=0.3)
    chain = run_plain(source, workspace)
    store = workspace.store
    assert len(chain.pieces["tune cprl"]) == len(chain.pieces["train cprl"]) == 2
    for search, trained in zip(chain.pieces["tune cprl"], chain.pieces["train cprl"], strict=True):
        artifact = store.open(trained.reference)
        assert artifact.parameters["options"]["alpha"] == 0.01
        assert "tune" not in artifact.parameters["options"]
        assert artifact.inputs["tuning"] == search.reference
    untuned = store.open(chain.pieces["train centred_cosine"][0].reference)
    assert "tuning" not in untuned.inputs
    tuned = chain.record.summary(store)["tuned"]
    assert [s["best"] for s in tuned["instance"]["cprl"]] == [{"alpha": 0.01}] * 2
    page = store.open(chain.pieces["report"][0].reference).text("report.html")
    assert "chosen" in page
    # Stages alone find the search stored, and need it.
    again = run_plain(source, workspace, selection=Selection(only="train"))
    assert all(r.cached for results in again.pieces.values() for r in results)
    only = run_plain(source, workspace, "tuning.seed=5", selection=Selection(only="tune"))
    assert "train cprl" not in only.pieces
    assert not any(r.cached for r in only.pieces["tune cprl"])


def test_the_table_shows_the_best_over_splits_and_what_splits_chose():
    def search(*means: float) -> dict[str, Any]:
        best = max(range(len(means)), key=lambda k: means[k])
        rows = [{"alpha": k, "mean": mean, "best": k == best} for k, mean in enumerate(means)]
        return {"best": {"alpha": best}, "table": rows}

    first = [0.0] * 10 + [0.5, 0.9]
    second = [0.1] * 10 + [0.6, 0.0]
    rows = tuning_rows([search(*first), search(*second)])
    assert rows[:3] == [["10", "55.0", "1"], ["11", "45.0", "0"], ["0", "5.0", "-"]]
    assert len(rows) == 10
    assert [row[-1] for row in tuning_rows([search(*first)])[:2]] == ["yes", "-"]
    # What a split chose is shown though it is not among the best.
    worst = tuning_rows([search(*[0.5] * 11, 0.1), search(*[0.5] * 11, 0.6)])
    assert len(worst) == 11
    assert worst[-1] == ["11", "35.0", "1"]


@pytest.mark.flow
def test_a_run_shows_and_records_what_was_chosen(finished_run):
    summary = finished_run.summary
    (searches,) = summary["tuned"]["category"].values()
    assert len(searches) == 2
    assert {row["ridge"] for row in searches[0]["table"]} == {0.1, 1.0}
    told = finished_run.result.stderr
    assert (
        "class_cca, category: 2 combinations of options, best first; mAP, per cent, in 2 folds "
        "of the training pictures, mean over splits; chosen by: splits that chose it"
    ) in told
    _, record = finished_run.workspace.find_run("tiny")
    store = finished_run.workspace.store
    for protocol, methods in record["evaluations"].items():
        for method, references in methods.items():
            scores = [
                store.open(Reference.parse(text)).json("scores.json")["scores"]["map"]
                for text in references
            ]
            mean = sum(scores) / len(scores)
            assert summary["metrics"][protocol][method]["map"] == pytest.approx(mean)


@pytest.mark.usefixtures("inline_blocks")
def test_the_method_that_validation_prefers_answers(shapes, write, run_plain, workspace):
    """CPRL leaves no code here and cannot win; a method that refuses the data is left out."""
    source = write({"alpha": [50.0]})
    refused = "class_cca: {composition: {spaces: separate, space_weights: [1, 1, 1]}}"
    overrides = (
        "tuning.choose=true",
        "features={sketch: {name: pixels+hog}, image: {name: pixels+hog}}",
        f"instance.methods={{cprl: {{alpha: 50.0}}, centred_cosine: , {refused}}}",
    )
    chain = run_plain(source, workspace, *overrides)
    summary = chain.record.summary(workspace.store)
    assert summary["chosen"]["instance"]["method"] == "centred_cosine"
    assert summary["chosen"]["instance"]["runner_up"] == "cprl"
    assert list(summary["left_out"]["instance"]) == ["class_cca"]
    assert "space_weights" in summary["left_out"]["instance"]["class_cca"]
    assert list(summary["metrics"]["instance"]) == ["centred_cosine", "cprl", "chance"]
    served = Reference("encode", summary["artifacts"]["encode"])
    protocol, methods = next(iter(chain.record.scores.items()))
    first = methods[summary["chosen"][protocol]["method"]][0]
    assert served == workspace.store.open(first).inputs["codes"]
    page = workspace.store.open(chain.pieces["report"][0].reference).text("report.html")
    assert "Validation on training pictures prefers centred_cosine" in page
    trained = workspace.store.open(chain.pieces["train centred_cosine"][0].reference)
    assert "tuning" not in trained.inputs  # an empty grid chooses no option
    # What refused the data is left out, too, where its search must be stored.
    again = run_plain(source, workspace, *overrides, selection=Selection(start="train"))
    assert list(again.record.left_out["instance"]) == ["class_cca"]
    assert again.record.chosen == chain.record.chosen
    with pytest.raises(InputError, match="space_weights"):
        run_plain(source, workspace, *overrides, f"instance.methods={{{refused}}}")


def test_what_all_searches_scored_at_once_counts_to_their_stage():
    record = RunRecord("any", search_seconds=2.0)
    for stage in ("tune", "train"):
        record.add(StageResult(Reference(stage, "0" * 32), cached=False, seconds=1.0))
    assert (record.seconds("tune"), record.seconds("train")) == (3.0, 1.0)
