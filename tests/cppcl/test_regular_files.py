"""A pipe, a socket or a device is refused wherever a file is given, and never waited for."""

import os
import re
import socket
from pathlib import Path

import pytest

from cppcl.audit.verdicts import read_verdict_file
from cppcl.curriculum.annotation.answers import read_answers
from cppcl.datasets import Matrices
from cppcl.datasets.acquisition.archives import Limits, members
from cppcl.datasets.files import file_sha256
from cppcl.datasets.splits.published import split_text
from cppcl.errors import CppclError, InputError, PictureError
from cppcl.features.networks.weights import read_weights, weights_identity
from cppcl.pictures.decoding import decode_picture, read_sample
from cppcl.regular_files import check_regular, open_regular
from deployments.cli import WRONG_USE, main
from deployments.web.pictures import _read
from flows.configuration.load import load_experiment
from tasks.workspace import Workspace


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def with_suffix(pipe: Path, suffix: str) -> Path:
    return pipe.rename(pipe.with_suffix(suffix))


READERS = {
    "picture": (".png", decode_picture),
    "row": (".npy", lambda path: read_sample(path.parent, f"{path.name}#0")),
    "digest": (".bin", file_sha256),
    "answers": (".csv", read_answers),
    "verdicts": (".csv", read_verdict_file),
    "split": (".json", lambda path: split_text(str(path), 0)),
    "experiment": (".yaml", lambda path: load_experiment(str(path))),
    "served picture": (".png", lambda path: _read(path, "x")),
    "archive in a folder": (
        ".zip",
        lambda path: list(members(path.parent, "x", path.parent, limits=Limits())),
    ),
    "archive": (".zip", lambda path: list(members(path, "x", path.parent, limits=Limits()))),
    "labels": (
        ".csv",
        lambda path: Matrices(sketch_features=path, image_features=path, labels=path)._lines(),
    ),
}


@pytest.mark.parametrize("what", READERS)
def test_pipes_are_never_waited_for(what, pipe):
    suffix, read = READERS[what]
    with pytest.raises(InputError, match=r"a pipe|does not exist"):
        read(with_suffix(pipe, suffix))


def test_archives_that_are_added_are_never_waited_for(pipe, capsys):
    path = with_suffix(pipe, ".zip")
    workspace = ["--workspace", str(path.parent)]
    assert main(["data", "add", "pacs", str(path), *workspace]) == WRONG_USE
    assert f"{path} is a pipe" in capsys.readouterr().err


def test_other_kinds_are_named(tmp_path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(tmp_path / "s"))
    for path, kind in ((tmp_path / "s", "a socket"), (Path("/dev/null"), "a device")):
        with pytest.raises(InputError, match=f"is {kind}"):
            open_regular(path)
    check_regular(tmp_path / "gone")
    (tmp_path / "link").symlink_to("/dev/zero")
    with pytest.raises(PictureError, match="link is a device"):
        decode_picture(tmp_path / "link")


def test_paths_that_are_too_long_are_no_failure_of_the_disk(tmp_path):
    with pytest.raises(PictureError, match="the path is too long"):
        decode_picture(tmp_path / ("n" * 300))


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        lambda path: path.write_text("[" * 200_000),
        lambda path: path.write_bytes(b"\xff"),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("gone"),
    ],
)
def test_records_of_runs_that_are_none_are_named(make, tmp_path):
    workspace = Workspace(tmp_path)
    workspace.runs.mkdir(parents=True)
    make(workspace.runs / "a-1.json")
    with pytest.raises(InputError, match=r"a-1\.json (is not the record of a run|cannot be read)"):
        workspace.run_records()


@pytest.mark.parametrize("suffix", [".pt", ".npz", ".safetensors", ".caffemodel"])
def test_weights_that_are_no_file_are_named(pipe, suffix):
    path = with_suffix(pipe, suffix)
    for read in (weights_identity, read_weights):
        with pytest.raises(CppclError, match=f"pipe{re.escape(suffix)}"):
            read("alexnet", path)
