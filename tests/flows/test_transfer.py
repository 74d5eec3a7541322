"""Train on one folder, ask on another: the whole chain, what it shows, and what is refused."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from cppcl.errors import DataUnavailableError, InputError
from deployments.serve.served_model import ServedModel
from flows.configuration.experiment import Experiment
from flows.configuration.load import load_experiment
from tasks.model import Model
from tasks.reporting.report import gather
from tasks.samples import open_pictures, open_split
from tasks.stages.fetch import fetch_data
from tasks.workspace import Workspace

pytestmark = pytest.mark.usefixtures("inline_blocks_of_module")

METHODS = {
    "cprl": {"n_atoms": 4, "alpha": 0.01, "n_rounds": 3, "pacing": {"mu": 0.5}},
    "class_cca": {"n_directions": 2, "tune": {"ridge": [0.1, 1.0]}},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory, draw_pictures) -> dict[str, Path]:
    """Two folders of the same shapes; the second has a class of its own."""
    top = tmp_path_factory.mktemp("two")
    roots = {"train_on": draw_pictures(top / "a"), "test_on": draw_pictures(top / "b", first=7)}
    for side in ("sketches", "images"):
        (roots["test_on"] / side / "triangle").rename(roots["test_on"] / side / "cone")
    return roots


@pytest.fixture(scope="module")
def configure(make_experiment) -> Callable[..., dict[str, Any]]:
    def configure(folders: dict[str, Any], **split: Any) -> dict[str, Any]:
        parts = {
            role: {"name": "folder", "root": str(root), "pairing": split.pop("pairing", "class")}
            for role, root in folders.items()
        }
        return make_experiment(
            Path(),
            name="far",
            dataset={"name": "transfer", **parts},
            protocols={
                "transfer": {"split": {"rule": "transfer", **split}, "methods": METHODS},
            },
        )

    return configure


@pytest.fixture(scope="module")
def finished(folders, configure, run_plain, tmp_path_factory) -> Any:
    experiment = Experiment.model_validate(configure(folders))
    return run_plain(experiment, Workspace(tmp_path_factory.mktemp("workspace")))


def test_only_the_other_folder_is_asked(finished):
    store = finished.workspace.store
    (table,), (split,) = (finished.pieces[name] for name in ("fetch", "split transfer"))
    pictures, rows = open_pictures(store, table.reference), open_split(store, split.reference)
    ids = np.array(pictures.table.column("ids", "sketch"))
    assert {name.partition("/")[0] for name in ids[rows.train_sketches]} == {"train_on"}
    assert {name.partition("/")[0] for name in ids[rows.test_sketches]} == {"test_on"}
    assert [line for line in pictures.findings if "never sees them: 'cone'" in line]
    assert pictures.licence.count("licence unknown") == 2
    assert all((pictures.root / path).is_file() for path in pictures.table.paths)
    scored = store.open(finished.record.scores["transfer"]["cprl"][0])
    assert scored.json("scores.json")["counts"]["n_gallery"] == 12


def test_answers_are_of_the_other_folder(finished, folders):
    reference = finished.pieces["encode cprl"][0].reference
    model = Model(finished.workspace, reference)
    found = model.search(folders["train_on"] / "sketches/circle/0.png", 30)
    assert len(found) == 12
    assert {str(match.path.resolve()).startswith(str(folders["test_on"])) for match in found} == {
        True
    }
    served = ServedModel(finished.workspace, "far", reference)
    assert served.n_pictures == 12
    assert {
        served.paths[match.row].partition("/")[0]
        for match in served.by_example(served.examples[0], 30)
    } == {"test_on"}


def test_the_report_shows_the_other_folder(finished):
    store = finished.workspace.store
    configuration = finished.experiment.model_dump(mode="json")
    table = finished.pieces["fetch"][0].reference
    page = gather(store, table, finished.record.scores, configuration)
    (protocol,) = page.protocols
    assert protocol.main_score == "map"
    assert {query.label for query in protocol.grid.queries} <= {"circle", "square", "cone"}
    assert "root" not in str(finished.experiment.without_places())


def test_features_of_a_folder_alone_are_used_again(
    finished, folders, make_experiment, run_plain, inline_blocks_of_module
):
    """Content decides, not the place in a table: nothing is decoded for the folder alone."""
    del inline_blocks_of_module[:]
    alone = make_experiment(folders["test_on"], report={"queries": 0})
    alone["dataset"]["pairing"] = "class"
    alone["curriculum"] = None
    alone["protocols"] = {
        "one": {
            "split": {"rule": "category", "minimum_groups": 2},
            "methods": {"raw_cosine": None},
        }
    }
    run_plain(Experiment.model_validate(alone), finished.workspace)
    assert inline_blocks_of_module == []


@pytest.mark.parametrize(
    ("renamed", "held_out"), [((), "samples"), (("circle", "square"), "classes")]
)
def test_folds_are_like_the_test(
    renamed, held_out, folders, configure, run_plain, workspace, tmp_path, draw_pictures
):
    """Two of three test classes are known; where none is, classes are held out in a search."""
    other = draw_pictures(tmp_path / "b", first=7)
    for side in ("sketches", "images"):
        for name in renamed:
            (other / side / name).rename(other / side / f"new {name}")
    configuration = configure({**folders, "test_on": other}) | {"curriculum": None}
    configuration["tuning"]["n_folds"] = 3
    experiment = Experiment.model_validate(configuration)
    chain = run_plain(experiment, workspace)
    (tuned,) = chain.pieces["tune class_cca"]
    folds = workspace.store.open(tuned.reference).inputs["folds"]
    assert workspace.store.open(folds).parameters["held_out"] == held_out


def test_pairs_of_two_collections(folders, configure, run_plain, workspace):
    """Persons are called alike in both and are others all the same."""
    configuration = configure(folders, target="groups", pairing="name")
    configuration["dataset"]["test_on"]["pairing"] = "name"
    chain = run_plain(Experiment.model_validate(configuration), workspace)
    store = workspace.store
    (tuned,) = chain.pieces["tune class_cca"]
    folds = store.open(store.open(tuned.reference).inputs["folds"])
    assert (folds.parameters["target"], folds.parameters["held_out"]) == ("groups", "classes")
    scores = store.open(chain.record.scores["transfer"]["cprl"][0]).json("scores.json")
    assert scores["chance"]["rank_1"] == pytest.approx(1 / 12)


@pytest.mark.parametrize(
    ("train_on", "test_on", "message"),
    [
        ("folder, root: A", "folder, root: nowhere", r"^test_on: root 'nowhere' is not a folder"),
        ("folder, root: .", "folder, root: A", r"^train_on: folder 'sketches' is not in \."),
        ("folder, root: A", "folder, root: link", r"train_on and test_on hold the same pictures"),
        ("folder, root: A", "pacs, root: A", r"^test_on: PACS .* is not complete in A"),
    ],
)
def test_a_part_that_is_no_good_is_named(
    train_on, test_on, message, folders, workspace, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("A", "link"):
        Path(name).symlink_to(folders["train_on"])
    overrides = [f"train_on={{name: {train_on}}}", f"test_on={{name: {test_on}}}"]
    data = load_experiment("transfer", overrides).dataset
    with pytest.raises((InputError, DataUnavailableError), match=message):
        fetch_data(
            workspace=workspace,
            name=data.registered_name,
            options=data.arguments(),
            key_parameters=data.key_parameters(),
        )


def test_a_moved_part_is_the_same_data(folders, configure, workspace, tmp_path):
    def fetch(**changes: Path) -> Any:
        data = Experiment.model_validate(configure({**folders, **changes})).dataset
        return fetch_data(
            workspace=workspace,
            name=data.registered_name,
            options=data.arguments(),
            key_parameters=data.key_parameters(),
        ).reference

    first = fetch()
    moved = shutil.copytree(folders["test_on"], tmp_path / "moved")
    assert fetch(test_on=moved) == first
    pictures = open_pictures(workspace.store, first)
    assert (pictures.root / "test_on").resolve() == moved.resolve()
    swapped = dict(zip(folders, reversed(folders.values()), strict=True))
    assert fetch(**swapped) != first


def test_paths_and_overrides_of_both(configure, tmp_path, monkeypatch):
    file = tmp_path / "far.yaml"
    file.write_text(yaml.safe_dump(configure({"train_on": "a", "test_on": "sub/b"})))
    monkeypatch.chdir("/")
    data = load_experiment(str(file)).dataset
    assert (data.train_on.root, data.test_on.root) == (tmp_path / "a", tmp_path / "sub/b")
    changed = load_experiment(str(file), ["test_on.root=x y", "train_on={name: emoji}"]).dataset
    assert (changed.train_on.registered_name, changed.test_on.root) == ("emoji", Path("x y"))
    assert changed.key_parameters() == {
        "train_on": {"name": "emoji"},
        "test_on": {
            "name": "folder",
            "sketches": "sketches",
            "images": "images",
            "pairing": "class",
        },
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["test_on.rot=x"], r"--set test_on\.rot: the experiment has no such option"),
        (["split.rule=category"], r"split\.rule=category: it would divide the pictures of both"),
        (["dataset={name: emoji}"], r"split\.rule=transfer: it needs two data sets"),
        (["test_on={name: transfer}"], r"dataset\.transfer\.test_on: .*'transfer'"),
        (["dataset={name: transfer}"], r"dataset\.transfer\.train_on: Field required"),
        (["train_share=0"], r"train_share: .*greater than 0 \(got 0\)"),
        (
            ["test_on={name: matrices, sketch_features: a, image_features: b, labels: c.csv}"],
            r"train_on has pictures, test_on features without pictures",
        ),
    ],
)
def test_wrong_options(changes, message):
    with pytest.raises(InputError, match=message):
        load_experiment("transfer", changes)
