"""``cppcl data``: what is here, what is missing, how it comes here, and what it looks like."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from PIL import Image

from cppcl.datasets import DATASETS
from cppcl.errors import DataUnavailableError

Command = Callable[..., Any]
LABELS = ("dog", "horse", "person")
NAMES = (
    *("cufs", "flickr15k", "pacs", "qmul", "qmul-chair-v2", "qmul-shoe-v2", "qmul-test"),
    *("quickdraw-ext", "sketchy-ext", "tuberlin", "tuberlin-ext"),
)


def picture(path: Path, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (9, 7), (number % 256, number // 256, 40)).save(path)


@pytest.fixture
def pacs(tmp_path) -> Path:
    """Some of PACS, drawn anew."""
    for side, domain in enumerate(("sketch", "photo")):
        for k, label in enumerate(LABELS):
            for number in range(4):
                place = tmp_path / "PACS" / domain / label
                picture(place / f"{number}.png", 1000 * side + 100 * k + number)
    (tmp_path / "PACS/readme.txt").write_text("read me")
    return tmp_path / "PACS"


@pytest.fixture
def data(cppcl, tmp_path) -> Command:
    """Run ``cppcl data`` on a workspace of the test."""

    def run(*arguments: object, **options: Any) -> Any:
        return cppcl("data", *arguments, "--workspace", tmp_path / "workspace", **options)

    return run


@pytest.fixture
def offline(monkeypatch) -> None:
    """Nothing may leave this machine."""

    def refuse(*arguments: object) -> None:
        raise DataUnavailableError("there is no network in tests")

    monkeypatch.setattr("cppcl.datasets.published.published_set.obtain", refuse)


def test_list_shows_every_set(data, tmp_path):
    result = data("list", code=0)
    for name in NAMES:
        assert f"\n  {name} " in result.stdout
    assert "20,000 + 204,070" in result.stdout
    assert "\n  emoji " in result.stdout
    assert "CC BY 4.0" in result.stdout
    assert result.stdout.count("missing") == len(NAMES)
    assert not (tmp_path / "workspace").exists()


def test_status_of_what_is_missing(data):
    result = data("status", "flickr15k", code=1)
    assert result.stdout.startswith("flickr15k: missing, ")
    assert "images: 0 of 14,660 files" in result.stdout
    for address in ("330sketches.zip", "13AFiwNh4FMks_jGfL4UDntMf0lHL6BTQ"):
        assert address in result.stdout
    assert "cppcl data add flickr15k" in result.stdout
    assert "cite: R. Hu, J. Collomosse" in result.stdout


def test_status_of_all(data, pacs):
    data("add", "pacs", pacs)
    result = data("status", code=1)
    for name in NAMES:
        assert f"{name}: {'complete' if name == 'pacs' else 'missing'}, " in result.stdout


def test_add_and_look(data, pacs, tmp_path):
    with ZipFile(tmp_path / "photo.zip", "w") as archive:
        for path in (pacs / "photo").rglob("*.png"):
            archive.write(path, path.relative_to(tmp_path))
    result = data("add", "pacs", pacs / "sketch", tmp_path / "photo.zip", code=0)
    lines = result.stdout.splitlines()
    assert lines[0] == f"{pacs / 'sketch'}: 12 files of sketches; 0 were here already"
    assert lines[1] == f"{tmp_path / 'photo.zip'}: 12 files of photos; 0 were here already"
    assert "pacs: complete" in lines[2]
    assert "  sketches: 12 of 3,929 files are here." in lines
    again = data("add", "pacs", pacs)
    assert f"{pacs}: nothing new; 24 were here already" in again.stdout
    assert "1 other file ignored" in again.stderr
    status = data("status", "pacs", code=0)
    assert "No licence was found" in status.stdout


def test_the_wrong_archive_is_told_what_it_looks_like(data, pacs):
    result = data("add", "cufs", pacs, code=2)
    assert (
        "holds nothing of this data set, which is 88 files of training sketches" in result.stderr
    )
    assert f"It looks like pacs: cppcl data add pacs {pacs}" in result.stderr


def test_the_shared_folder_is_used(data, pacs, tmp_path, monkeypatch):
    monkeypatch.setenv("CPPCL_DATA", str(tmp_path / "shared"))
    data("add", "pacs", pacs)
    assert (tmp_path / "shared" / "pacs" / "PACS" / "sketch" / "dog" / "0.png").is_file()
    assert str(tmp_path / "shared" / "pacs") in data("status", "pacs").stdout


def test_preview(data, pacs, tmp_path):
    data("add", "pacs", pacs)
    output = tmp_path / "sheet.png"
    result = data("preview", "pacs", "--output", output, "--classes", 2, "--per-class", 3)
    assert (result.code, result.stdout.strip()) == (0, str(output))
    with Image.open(output) as sheet:
        assert sheet.size == (170 + 6 * 102 + 12, 18 + 2 * 102 + 18)


def test_splits_are_written_and_read_back(data, tmp_path):
    for label in ("bus", "chair"):
        for number in range(6):
            picture(tmp_path / f"q/images/{label}/sketch/{number}.png", number + len(label))
            picture(tmp_path / f"q/images/{label}/img/{number}.png", 500 + number + len(label))
    data("add", "qmul-test", tmp_path / "q")
    data("splits", "qmul-test", "--output", tmp_path / "splits", code=0)
    names = [
        f"qmul-test-{name}.json" for name in ("gallery-0", *(f"half-{seed}" for seed in range(5)))
    ]
    assert sorted(p.name for p in (tmp_path / "splits").iterdir()) == names
    document = json.loads((tmp_path / "splits/qmul-test-half-1.json").read_text())
    assert document["seed"] == 1
    assert document["rule"].startswith("counted(")
    assert document["test_sketches"] == [
        f"sketch/{label}/{number}" for label in ("bus", "chair") for number in (3, 4, 5)
    ]

    from cppcl.datasets.splits import counted_split, named_split

    table = DATASETS["qmul-test"](root=tmp_path / "q").table(tmp_path / "q")
    read = named_split(table, seed=1, path=str(tmp_path / "splits/qmul-test-half-{seed}.json"))
    made = counted_split(table, seed=1, test_sketches=3, sketch_order="name", train_images=0.5)
    for part in ("train_sketches", "train_images", "test_sketches", "test_images"):
        assert list(getattr(read, part)) == list(getattr(made, part))


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("action", [["get"], ["preview"], ["splits", "--output", "x"]])
def test_missing_data_says_how_to_get_it(action, data) -> None:
    result = data(action[0], "pacs", *action[1:], code=1)
    assert "No licence was found" in result.stderr  # the terms, before anything is fetched
    assert "there is no network in tests" in result.stderr
    assert "cppcl data add pacs" in result.stderr
    assert "Traceback" not in result.stderr


def test_get_downloads(data, pacs, tmp_path, monkeypatch):
    def obtain(archive: Any, folder: Path, listener: Any) -> Path:
        listener.progress(archive.file, 5_000_000, 9_000_000)
        folder.mkdir(parents=True)
        with ZipFile(folder / archive.file, "w") as file:
            for path in pacs.rglob("*.png"):
                file.write(path, path.relative_to(tmp_path))
        return folder / archive.file

    monkeypatch.setattr("cppcl.datasets.published.published_set.obtain", obtain)
    result = data("get", "pacs")
    assert (result.code, result.stdout.strip()) == (0, str(tmp_path / "workspace/data/pacs"))
    assert data("status", "pacs").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["status", "pasc"], "'pasc' is not one of the data sets cufs, flickr15k"),
        (["get", "emoji"], "'emoji' is not one of"),
        (["add", "pacs", "nowhere.zip"], "nowhere.zip does not exist"),
        (["preview", "pacs", "--classes", "0"], "n_classes=0"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_wrong_use_is_told(arguments, message, data, pacs):
    data("add", "pacs", pacs)
    result = data(*arguments, code=2)
    assert message in result.stderr


def test_damage_to_an_archive_is_no_reason_to_add_it_again(data, tmp_path):
    source = tmp_path / "PACS.zip"
    with ZipFile(source, "w") as archive:
        archive.writestr("PACS/sketch/dog/1.png", b"\x89PNG" + b"0123456789" * 9)
    content = source.read_bytes()
    source.write_bytes(content.replace(b"0123456789", b"9876543210", 1))
    result = data("add", "pacs", source, code=2)
    assert "damaged" in result.stderr
    assert "looks like" not in result.stderr


@pytest.mark.parametrize("place", ["data", "data/pacs", "data/pacs/.lock"])
def test_something_in_the_way_is_named(place, data, pacs, tmp_path):
    blocked = tmp_path / "workspace" / place
    blocked.parent.mkdir(parents=True)
    if place.endswith(".lock"):
        blocked.mkdir()
    else:
        blocked.touch()
    result = data("add", "pacs", pacs)
    assert "remove it, or let CPPCL_DATA name another folder" in result.stderr


def test_a_list_goes_on_past_a_set_that_cannot_be_read(data, pacs, tmp_path):
    (pacs / "sketch/dog/9.png").symlink_to(tmp_path / "nowhere")
    home = tmp_path / "workspace/data/pacs"
    home.parent.mkdir(parents=True)
    home.symlink_to(pacs)
    result = data("list", code=0)
    assert "unreadable" in result.stdout
