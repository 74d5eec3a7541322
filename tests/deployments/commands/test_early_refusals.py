"""Wrong places are refused before Prefect starts."""

import os
import re

import numpy as np
import pytest
import yaml

import deployments.commands.run
from deployments.cli import WRONG_USE, main


@pytest.fixture(autouse=True)
def without_prefect(monkeypatch):
    def start(*arguments, **options):
        raise AssertionError("Prefect was started")

    monkeypatch.setattr(deployments.commands.run, "prepare_prefect", start)


def test_sweeps(capsys, monkeypatch):
    monkeypatch.setattr("deployments.commands.sweep.prepare_prefect", None)
    arguments = ["cprl.n_atoms=[5,6]", "--set", "dataset.root=nowhere"]
    assert main(["sweep", "folder", *arguments]) == WRONG_USE
    assert "nowhere' is not a folder" in capsys.readouterr().err


def refused(capsys, *arguments):
    changes = [text for pair in arguments for text in ("--set", pair)]
    assert main(["run", "folder", *changes]) == WRONG_USE
    return capsys.readouterr().err


def test_folders(capsys, tmp_path):
    assert "nowhere' is not a folder" in refused(capsys, f"dataset.root={tmp_path / 'nowhere'}")
    assert "'sketches' is not in" in refused(capsys, f"dataset.root={tmp_path}")
    for name in ("sketches/a/1.png", "sketches/b/1.png", "images/c/1.png"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x")
    assert "no class has both" in refused(capsys, f"dataset.root={tmp_path}")
    os.mkfifo(tmp_path / "pairs.csv")
    said = refused(capsys, f"dataset.root={tmp_path}", "dataset.pairs=pairs.csv")
    assert "pairs.csv is a pipe" in said


def test_matrices(capsys, tmp_path, monkeypatch):
    from cppcl.datasets import Matrices
    from cppcl.errors import InputError

    np.save(tmp_path / "m.npy", np.zeros((2, 2)))
    (tmp_path / "l.csv").write_text("modality,row\n")
    given = {"image_features": tmp_path / "m.npy", "labels": tmp_path / "l.csv"}
    with pytest.raises(InputError, match=r"gone\.npy: no such file"):
        Matrices(sketch_features=tmp_path / "gone.npy", **given).check()
    with pytest.raises(InputError, match="it needs modality, row, label"):
        Matrices(sketch_features=tmp_path / "m.npy", **given).check()


def test_two_data_sets_and_published_ones(tmp_path):
    from cppcl.errors import InputError
    from flows.configuration.datasets import check_places
    from flows.configuration.load import load_experiment

    changes = ["dataset.test_on={name: pacs, root: nowhere}"]
    experiment = load_experiment("transfer", ["dataset.train_on={name: emoji}", *changes])
    with pytest.raises(InputError, match=r"^test_on: root 'nowhere' is not a folder"):
        check_places(experiment.dataset)


@pytest.mark.parametrize(
    ("item", "changes", "message"),
    [
        ({"run": "cv"}, ["crop=[0, 0]"], r"item table, run cv: "),
        ({"run": "cv", "protocol": "x"}, [], r"item table, run cv: .* has no protocol 'x'"),
        ({"run": "cv", "method": "gone"}, [], r"item table, run cv: .* has no method 'gone'"),
        ({"run": "cv"}, ["dataset.root=nowhere"], r"nowhere' is not a folder"),
        ({"run": "cv", "axis": "alfa"}, [], r"item curve, run cv: .*alfa"),
    ],
)
def test_reproductions(item, changes, message, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("deployments.commands.reproduce.prepare_prefect", None)
    head = {"title": "t", "source": "s"}
    method = item.get("method", "cprl")
    lines = {"a": {"title": "A", "run": "cv", "method": method}}
    items = {"table": {"kind": "scores", **head, "score": "map", "lines": lines}}
    if "axis" in item:
        axis = {"option": item["axis"], "title": "x", "values": [1.0]}
        curve = {"run": "cv", "methods": {"cprl": "CPRL"}, "axes": [axis]}
        items["curve"] = {"kind": "sensitivity", **head, **curve}
    run = {"experiment": "folder", "protocol": item.get("protocol", "category")}
    data = {"name": "tiny", "title": "T", "dataset": "folder", "items": items}
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump({**data, "runs": {"cv": {**run, "overrides": changes}}}))
    assert main(["reproduce", str(path)]) == WRONG_USE
    assert re.search(message, capsys.readouterr().err)
