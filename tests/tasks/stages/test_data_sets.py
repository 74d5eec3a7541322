"""Published data sets through the stages: table, split, and a gallery that nothing trains on."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cppcl.datasets import DATASETS
from cppcl.errors import DataUnavailableError, InputError
from flows.configuration.load import load_experiment
from storage import Reference
from tasks.progress import Progress, listening
from tasks.samples import open_pictures, open_split
from tasks.stages.encode import encode_features
from tasks.stages.evaluate import evaluate_method
from tasks.stages.extract import extract_features
from tasks.stages.fetch import fetch_data
from tasks.stages.split import split_table
from tasks.stages.train import train_method, training_recipe
from tasks.workspace import Workspace
from tests.conftest import draw

LABELS = ("car (sedan)", "chair", "standing bird")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Some of the published test part of Queen Mary SBIR, drawn anew."""
    for k, label in enumerate(LABELS):
        for number in range(6):
            place = tmp_path / "images" / label
            draw(place / "sketch" / f"{number}.png", "circle", 30 * k + number, filled=False)
            draw(place / "img" / f"{number}.jpg", "circle", 30 * k + number, filled=True)
    return tmp_path / "images"


def fetch(workspace: Workspace, root: Path | None) -> Reference:
    options = load_experiment("qmul-test", [f"root={root}"] if root else []).dataset
    return fetch_data(
        workspace=workspace,
        name="qmul-test",
        options=options.arguments(),
        key_parameters=options.key_parameters(),
    ).reference


def split(workspace: Workspace, table: Reference, protocol: str) -> Reference:
    options = load_experiment("qmul-test").protocols[protocol].split
    return split_table(
        workspace=workspace,
        table=table,
        rule=options.rule,
        options=options.arguments(),
        seed=0,
    ).reference


def test_a_folder_becomes_a_table(workspace, root, said):
    table = fetch(workspace, root)
    pictures = open_pictures(workspace.store, table)
    assert len(pictures.table) == 36
    assert pictures.licence.startswith("Queen Mary SBIR, published test part: Y. Li")
    assert "sketches: 18 of 84 files are here." in pictures.findings
    assert any("18 of 84" in line for line in said)


def test_the_key_does_not_tell_where_it_lies(workspace, root):
    given = fetch(workspace, root)
    DATASETS["qmul-test"]().add(workspace.data, root)
    assert fetch(workspace, None) == given


def test_the_shared_folder_is_used(workspace, root, tmp_path, monkeypatch):
    monkeypatch.setenv("CPPCL_DATA", str(tmp_path / "shared"))
    assert workspace.published_data == tmp_path / "shared"
    DATASETS["qmul-test"]().add(workspace.published_data, root)
    table = fetch(workspace, None)
    assert open_pictures(workspace.store, table).root == tmp_path / "shared" / "qmul-test"


def test_missing_data_is_not_worth_a_retry(workspace, monkeypatch):
    told: list[Any] = []
    monkeypatch.setattr("cppcl.datasets.published.published_set.obtain", refuse)
    with (
        listening(on_message=told.append),
        pytest.raises(DataUnavailableError, match="cppcl data add qmul-test"),
    ):
        fetch(workspace, None)
    assert any("CC BY 4.0" in line for line in told)


def refuse(*arguments: object) -> None:
    raise DataUnavailableError("no network")


def test_downloads_are_shown_in_megabytes():
    from tasks.stages.fetch import listener

    told: list[Progress] = []
    with listening(on_progress=told.append):
        listener().progress("a.zip", 3_400_000, 25_000_000)
        listener().progress("unpacking a.zip", 3_400_000, 0)
    assert [(p.label, p.done, p.total) for p in told] == [
        ("a.zip, MB", 3, 25),
        ("unpacking a.zip, MB", 3, 3),
    ]


def test_split_of_counts(workspace, root):
    table = fetch(workspace, root)
    rows = open_split(workspace.store, split(workspace, table, "half"))
    ids = np.array(open_pictures(workspace.store, table).table.column("ids", "sketch"))
    last = [f"sketch/{label}/{number}" for label in LABELS for number in (3, 4, 5)]
    assert list(ids[rows.test_sketches]) == last
    assert (len(rows.train_images), len(rows.test_images)) == (9, 9)


def test_split_of_a_file_is_keyed_on_what_it_says(workspace, root, tmp_path):
    table = fetch(workspace, root)
    samples = open_pictures(workspace.store, table).table
    document = {
        "format": 1,
        "table_digest": "",
        "test_sketches": samples.column("ids", "sketch")[:3],
        "test_images": samples.column("ids", "image")[:4],
        "train_sketches": "rest",
        "train_images": "rest",
    }

    def made(name: str) -> Any:
        (tmp_path / name).write_text(json.dumps(document))
        return split_table(
            workspace=workspace,
            table=table,
            rule="file",
            options={"path": str(tmp_path / "{seed}.json")},
            seed=int(name.removesuffix(".json")),
        ).reference

    first = made("0.json")
    rows = open_split(workspace.store, first)
    assert (len(rows.test_sketches), len(rows.train_sketches)) == (3, 15)
    assert (len(rows.test_images), len(rows.train_images)) == (4, 14)
    assert made("0.json") == first
    document["test_images"] = document["test_images"][:3]
    assert made("0.json") != first
    with pytest.raises(InputError, match=r"7\.json' cannot be read"):
        split_table(
            workspace=workspace,
            table=table,
            rule="file",
            options={"path": str(tmp_path / "{seed}.json")},
            seed=7,
        )


@pytest.mark.usefixtures("inline_blocks")
def test_a_gallery_that_nothing_trains_on(workspace: Workspace, root: Path) -> None:
    table = fetch(workspace, root)
    rows = split(workspace, table, "gallery")
    features = {
        f"{modality}_features": extract_features(
            workspace=workspace,
            table=table,
            modality=modality,
            extractor="pixels",
            options={"size": [8, 8]},
            longest_side=40,
            block_rows=8,
        ).reference
        for modality in ("sketch", "image")
    }
    common: dict[str, Any] = {"workspace": workspace, "table": table, "split": rows}

    def train(method: str) -> Reference:
        recipe = training_recipe(
            table=table,
            split=rows,
            **features,
            curricula=None,
            method=method,
            options={},
            target="labels",
        )
        return train_method(workspace=workspace, recipe=recipe).reference

    codes = encode_features(workspace=workspace, model=train("raw_cosine"), **features).reference
    scored = evaluate_method(
        **common, target="labels", codes=codes, metric="cosine", ranks=(1, 5), seed=0
    ).reference
    scores = workspace.store.open(scored).json("scores.json")
    # 6 of 18 images are relevant to each of the 9 queries.
    assert scores["chance"]["rank_1"] == pytest.approx(1 / 3)
    with pytest.raises(InputError):
        train("centred_cosine")
