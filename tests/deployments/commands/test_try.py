"""Two folders become an experiment, a run and a page."""

from argparse import Namespace

import pytest

import deployments.commands.run
import deployments.commands.serve
from cppcl.errors import InputError
from deployments.cli import main
from deployments.commands.try_ import arrangement
from flows.configuration.load import load_experiment
from tasks.workspace import Workspace


def touch(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return folder


def test_class_folders_and_pairs(tmp_path):
    sketches = touch(tmp_path / "pets" / "drawn", "cat/1.png", "dog/1.png")
    photos = touch(tmp_path / "pets" / "photos", "cat/1.jpg", "dog/1.jpg")
    source, overrides = arrangement(sketches, photos, None)
    experiment = load_experiment(source, overrides)
    assert (source, experiment.name) == ("folder", "pets")
    assert experiment.dataset.root == tmp_path / "pets"
    assert (experiment.dataset.sketches, experiment.dataset.images) == ("drawn", "photos")

    flat = touch(tmp_path / "elsewhere" / "shoes", "1.png", "2.png")
    drawn = touch(tmp_path / "pets" / "shoe sketches", "1.png", "2.png")
    source, overrides = arrangement(drawn, flat, None)
    experiment = load_experiment(source, overrides)
    assert (source, experiment.name, experiment.dataset.root) == ("pairs", "shoes", tmp_path)
    assert experiment.dataset.sketches == "pets/shoe sketches"
    assert load_experiment(*arrangement(drawn, flat, "mine")).name == "mine"

    for one, other in ((photos, photos), (sketches, sketches.parent), (sketches.parent, photos)):
        with pytest.raises(InputError, match="one lies in the other"):
            arrangement(one, other, None)
    with pytest.raises(InputError, match="has pictures in class folders"):
        arrangement(sketches, flat, None)
    with pytest.raises(InputError, match="nowhere is not a folder"):
        arrangement(tmp_path / "nowhere", flat, None)


def test_the_page_of_the_run_is_served(tmp_path, monkeypatch):
    called = []
    for module in (deployments.commands.run, deployments.commands.serve):
        monkeypatch.setattr(module, "run", lambda options: called.append(options) or 0)
    sketches = touch(tmp_path / "drawn", "cat/1.png", "dog/1.png")
    photos = touch(tmp_path / "photos", "cat/1.jpg", "dog/1.jpg")
    arguments = ["try", str(sketches), str(photos), "--name", "pets"]
    assert main([*arguments, "--no-page", "--set", "minimum_groups=2"]) == 0
    assert [options.experiment for options in called] == ["folder"]
    assert called[0].overrides[-1] == "minimum_groups=2"
    assert main(arguments) == 0
    page: Namespace = called[-1]
    assert (page.models, page.port) == (["pets"], 8766)


def test_a_folder_names_its_runs(tmp_path):
    assert load_experiment("folder", ["root=/a/my pets"]).name == "my-pets"
    assert load_experiment("folder", ["root=/a/emoji"]).name == "folder-emoji"
    assert load_experiment("folder", ["root=/a/猫"]).name == "folder"
    assert load_experiment("folder", ["root=/a/b", "name=folder"]).name == "folder"
    assert load_experiment("emoji", ["alpha=0.1"]).name == "emoji"


FOLDERS = ("sketches", "images")


def test_a_name_is_not_taken_from_another_folder(tmp_path, cppcl):
    workspace = Workspace(tmp_path / "workspace")
    roots = [tmp_path / parent / "pets" for parent in "ab"]
    for root in roots:
        touch(root, *(f"{a}/{b}/{n}.png" for a in FOLDERS for b in "ab" for n in range(4)))
    record = {"experiment": "pets", "artifacts": {}}
    record["configuration"] = {"dataset": {"root": str(roots[0]), "images": "images"}}
    workspace.record_run("pets", "20260101T000000000000Z", record)
    workspace.check_folder("pets", roots[0] / "images")
    workspace.check_folder("others", roots[1])
    arguments = ("run", "folder", "--root", roots[1], "--workspace", workspace.root)
    refused = cppcl(*arguments, code=2)
    assert f"are of the folder {roots[0]}" in refused.stderr
    assert "--set name=NAME" in refused.stderr
    tried = ("try", roots[1] / "sketches", roots[1] / "images", "--workspace", workspace.root)
    assert f"are of the folder {roots[0]}" in cppcl(*tried, code=2).stderr
