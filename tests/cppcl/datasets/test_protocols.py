"""Protocols of the publications: what is labelled how, and what is divided how."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from cppcl.datasets import DATASETS, SampleTable
from cppcl.datasets.acquisition.mirrors import Listener
from cppcl.datasets.published.cufs import TEST, TRAINING, Cufs
from cppcl.datasets.published.qmul_test import CLASSES, QmulTest
from cppcl.datasets.splits import (
    Split,
    counted_split,
    instance_split,
    named_split,
    published_text,
    split_to_text,
)
from cppcl.errors import DataUnavailableError, InputError
from flows.configuration.load import load_experiment
from tasks.stages.split import RULES

from .conftest import OFFICIAL, annotation, jpeg, png, write_folder, write_zip

PARTS = [field.name for field in fields(Split)]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Root and table of the small copy of every data set."""
    made = {}
    for name, files in OFFICIAL.items():
        root = write_folder(tmp_path_factory.mktemp(name), files())
        data_set = DATASETS[name](root=root)
        made[name] = (root, data_set.table(data_set.fetch(root)))
    return made


def per_label(table, modality):
    labels = table.column("labels", modality)
    return {label: labels.count(label) for label in sorted(set(labels))}


def test_cufs_pairs_persons(tables):
    _, table = tables["cufs"]
    persons = [*TRAINING[:4], *TEST[:4]]
    for modality in ("sketch", "image"):
        assert sorted(table.column("groups", modality)) == sorted(persons)
    assert table.ids[:2] == ("sketch/f-005-01", "sketch/f-006-01")


def test_cufs_lists():
    assert (len(TRAINING), len(TEST), len({*TRAINING, *TEST})) == (88, 100, 188)
    assert sum(p.startswith("f") for p in TRAINING) == 34
    assert sum(p.startswith("f") for p in TEST) == 20
    assert sorted(TRAINING) == list(TRAINING)
    assert sorted(TEST) == list(TEST)


def test_cufs_numbered_copy_gives_the_same_persons(tables, tmp_path):
    size = (200, 250)
    files = {
        f"CUHK_student_{part}/{kind}/{n:02d}.png": png(1000 * p + 100 * k + n, size)
        for p, part in enumerate(("train", "test"))
        for k, kind in enumerate(("photos", "sketches"))
        for n in range(4)
    }
    files["CUHK_student_train/photos/88.png"] = png(1, size)
    files["AR_test/photos/AR_006.png"] = png(2, size)
    data_set = Cufs(root=write_folder(tmp_path, files))
    table = data_set.table(tmp_path)
    assert table.ids == tables["cufs"][1].ids


def test_cufs_folder_that_its_parents_name_is_not_linked(tmp_path):
    files = {f"CUHK_student_train/photos/{n:02d}.png": png(n, (200, 250)) for n in range(4)}
    source = write_folder(tmp_path, files)
    with pytest.raises(InputError, match="give a folder further up"):
        Cufs().add(tmp_path / "data", source / "CUHK_student_train/photos", link=True)
    assert Cufs().status(tmp_path / "data").state == "missing"
    added = Cufs().add(tmp_path / "data", source / "CUHK_student_train", link=True)
    assert added.new == {"training photos": 4}
    copied = Cufs().add(tmp_path / "other", source / "CUHK_student_train/photos")
    assert copied.new == {"training photos": 4}


def test_cufs_other_sizes_are_passed_over(tmp_path):
    files = OFFICIAL["cufs"]()
    originals = {f"original/{p.rpartition('/')[2]}": png(9, (1024, 768)) for p in files}
    data_set = Cufs()
    source = write_folder(tmp_path / "mine", files | originals)
    added = data_set.add(tmp_path / "data", source)
    assert added.new.total() == len(files)
    assert sorted(Path(p).name for p in added.other_sizes) == sorted(
        Path(p).name for p in originals
    )
    assert data_set.table(tmp_path / "data" / "cufs").ids == Cufs(root=source).table(source).ids
    only = write_folder(tmp_path / "only", originals)
    with pytest.raises(InputError, match=r"16 pictures of another size"):
        data_set.add(tmp_path / "empty", only)
    assert "of another size ignored" in " ".join(Cufs(root=source).findings(source))


def test_flickr15k_maps_folders_to_shapes(tables):
    _, table = tables["flickr15k"]
    shapes = {"03 big_ben": 10, "07 arch": 5, "12 swan": 5}
    assert per_label(table, "image") == shapes
    assert per_label(table, "sketch") == dict.fromkeys(shapes, 5)
    assert table.column("ids", "sketch")[0] == "sketch/03/01"
    labels = dict(zip(table.ids, table.labels, strict=True))
    assert labels["image/london_bridge/2"] == "03 big_ben"


def test_flickr15k_tells_what_does_not_agree(tmp_path):
    files = OFFICIAL["flickr15k"]()
    del files["images/source/arch/0.jpg"]
    files["images/source/moon/1.jpg"] = jpeg(7777)
    files["groundtruth"] += b"12 big_ben/0.jpg\n\n7 arch/3.png\n"
    data_set = DATASETS["flickr15k"](root=write_folder(tmp_path, files))
    found = " ".join(data_set.findings(tmp_path))
    assert "1 image of no shape in the ground truth left out: images/moon/1." in found
    assert "1 image of the ground truth not here: images/arch/0." in found
    assert "1 image with several shapes in the ground truth; the first one counts: " in found
    table = data_set.table(tmp_path)
    assert not [i for i in table.ids if "moon" in i]
    labels = dict(zip(table.ids, table.labels, strict=True))
    assert labels["image/big_ben/0"] == "03 big_ben"


@pytest.mark.parametrize("line", ["swan/1.jpg", "x swan/1.jpg", "34 swan/1.jpg", "3 swan"])
def test_flickr15k_ground_truth_that_cannot_be_read(line, tmp_path):
    files = OFFICIAL["flickr15k"]()
    files["groundtruth"] += line.encode()
    data_set = DATASETS["flickr15k"](root=write_folder(tmp_path, files))
    with pytest.raises(InputError, match=r"groundtruth, line 21: .*does not read SHAPE FOLDER"):
        data_set.table(tmp_path)


def test_flickr15k_ground_truth_alone_can_be_added(tmp_path):
    files = OFFICIAL["flickr15k"]()
    data_set = DATASETS["flickr15k"]()
    truth = write_folder(tmp_path, {"groundtruth": files.pop("groundtruth")}) / "groundtruth"
    assert data_set.add(tmp_path / "data", truth).new == {"ground truth": 1}
    data_set.add(tmp_path / "data", write_folder(tmp_path / "rest", files))
    assert data_set.status(tmp_path / "data").state == "complete"


def test_qmul_labels(tables):
    _, table = tables["qmul"]
    labels = dict(zip(table.ids, table.labels, strict=True))
    assert per_label(table, "sketch") == {"airplane": 4, "car (sedan)": 4, "table": 4}
    assert per_label(table, "image") == {"airplane": 4, "car (sedan)": 5, "table": 4}
    assert labels["image/car (sedan)/2008_009000"] == "car (sedan)"
    assert not any("2008_009001" in i or "2008_009002" in i for i in table.ids)


def test_qmul_takes_the_labels_of_the_published_test_part(tmp_path):
    named = json.loads(published_text("qmul-test-part"))["test_images"]
    number = next(n.rpartition("/")[2] for n in named if n.startswith("image/bus/"))
    files = OFFICIAL["qmul"]()
    voc = "VOCdevkit/VOC2010"
    files[f"{voc}/JPEGImages/{number}.jpg"] = jpeg(4242)
    files[f"{voc}/Annotations/{number}.xml"] = annotation(("bus", 3), ("car", 90))
    files[f"{voc}/ImageSets/Main/trainval.txt"] += f"\n{number}".encode()
    table = DATASETS["qmul"](root=write_folder(tmp_path, files)).table(tmp_path)
    assert f"image/bus/{number}" in table.ids


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"<annotation>", "no annotation of PASCAL"), (None, "has no annotation")],
)
def test_qmul_annotations_that_cannot_be_read(content, message, tmp_path):
    files = OFFICIAL["qmul"]()
    path = "VOCdevkit/VOC2010/Annotations/2008_000000.xml"
    if content is None:
        del files[path]
    else:
        files[path] = content
    with pytest.raises(InputError, match=message):
        DATASETS["qmul"](root=write_folder(tmp_path, files)).table(tmp_path)


def test_qmul_takes_its_sketches_from_tuberlin_where_that_is_here(tmp_path):
    files = OFFICIAL["qmul"]()
    sketches = {p: c for p, c in files.items() if p.startswith("png/")}
    DATASETS["tuberlin"]().add(tmp_path, write_zip(tmp_path / "t.zip", sketches))
    made = DATASETS["qmul"]
    parts = tuple(replace(part, archives=()) for part in made.parts)
    data_set = type("Offline", (made,), {"parts": parts})()
    said = []
    with pytest.raises(DataUnavailableError):
        data_set.fetch(tmp_path, Listener(log=said.append))
    assert data_set.status(tmp_path).found["sketches"] == 12
    assert f"sketches: from {tmp_path / 'tuberlin'}" in said


@pytest.mark.parametrize("photos", ["whole", "detected"])
def test_qmul_test_has_photos_or_detected_objects(photos, tables):
    root, whole = tables["qmul-test"]
    data_set = QmulTest(root=root, photos=photos)
    table = data_set.table(root)
    assert table.ids == whole.ids
    folder = "img" if photos == "whole" else "cropped"
    assert {Path(p).parent.name for p in table.paths} == {"sketch", folder}
    with pytest.raises(InputError, match="photos is 'both'"):
        QmulTest(photos="both")


def test_tuberlin_writes_classes_with_spaces(tables):
    _, table = tables["tuberlin"]
    expected = ["ant", "bus", "cup", "hot air balloon"]
    assert per_label(table, "sketch") == dict.fromkeys(expected, 12)
    assert per_label(table, "image") == dict.fromkeys(expected, 6)


def test_tuberlin_unseen_classes_are_thirty():
    split = load_experiment("tuberlin").protocols["unseen"].split
    assert len(set(split.labels)) == 30


def applicable(name, table):
    """Splits of the experiment of a data set, as they apply to its small copy."""
    for protocol in load_experiment(name).protocols.values():
        options = protocol.split.arguments()
        if protocol.split.rule == "file" and not name.endswith("-v2"):
            continue
        if name == "cufs":
            options["n_train"] = 4
        if name == "pacs":
            options |= {"train_sketches": 2, "train_images": 2}
        if protocol.split.rule == "unseen":
            options["labels"] = [x for x in options["labels"] if x in table.labels][:1]
        for seed in protocol.split.seeds:
            yield RULES[protocol.split.rule](table, seed=seed, **options)


@pytest.mark.parametrize("name", sorted(OFFICIAL))
def test_training_and_test_share_nothing(name, tables):
    """No sample, no group of a pair, no content."""
    _, table = tables[name]
    splits = list(applicable(name, table))
    assert splits
    for split in splits:
        for modality, kind in (("sketch", "sketches"), ("image", "images")):
            train, test = (getattr(split, f"{side}_{kind}") for side in ("train", "test"))
            assert len(test)
            for column in ("ids", "sha256", "groups"):
                values = np.array(table.column(column, modality))
                assert not set(values[train]) & set(values[test])


@pytest.mark.parametrize("name", ["pacs", "flickr15k", "qmul", "qmul-test", "tuberlin"])
def test_copies_of_a_test_picture_do_not_train(name, tables):
    _, table = tables[name]
    digest = table.column("sha256", "image")[0]
    columns = zip(table.modality, table.sha256, strict=True)
    twins = replace(table, sha256=tuple(digest if m == "image" else d for m, d in columns))
    for split in applicable(name, twins):
        assert len(split.train_images) == 0
        assert len(split.test_images)


def names_only(name):
    """Table with the ids that the splits of a data set name, as if from any copy."""
    if name == "cufs":
        rows = [(m, p, p, p) for m in ("sketch", "image") for p in sorted((*TRAINING, *TEST))]
    else:
        document = json.loads(published_text("qmul-test-part"))
        ids = [*document["test_sketches"], *document["test_images"]]
        rows = [(i.split("/")[0], i.split("/", 1)[1], i.split("/")[1], i) for i in ids]
    return SampleTable(
        ids=tuple(f"{m}/{key}" for m, key, _, _ in rows),
        sha256=tuple(f"{number:064d}" for number in range(len(rows))),
        paths=tuple(key for _, key, _, _ in rows),
        modality=tuple(m for m, _, _, _ in rows),
        labels=tuple(label for _, _, label, _ in rows),
        groups=tuple(group for _, _, _, group in rows),
    )


def parts_of(text):
    document = json.loads(text)
    return {part: document[part] for part in PARTS}


@pytest.mark.parametrize("seed", range(5))
def test_seeds_reproduce_the_published_splits_of_cufs(seed):
    table = names_only("cufs")
    made = instance_split(table, seed=seed, n_train=88)
    text = split_to_text(made, table, rule="", seed=seed)
    assert parts_of(text) == parts_of(published_text(f"cufs-random-{seed}"))
    read = named_split(table, seed=seed, path="cufs-random-{seed}")
    assert [len(getattr(read, part)) for part in PARTS] == [88, 88, 100, 100]


def test_official_split_of_cufs():
    table = names_only("cufs")
    split = named_split(table, seed=0, path="cufs-official")
    groups = np.array(table.column("groups", "sketch"))
    assert set(groups[split.train_sketches]) == set(TRAINING)
    assert set(np.array(table.column("groups", "image"))[split.test_images]) == set(TEST)


@pytest.mark.parametrize("seed", range(3))
def test_seeds_reproduce_the_published_splits_of_qmul_test(seed):
    table = names_only("qmul-test")
    protocol = load_experiment("qmul-test").protocols["half"].split
    options = protocol.arguments()
    made = counted_split(table, seed=seed, **options)
    text = split_to_text(made, table, rule="", seed=seed)
    assert parts_of(text) == parts_of(published_text(f"qmul-test-half-{seed}"))
    assert [len(getattr(made, part)) for part in PARTS] == [42, 420, 42, 420]


def test_queries_of_qmul_test_are_the_last_three_by_name():
    table = names_only("qmul-test")
    split = named_split(table, seed=0, path="qmul-test-half-0")
    ids = table.column("ids", "sketch")
    for label in CLASSES:
        names = sorted(i for i in ids if i.split("/")[1] == label)
        queries = sorted(ids[row] for row in split.test_sketches if ids[row] in names)
        assert queries == names[-3:]


def test_published_splits_of_pacs_are_of_60_a_class():
    for seed in range(3):
        document = json.loads(published_text(f"pacs-category-{seed}"))
        assert document["test_sketches"] == document["test_images"] == "rest"
        for part in ("train_sketches", "train_images"):
            labels = [name.split("/")[1] for name in document[part]]
            assert {label: labels.count(label) for label in labels} == dict.fromkeys(labels, 60)
            assert len(labels) == 420


def test_the_published_test_part_of_qmul():
    document = json.loads(published_text("qmul-test-part"))
    assert document["train_sketches"] == document["train_images"] == "rest"
    assert len(set(document["test_sketches"])) == 84
    assert len(set(document["test_images"])) == 840


def test_names_in_any_unicode_form_are_the_same_sample(tmp_path):
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    picture = png(1)
    files = {f"sketch/dog/{composed}.png": picture, f"photo/dog/{decomposed}.jpg": jpeg(2)}
    files |= {"sketch/horse/日本.png": png(3), "photo/horse/日本.jpg": jpeg(4)}
    data_set = DATASETS["pacs"]()
    data_set.add(tmp_path / "data", write_zip(tmp_path / "a.zip", files))
    again = data_set.add(
        tmp_path / "data", write_folder(tmp_path / "b", {f"sketch/dog/{decomposed}.png": picture})
    )
    assert (again.known, again.new.total()) == (1, 0)
    root = data_set.fetch(tmp_path / "data")
    table = data_set.table(root)
    assert table.ids == (
        f"sketch/dog/{composed}",
        "sketch/horse/日本",
        f"image/dog/{composed}",
        "image/horse/日本",
    )
    assert all((root / path).is_file() for path in table.paths)
