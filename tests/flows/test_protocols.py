"""Published protocols, each run whole on a small archive of the right layout."""

import io

import numpy as np
import pytest
from PIL import Image

from cppcl.datasets import DATASETS
from cppcl.datasets.published.zero_shot import ZeroShotSet
from cppcl.datasets.splits import UNSEEN_CLASSES, unseen_split
from cppcl.report.tables import score_title
from flows.configuration.load import load_experiment
from flows.reproduction.config import PrintedRow, load_reproduction
from flows.reproduction.runs import check_items
from tasks.reporting.reproduction.protocols import protocol
from tasks.reporting.reproduction.series import MeasuredItem, Series
from tasks.stages.evaluate import open_evaluation, open_test_set
from tasks.stages.tune import best_options
from tasks.workspace import Workspace
from tests.cppcl.datasets.conftest import (
    qmul_v2_official,
    quickdraw_ext_official,
    sketchy_ext_official,
    tuberlin_official,
    write_zip,
)

pytestmark = pytest.mark.usefixtures("inline_blocks_of_module", "blank_reports")

SEEN = ("zebra finch", "old_shoe", "cloud", "kite")
"""Classes that no publication calls unseen."""
PIXELS = [f"features.{m}={{name: pixels, size: [8, 8]}}" for m in ("sketch", "image")]


def archive(name):
    """Files of every unseen class and of a few seen ones, no two pictures of which are alike."""
    random = np.random.default_rng(0)
    files = paths(name)
    for path in files:
        buffer = io.BytesIO()
        pixels = random.integers(0, 256, (6, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(buffer, "PNG")
        files[path] = buffer.getvalue()
    return files


def paths(name):
    if name.startswith("qmul"):
        return qmul_v2_official("Shoe" if "shoe" in name else "Chair")
    unseen = sorted({c for split in DATASETS[name].unseen for c in UNSEEN_CLASSES[split]})
    build = {
        "sketchy-ext": sketchy_ext_official,
        "tuberlin-ext": tuberlin_official,
        "quickdraw-ext": quickdraw_ext_official,
    }
    return build[name]((*unseen, *SEEN))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A workspace with all of the data."""
    workspace = Workspace(tmp_path_factory.mktemp("protocols") / "workspace")
    for name in ("sketchy-ext", "tuberlin-ext", "quickdraw-ext", "qmul-shoe-v2", "qmul-chair-v2"):
        source = write_zip(workspace.root / f"{name}.zip", archive(name))
        DATASETS[name]().add(workspace.published_data, source)
    return workspace


def brute_scores(similarity, relevant):
    """Scores of one ranking, each by the words of its convention."""
    marks = relevant[np.argsort(-similarity, kind="stable")]
    places = np.arange(1, len(marks) + 1)
    precisions, R = np.cumsum(marks) / places, marks.sum()
    found = {"map": (precisions * marks).sum() / R}
    for k in (100, 200):
        found[f"precision_at_{k}"] = marks[:k].sum() / k
    total, hits = (precisions * marks)[:200].sum(), marks[:200].sum()
    for name, by in {"R": R, "min_k_r": min(200, R), "hits": max(hits, 1)}.items():
        found[f"map_at_200_{name}"] = total / by
    return found | {f"rank_{k}": marks[:k].any() for k in (1, 5, 10)}


@pytest.mark.parametrize(
    ("experiment", "name", "target"),
    [
        ("sketchy-ext", "split_1", "labels"),
        ("sketchy-ext", "split_2", "labels"),
        ("sketchy-ext", "split_2_generalised", "labels"),
        ("sketchy-fine", "split_2", "groups"),
        ("tuberlin-ext", "generalised", "labels"),
        ("quickdraw-ext", "unseen", "labels"),
        ("qmul-shoe-v2", "archive", "groups"),
        ("qmul-chair-v2", "archive", "groups"),
    ],
)
def test_a_protocol_runs_whole_and_scores_as_brute_force(
    experiment, name, target, place, run_plain
):
    whole = load_experiment(experiment, PIXELS)
    kept = whole.protocols[name]
    cosine = kept.model_copy(
        update={"methods": {"centred_cosine": kept.methods["centred_cosine"]}}
    )
    chain = run_plain(whole.model_copy(update={"protocols": {name: cosine}}), place)
    (evaluation,) = chain.record.scores[name]["centred_cosine"]
    stored = place.store.open(evaluation)
    inputs = [stored.inputs[name] for name in ("codes", "split", "table")]
    test = open_test_set(place.store, *inputs, target)
    if kept.split.rule == "unseen":
        assert set(test.query_classes) == set(kept.split.labels)
        assert (set(test.gallery_classes) > set(kept.split.labels)) == bool(kept.split.seen_images)
    if target == "groups" and experiment.startswith("sketchy"):
        assert len(test.gallery_rows) == 4 * 21  # without the photos of the extension
    queries, gallery = (
        codes / np.linalg.norm(codes, axis=1, keepdims=True)
        for codes in (test.query_codes.astype(float), test.gallery_codes.astype(float))
    )
    found, expected = stored.json("scores.json")["scores"], {}
    for code, label, kind in zip(queries, test.query_labels, test.query_classes, strict=True):
        of_query = brute_scores(gallery @ code, test.gallery_labels == label)
        inside = test.gallery_classes == kind
        in_class = brute_scores((gallery @ code)[inside], (test.gallery_labels == label)[inside])
        of_query |= {f"{n}_in_class": v for n, v in in_class.items() if n.startswith("rank")}
        for score, value in of_query.items():
            expected.setdefault(score, []).append(value)
    assert ("rank_1_in_class" in found) == (experiment == "sketchy-fine")
    for score, value in found.items():
        assert value == pytest.approx(np.mean(expected[score]), abs=1e-9), score
        assert score_title(score) != f"{score} (%)"


@pytest.mark.parametrize("seen_images", [0, 0.5])
def test_unseen_classes_are_in_no_part_of_training_or_validation(seen_images, place, run_plain):
    """Every combination of a search is scored on classes of training alone."""
    experiment = load_experiment(
        "tuberlin-ext",
        [
            *PIXELS,
            f"unseen.split.seen_images={seen_images}",
            "unseen.methods={class_cca: {n_directions: 2, tune: {ridge: [0.1, 1.0]}}}",
            "tuning.n_folds=2",
        ],
    )
    protocols = {"unseen": experiment.protocols["unseen"]}
    chain = run_plain(experiment.model_copy(update={"protocols": protocols}), place)
    (tuning,) = chain.record.tunings["unseen"]["class_cca"]
    search = place.store.open(tuning)
    assert best_options(place.store, tuning)["ridge"] in (0.1, 1.0)
    folds = place.store.open(search.inputs["folds"])
    assert folds.parameters["held_out"] == "classes"
    table = DATASETS["tuberlin-ext"]().table(place.published_data / "tuberlin-ext")
    split = place.store.open(folds.inputs["split"])
    unseen = set(UNSEEN_CLASSES["tuberlin-ext-30"])
    for modality, part in (("sketch", "train_sketches"), ("image", "train_images")):
        labels = np.array(table.column("labels", modality))[split.array(part)]
        assert set(labels) == {name.replace("_", " ") for name in SEEN}
        assert not set(labels) & unseen


@pytest.fixture(scope="module")
def beside(place, run_plain):
    """Published rows beside ours; each number is what ours has, under this or that convention."""
    overrides = [*PIXELS, "map_at=[200]", "unseen.methods={centred_cosine: {}}"]
    experiment = load_experiment("quickdraw-ext", overrides)
    protocols = {"unseen": experiment.protocols["unseen"]}
    chain = run_plain(experiment.model_copy(update={"protocols": protocols}), place)
    evaluations = chain.record.scores["unseen"]["centred_cosine"]
    ours = place.store.open(evaluations[0]).json("scores.json")["scores"]
    by_r = ours["map_at_200_R"]
    printed = {
        "same": {"map": ours["map"], "precision_at_200": 0.99, "map_at_200_R": by_r},
        "unlike": {"map_at_200": by_r, "map_at_200_hits": by_r, "map_at_100_R": by_r},
    }
    series = [Series(name, about={"printed": row, "note": ""}) for name, row in printed.items()]
    series.append(Series("Ours", evaluations, {"printed": {}, "note": ""}))
    scores = open_evaluation(place.store, evaluations[0])
    here = scores.n_queries, scores.n_gallery
    return {
        sizes: protocol(
            place.store, MeasuredItem("x", "protocol", "t", "a table", {"sizes": sizes}, series)
        )["tables"]
        for sizes in (None, here, (here[0], here[1] + 1))
    }


def test_published_rows_stand_beside_ours_under_their_own_conventions(beside):
    (whole, compared), same_sizes, other_sizes = beside.values()
    assert same_sizes[1].rows == compared.rows
    texts = [row.cells[2].text for row in other_sizes[1].rows]
    assert not any("agrees" in text or "lower" in text for text in texts)
    assert texts[0].startswith("not comparable, other pictures: ")
    ours = dict(zip(whole.columns, [cell.value for cell in whole.rows[-1].cells], strict=True))
    known = {name for name, value in ours.items() if value is not None}
    assert known == {"mAP (%)", "P@200 (%)", "mAP@200 / R (%)"}
    assert "mAP@200, divisor not stated (%)" in ours
    assert "divided by R" in whole.caption
    cells = {(row.title, row.cells[0].text): row.cells[2].text for row in compared.rows}
    assert cells["same", "mAP"].endswith(", agrees")
    assert cells["same", "mAP@200 / R"].endswith(", agrees")
    assert cells["same", "P@200"].endswith(", lower")
    for name in ("mAP@200, divisor not stated", "mAP@200 / hits"):
        assert cells["unlike", name].startswith("not comparable: mAP@200 / R ")
    assert cells["unlike", "mAP@100 / R"] == "–"


@pytest.mark.parametrize("name", ["sketchy-ext", "tuberlin-ext", "quickdraw-ext"])
def test_published_rows_of_every_protocol(name):
    options = load_reproduction(name)
    check_items(options.items, options.runs)
    rows = options.items["category"].rows
    chosen = {"sketchy-ext": "sketchy-ext-21"}.get(name, f"{name}-30")
    assert options.items["category"].sizes == tuple(DATASETS[name].unseen[chosen])
    assert len(rows) == 6 + (name != "quickdraw-ext")
    assert "2503.14129" in options.items["category"].source
    expected = {
        "sketchy-ext": {"map_at_200": 0.527, "precision_at_200": 0.533},
        "tuberlin-ext": {"map": 0.481, "precision_at_100": 0.532},
        "quickdraw-ext": {"map": 0.170, "precision_at_200": 0.268},
    }
    assert rows["dinov2"].scores == expected[name]


def test_a_printed_score_that_is_not_known_is_refused():
    with pytest.raises(
        ValueError, match="score 'map_at_200_min' is not known; give map, map_at_k"
    ):
        PrintedRow(title="x", scores={"map_at_200_min": 0.5})


def test_a_generalised_gallery_holds_a_share_of_every_seen_class(place):
    table = DATASETS["quickdraw-ext"]().table(place.published_data / "quickdraw-ext")
    labels = UNSEEN_CLASSES["quickdraw-ext-30"]
    plain = unseen_split(table, seed=3, labels=labels)
    both = unseen_split(table, seed=3, labels=labels, seen_images=0.5)
    assert np.array_equal(plain.test_sketches, both.test_sketches)
    assert np.array_equal(plain.train_sketches, both.train_sketches)
    moved = np.setdiff1d(both.test_images, plain.test_images)
    assert np.array_equal(np.union1d(moved, both.train_images), plain.train_images)
    names, counts = np.unique(np.array(table.column("labels", "image"))[moved], return_counts=True)
    assert (len(names), set(counts)) == (len(SEEN), {3})


def test_test_classes_are_those_of_the_publications():
    sizes = {name: len(set(classes)) for name, classes in UNSEEN_CLASSES.items()}
    assert sizes == {
        "sketchy-ext-25": 25,
        "sketchy-ext-21": 21,
        "tuberlin-ext-30": 30,
        "quickdraw-ext-30": 30,
    }
    counted = {
        name: tuple(counts)
        for made in DATASETS.values()
        if issubclass(made, ZeroShotSet)
        for name, counts in made.unseen.items()
    }
    assert counted == {
        "sketchy-ext-25": (15_229, 17_101),
        "sketchy-ext-21": (12_694, 12_553),
        "tuberlin-ext-30": (2_400, 27_989),
        "quickdraw-ext-30": (92_291, 54_151),
    }
