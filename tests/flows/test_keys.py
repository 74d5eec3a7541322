"""Which option of an experiment changes which stages: those that use it and those after."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cppcl.modality import MODALITIES
from flows.configuration.load import load_experiment, option_paths
from tasks.samples import open_pictures
from tasks.stages.names import STAGES
from tasks.workspace import Workspace

pytestmark = pytest.mark.usefixtures("inline_blocks_of_module", "blank_reports")

FETCH = {"fetch"}
SPLIT = {"split instance", "split category"}
FEATURES = {"extract sketch pixels", "extract image pixels"}
SCORES = {"extract sketch edgeness", "extract image colour_contrast"}
CURRICULA = {"curricula instance", "curricula category"}
REPORT = {"report"}


def method(*names: str) -> set[str]:
    return {f"{stage} {name}" for stage in ("train", "encode", "evaluate") for name in names}


EVALUATE = {"evaluate cprl", "evaluate centred_cosine", "evaluate class_cca"}
GROUPS = {
    ("protocols",),
    ("protocols", "instance"),
    ("protocols", "category"),
    ("protocols", "instance", "methods"),
    ("protocols", "category", "methods"),
    *((name,) for name in ("curriculum", "tuning", "evaluation", "report", "compute")),
}
TUNED = {"tune class_cca"} | method("class_cca")
METHODS = method("cprl", "centred_cosine") | TUNED
ALL = FETCH | SPLIT | FEATURES | SCORES | CURRICULA | METHODS | REPORT
PACED = CURRICULA | method("cprl") | REPORT

CHANGES: dict[str, set[str]] = {
    "alpha=0.02": method("cprl") | REPORT,
    "cprl.seed=1": method("cprl") | REPORT,
    "cprl.beta=0.5": method("cprl") | REPORT,
    "mu=0": method("cprl") | REPORT,
    "n_directions=1": TUNED | REPORT,
    "tune.ridge=[0.1,2.0]": TUNED | REPORT,
    "n_folds=3": TUNED | REPORT,
    "n_repeats=2": TUNED | REPORT,
    "tuning.seed=1": TUNED | REPORT,
    "halving=true": TUNED | REPORT,
    "hubness=csls": METHODS | REPORT,
    "cprl.answers=false": REPORT,
    "score=rank_1": TUNED | REPORT,
    # What 'auto' stood for, and a method that takes no start.
    "held_out=samples": REPORT,
    "warm_start=true": REPORT,
    "ranks=[1]": EVALUATE | REPORT,
    "precisions=[2]": EVALUATE | REPORT,
    "map_at=[2]": EVALUATE | REPORT,
    "in_class=true": {"evaluate cprl", "evaluate centred_cosine"} | REPORT,
    # Of mAP@k alone, which is not asked for.
    "denominators=[hits]": REPORT,
    "metric=l2": EVALUATE | TUNED | REPORT,
    "evaluation.seed=1": EVALUATE | REPORT,
    # Of binary codes alone, which there are none of.
    "evaluation.radius=3": REPORT,
    "queries=1": REPORT,
    "nearest=3": REPORT,
    "report.seed=1": REPORT,
    "description=x": REPORT,
    "instance.published={source: x, score: map, values: {cprl: 0.5}}": REPORT,
    "category.published={source: x, score: rank_1, values: {class_cca: 0.5}}": REPORT,
    "name=other": REPORT,
    "delta=0.2": PACED,
    "rho=0.5": PACED,
    "sketch.rho=0.5": PACED,
    "image.rho=0.5": PACED,
    "sketch.delta=0.2": PACED,
    "image.delta=0.2": PACED,
    # The value of both modalities, given for one.
    "sketch.rho=0.3": REPORT,
    "image.delta=0.1": REPORT,
    "scope=within_class": PACED,
    "delta_unit=absolute": PACED,
    "pair_form=all": PACED,
    "maximum_pairs=3": PACED,
    "answer_share=0.5": PACED,
    "curriculum.seed=1": PACED,
    # What 'auto' stands for without answers.
    "sketch_source=scores": REPORT,
    "image_source=scores": REPORT,
    "curriculum.sketch.n_windows=21": {"extract sketch edgeness"} | PACED,
    "curriculum.image.seed=1": {"extract image colour_contrast"} | PACED,
    "features.sketch.normalisation=zero_mean_unit_variance": {"extract sketch pixels"}
    | METHODS
    | REPORT,
    "longest_side=32": FEATURES | SCORES | CURRICULA | METHODS | REPORT,
    "block_rows=4": FEATURES | SCORES | CURRICULA | METHODS | REPORT,
    "n_train=6": {"split instance", "curricula instance"}
    | method("cprl", "centred_cosine")
    | REPORT,
    "minimum_groups=3": {"split category", "curricula category"} | TUNED | REPORT,
    "compute.workers=2": set(),
    "memory_per_worker=1GiB": set(),
    "max_bad_share=0.5": set(),
    "compute.cluster=tcp://127.0.0.1:1": set(),
    "compute.gpu_workers=1": set(),
    "scheduler_host=10.0.0.1": set(),
    "performance_report=report.html": set(),
    "compute.slurm={queue: long}": set(),
}


@pytest.fixture(scope="module")
def experiment_file(tmp_path_factory, draw_pictures, write_experiment) -> Path:
    return write_experiment(draw_pictures(tmp_path_factory.mktemp("keys") / "shapes"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("workspace"))


@pytest.fixture(scope="module")
def first(run_plain: Callable[..., Any], experiment_file: Path, place: Workspace) -> Any:
    return run_plain(experiment_file, place)


def keys(chain: Any) -> dict[str, list[str]]:
    return {name: [str(r.reference) for r in results] for name, results in chain.pieces.items()}


def test_first_run_computes_every_piece(first):
    assert set(first.pieces) == ALL
    assert not any(result.cached for results in first.pieces.values() for result in results)


@pytest.mark.parametrize("change", CHANGES)
def test_an_option_changes_the_stages_that_use_it(
    change, first, run_plain, experiment_file, place
):
    again = run_plain(experiment_file, place, change)
    before, after = keys(first), keys(again)
    assert set(after) == ALL
    assert {name for name in ALL if before[name] != after[name]} == CHANGES[change]
    computed = {
        name for name, results in again.pieces.items() if not all(r.cached for r in results)
    }
    assert computed == CHANGES[change]
    # No piece is half new: either all splits of it are, or none.
    for name in CHANGES[change]:
        assert not set(before[name]) & set(after[name])
    assert again.record.summary(place.store)["cached"] == {
        stage: all(
            r.cached for name, rs in again.pieces.items() if name.split()[0] == stage for r in rs
        )
        for stage in STAGES
        if stage != "learn"  # nothing learns here
    }


def test_every_option_is_tried_or_belongs_to_a_registered_class(experiment_file):
    """A new option of the experiment's own must be given its stages here."""
    experiment = load_experiment(str(experiment_file))
    of_classes = {"dataset", "cprl", "class_cca", "centred_cosine", "method"}
    of_classes |= {"features", "split"} | {("curriculum", m) for m in MODALITIES}
    of_classes |= {("compute", kind) for kind in ("tls", "slurm", "kubernetes")}
    tried = [tuple(change.partition("=")[0].split(".")) for change in CHANGES]
    tried += [(f"{modality}_answers",) for modality in MODALITIES]  # in test_curricula.py
    tried += [("more_features",)]  # in test_more_features.py
    tried += [("tuning", "choose")]  # in test_tuning.py
    tried += [("on_the_fly",)]  # in test_on_the_fly.py
    tried += [("pseudo_sketches",)]  # in test_pseudo_sketches.py
    for path in option_paths(experiment):
        if of_classes & {*path, path[:2]} or path in GROUPS:
            continue
        assert any(path[-len(end) :] == end for end in tried), path


def test_a_seed_adds_its_own_split_alone(first, run_plain, experiment_file, place):
    again = run_plain(experiment_file, place, "instance.split.seeds=[0,1,2]")
    before, after = keys(first), keys(again)
    for name in ("split instance", "train cprl", "evaluate centred_cosine"):
        assert after[name][:2] == before[name]
        assert len(after[name]) == 3
    assert [r.cached for r in again.pieces["train cprl"]] == [True, True, False]
    assert after["train class_cca"] == before["train class_cca"]


def test_a_renamed_method_keeps_its_artifacts(first, run_plain, experiment_file, place):
    text = experiment_file.read_text()
    renamed = experiment_file.with_name("renamed.yaml")
    renamed.write_text(
        text.replace("      class_cca:\n", "      ours:\n        method: class_cca\n")
    )
    again = run_plain(renamed, place)
    assert keys(again)["train ours"] == keys(first)["train class_cca"]
    assert set(again.record.scores["category"]) == {"ours"}


def test_without_a_curriculum_no_scores_are_extracted(first, run_plain, experiment_file, place):
    again = run_plain(experiment_file, place, "curriculum=null")
    before, after = keys(first), keys(again)
    assert set(after) == ALL - SCORES - CURRICULA
    changed = {name for name in after if before[name] != after[name]}
    assert changed == method("cprl") | REPORT


def test_a_moved_folder_keeps_every_key(first, run_plain, experiment_file, place, tmp_path):
    old = experiment_file.parent / "shapes"
    moved = Path(shutil.copytree(old, tmp_path / "moved here"))
    again = run_plain(experiment_file, place, f"dataset.root={moved}")
    assert keys(again) == keys(first)
    # The table is written anew, for the place alone; nothing else is.
    assert [name for name, rs in again.pieces.items() if not rs[0].cached] == ["fetch"]
    table = again.pieces["fetch"][0].reference
    assert open_pictures(place.store, table).root == moved
    back = run_plain(experiment_file, place)
    assert open_pictures(place.store, table).root == old
    assert keys(back) == keys(first)


def test_a_changed_picture_changes_all_but_the_other_rows(
    first, run_plain, experiment_file, place, tmp_path, draw_pictures, inline_blocks_of_module
):
    changed = Path(shutil.copytree(experiment_file.parent / "shapes", tmp_path / "changed"))
    draw_pictures(tmp_path / "new", per_class=1, first=7)
    shutil.copy(tmp_path / "new/sketches/circle/7.png", changed / "sketches/circle/0.png")
    inline_blocks_of_module.clear()
    again = run_plain(experiment_file, place, f"dataset.root={changed}")
    before, after = keys(first), keys(again)
    assert all(before[name] != after[name] for name in ALL)
    # Once for its features and once for its score.
    assert inline_blocks_of_module == ["sketches/circle/0.png"] * 2


def test_results_do_not_depend_on_the_size_of_blocks(first, run_plain, experiment_file, tmp_path):
    other = Workspace(tmp_path / "other")
    again = run_plain(experiment_file, other, "block_rows=100")
    store = first.workspace.store
    for name in sorted(FEATURES | SCORES):
        one = store.open(first.pieces[name][0].reference).array("features")
        two = other.store.open(again.pieces[name][0].reference).array("features")
        assert (one == two).all()
    assert again.record.metrics(other.store) == first.record.metrics(store)


def test_two_workspaces_hold_the_same_bytes(first, run_plain, experiment_file, tmp_path):
    other = Workspace(tmp_path / "other")
    again = run_plain(experiment_file, other)
    assert keys(again) == keys(first)
    for results in again.pieces.values():
        for result in results:
            stage = result.reference.stage
            if stage == "report":  # holds when it was made, and seconds
                continue
            one = first.workspace.store.open(result.reference).manifest
            assert other.store.open(result.reference).manifest == one


def test_rows_are_samples_of_their_modality(first):
    store = first.workspace.store
    table = open_pictures(store, first.pieces["fetch"][0].reference).table
    for modality in MODALITIES:
        name = next(n for n in FEATURES if modality in n)
        features = store.open(first.pieces[name][0].reference)
        assert features.shape("features")[0] == len(table.rows(modality)) == 12
