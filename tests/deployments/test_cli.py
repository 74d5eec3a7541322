"""The command line: what it prints, where it stops, what it leaves."""

from __future__ import annotations

import csv
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import deployments.commands.stages
from cppcl.errors import DataUnavailableError, InputError, PictureError, TooManyBadPicturesError
from cppcl.modality import MODALITIES
from deployments.cli import stopped_in_order
from storage import DamagedArtifactError, Reference, UnknownReferenceError
from tasks.model import Model
from tasks.samples import open_pictures
from tasks.stages.names import STAGES

ROOT = Path(__file__).parents[2]
HEAVY = "numpy scipy torch sklearn skimage matplotlib PIL pydantic prefect dask distributed zarr"
HEAVY = {*HEAVY.split(), "cvxpy", "osqp"}

STORE = ("ls", "verify", "gc")
RUN = [stage for stage in STAGES if stage != "learn"]
"""Stages of an experiment whose extractors learn nothing."""

Command = Callable[..., Any]


def test_help_imports_nothing_heavy():
    code = f"""
import sys
from deployments.cli import COMMANDS, main
for arguments in (["--help"], ["--version"], *([command, "--help"] for command in COMMANDS)):
    try:
        main(arguments)
    except SystemExit as error:
        assert error.code == 0, arguments
    heavy = {HEAVY!r} & set(sys.modules)
    assert heavy <= ({{"numpy"}} if arguments[0] in COMMANDS else set()), (arguments, heavy)
"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "Exit codes: 0 done, 1 failed, 2 wrong use." in run.stdout


def test_command_is_installed():
    (command,) = entry_points(group="console_scripts", name="cppcl")
    assert command.value == "deployments.cli:main"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["run"],
        ["run", "emoji", "--only", "trian"],
        ["run", "emoji", "--from", "train", "--only", "train"],
        ["run", "emoji", "--sett", "a=1"],
        ["search", "emoji"],
        ["store", "burn"],
        ["data"],
        ["data", "splits", "pacs"],
        ["sweep"],
        ["sweep", "emoji"],
        ["reproduce"],
    ],
    ids=" ".join,
)
def test_wrong_arguments_exit_with_2(arguments, cppcl):
    result = cppcl(*arguments, code=2)
    assert "usage: cppcl" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "emojis"], "experiment 'emojis' is neither one of"),
        (["run", "nowhere.yaml"], "'nowhere.yaml' does not exist"),
        (["run", "emoji", "--set", "alhpa=1"], "--set alhpa: the experiment has no such option"),
        (["run", "emoji", "--set", "rho=2"], "curriculum.rho"),
        (["run", "emoji", "--set", "cprl.n_atoms=x"], "got 'x'"),
        (["run", "emoji", "--set", "alpha=-1"], "alpha=-1"),
        (["fly"], "unknown command 'fly'; cppcl --help"),
        (["serach"], "unknown command 'serach'; did you mean 'search'?"),
        (["search", "emoji", "sketch.png"], "no run 'emoji'"),
        (["search", "abcdef123456", "sketch.png"], "'abcdef123456' names no encode artifact"),
        (["index", "emoji", "."], "no run 'emoji'"),
        (["report", "emoji"], "no run 'emoji'"),
        (["store", "show"], "needs the KEY"),
        (["store", "show", "abcdef"], "'abcdef' names no artifact"),
        (["store", "verify", "abcdef"], "'abcdef' names no artifact"),
        (["store", "verify", "--repair", "abcdef"], "'abcdef' names no artifact"),
        (["store", "ls", "trian"], "store ls trian: the stages are fetch, split"),
        (["store", "gc", "abcdef"], "store gc takes no KEY (got abcdef)"),
        *((["store", a, "--workspace", "typo"], "'typo' does not exist") for a in STORE),
        (["sweep", "emojis", "n_atoms=[50]"], "experiment 'emojis' is neither one of"),
        (["sweep", "emoji", "n_atoms=50"], "the values must be a list of at least one"),
        (["sweep", "emoji", "alhpa=[1]"], "alhpa: the experiment has no such option"),
        (["sweep", "emoji", "n_atoms=[50, -1]"], "sweep n_atoms=-1: experiment 'emoji'"),
        (["sweep", "emoji", "n_atoms=[50]", "--set", "rho=2"], "curriculum.rho"),
        (["sweep", "emoji", "n_atoms=[50]", "--score", "rank1"], "rank1 is not one of rank_1, "),
        (["sweep", "emoji", "n_atoms=[1]", "mu=[1]", "rho=[1]"], "fix the others with --set"),
        (["reproduce", "cusf"], "reproduction 'cusf' is neither one of cufs, emoji, "),
        (["reproduce", "nowhere/own.yaml"], "'nowhere/own.yaml' does not exist"),
        (["reproduce", "cufs", "--only", "table2"], "'cufs' has no such item"),
        (["reproduce", "cufs", "--output", __file__], "is a file; give a folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_exits_with_2_and_says_why(arguments, message, cppcl, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CPPCL_WORKSPACE", str(tmp_path))
    result = cppcl(*arguments)
    assert message in result.stderr
    assert result.code == 2
    assert "starting Prefect" not in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted; what was finished is kept"),
        (InputError("alpha=-1"), 2, "alpha=-1"),
        (PictureError("a.png: truncated"), 1, "a.png: truncated"),
        (TooManyBadPicturesError("3 of 12"), 1, "3 of 12"),
        (DataUnavailableError("no weights"), 1, "no weights"),
        (DamagedArtifactError("block 1"), 1, "block 1"),
        (UnknownReferenceError("'ab' names no artifact"), 2, "'ab' names no artifact"),
        (PermissionError(13, "Permission denied", "x"), 1, "Permission denied: 'x'"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_exit_codes_of_errors(error, code, message, cppcl, monkeypatch):
    def fail(options: Any) -> int:
        raise error

    monkeypatch.setattr(deployments.commands.stages, "run", fail)
    result = cppcl("stages", code=code)
    assert result.stderr.startswith("cppcl: ")
    assert message in result.stderr
    assert result.stdout == ""


@pytest.fixture
def handlers() -> Iterator[None]:
    """Handlers as in a terminal; tests in the background inherit that Ctrl-C is ignored."""
    usual = {signal.SIGINT: signal.default_int_handler}
    before = {
        number: signal.signal(number, usual.get(number, signal.SIG_DFL))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("other", [None, ValueError("made of it")])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_a_command_whatever_is_made_of_them(number, other, cppcl, monkeypatch):
    def be_stopped(options: Any) -> int:
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            if other:
                raise other from None
            raise
        return 0

    monkeypatch.setattr(deployments.commands.stages, "run", be_stopped)
    assert cppcl("stages", code=128 + number).stderr == (
        "cppcl: interrupted; what was finished is kept\n"
    )
    assert signal.getsignal(number) == signal.SIG_DFL  # the next one does not wait


def test_ctrl_c_while_a_command_is_imported(cppcl, monkeypatch):
    def interrupt(parser: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(deployments.commands.stages, "add_arguments", interrupt)
    assert cppcl("stages", code=130).stderr.startswith("cppcl: interrupted")


@pytest.mark.usefixtures("handlers")
def test_a_signal_leaves_no_lock_of_imports_held():
    importing: Any = SimpleNamespace(f_code=importlib._bootstrap._get_module_lock.__code__)
    with stopped_in_order() as received:
        stop: Any = signal.getsignal(signal.SIGTERM)
        stop(signal.SIGTERM, importing)
        assert received == []
        with pytest.raises(KeyboardInterrupt):
            threading.Event().wait(30)  # for the same signal, sent again
    assert received == [signal.SIGTERM]


def test_stages_are_listed_in_order(cppcl):
    result = cppcl("stages", code=0)
    words = result.stdout.split()
    places = [words.index(stage) for stage in STAGES]
    assert places == sorted(places)


def test_options_are_listed_with_values(cppcl):
    every, emoji = cppcl("options"), cppcl("options", "emoji")
    assert every.code == emoji.code == 0
    assert "curriculum.image (name: hog)" in every.stdout
    assert "protocols.instance.methods.cprl_one_space_a (method: cprl)" in emoji.stdout
    assert "(name: hog)" not in emoji.stdout
    missing = cppcl("options", "emojis")
    assert (missing.code, missing.stdout) == (2, "")
    assert "'emojis' is neither one of" in missing.stderr


def test_workspace_may_come_from_the_environment(cppcl, tmp_path, monkeypatch):
    monkeypatch.setenv("CPPCL_WORKSPACE", str(tmp_path / "mine"))
    assert str(tmp_path / "mine") in cppcl("report", "emoji").stderr


@pytest.mark.flow
class TestFinishedRun:
    """What can be done after an experiment was run."""

    def test_json_of_a_run(self, finished_run):
        last = finished_run.result.stdout.splitlines()[-1]
        summary = json.loads(last)
        assert list(summary) == [
            "experiment",
            "metrics",
            "conventions",
            "differences",
            "training",
            "artifacts",
            "seconds",
            "cached",
            "peak_memory_bytes",
            "tuned",
        ]
        assert summary["experiment"] == "tiny"
        metrics = summary["metrics"]
        assert {p: set(methods) for p, methods in metrics.items()} == {
            "instance": {"cprl", "centred_cosine", "chance"},
            "category": {"class_cca", "chance"},
        }
        for methods in metrics.values():
            for name, scores in methods.items():
                assert scores.keys() >= {"rank_1", "rank_2", "map"}
                for score in ("rank_1", "rank_2", "map"):
                    assert 0 <= scores[score] <= 1
                    assert scores[f"{score}_std"] >= 0, name
                assert scores["rank_1"] <= scores["rank_2"]
        differences = summary["differences"]
        assert list(differences) == ["instance"]
        assert list(differences["instance"]["methods"]) == ["centred_cosine"]
        # 12 groups, 7 of them for training: one relevant picture among five.
        assert metrics["instance"]["chance"]["rank_1"] == pytest.approx(1 / 5)
        assert metrics["instance"]["chance"]["rank_2"] == pytest.approx(2 / 5)
        assert list(summary["artifacts"]) == RUN
        for stage, key in summary["artifacts"].items():
            assert finished_run.workspace.store.find(Reference(stage, key)) is not None
        assert all(isinstance(s, float) and s > 0 for s in summary["seconds"].values())
        assert list(summary["seconds"]) == list(summary["cached"]) == RUN
        assert set(summary["cached"].values()) == {False}
        assert 1e8 < summary["peak_memory_bytes"] < 1e11

    def test_default_ranks_are_those_of_the_contract(self):
        from flows.configuration.experiment import Evaluation

        assert Evaluation().ranks == (1, 5, 10)

    def test_progress_and_tables_go_to_standard_error(self, finished_run):
        text = finished_run.result.stderr
        assert finished_run.result.stdout.count("\n") == 1
        assert "Dask dashboard: http://" in text
        for line in ("fetch: folder", "extract: sketch pixels", "train: cprl, instance, split 1"):
            assert line in text
        assert "report: " in text
        page = Path(text.split("report: ")[-1].splitlines()[0])
        assert page.is_file()
        for method in ("cprl", "centred_cosine", "class_cca", "chance"):
            assert method in text
        assert text.count("instance, cprl minus each other method: rank-1, points") == 1
        assert "category, class_cca minus" not in text

    def test_second_run_says_that_every_stage_was_cached(self, finished_run, cppcl):
        place = finished_run.workspace.root
        again = cppcl("run", finished_run.file, "--workspace", place, "--json", code=0)
        assert "every stage was cached" in again.stderr
        assert "every stage was cached" not in finished_run.result.stderr
        assert again.json()["cached"] == dict.fromkeys(RUN, True)
        assert again.json()["metrics"] == finished_run.summary["metrics"]
        assert again.json()["artifacts"] == finished_run.summary["artifacts"]

    def test_from_only_and_force(self, finished_run, cppcl, tmp_path):
        place = finished_run.copy(tmp_path / "copy").root

        def computed(*options: str) -> list[str]:
            result = cppcl(
                "run", finished_run.file, *options, "--workspace", place, "--json", code=0
            )
            return [s for s, stored in result.json()["cached"].items() if not stored]

        assert computed("--set", "alpha=0.02") == ["train", "encode", "evaluate", "report"]
        assert computed("--from", "evaluate") == ["evaluate", "report"]
        assert computed("--only", "curricula", "--force", "curricula") == ["curricula"]
        assert computed("--until", "split", "--force", "fetch", "--force", "split") == RUN[:2]

    def test_a_stage_that_was_not_run_fails(self, finished_run, cppcl, tmp_path):
        result = cppcl(
            "run", finished_run.file, "--only", "train", "--workspace", tmp_path, code=1
        )
        assert "stage 'fetch' (folder) has not been run" in result.stderr
        assert "Traceback" not in result.stderr

    def test_store_ls(self, finished_run, cppcl):
        place = finished_run.workspace.root
        everything = cppcl("store", "ls", "--workspace", place, code=0)
        for stage, key in finished_run.summary["artifacts"].items():
            assert f"{stage}/{key}" in everything.stdout
        some = cppcl("store", "ls", "train", "report", "--workspace", place).stdout
        assert some.count("train/") == 6
        assert some.count("report/") == 1
        assert "encode/" not in some

    def test_store_show(self, finished_run, cppcl):
        key = finished_run.summary["artifacts"]["train"]
        shown = cppcl("store", "show", key[:12], "--workspace", finished_run.workspace.root)
        document = json.loads(shown.stdout)
        assert document["path"].endswith(f"train/{key}")
        assert document["manifest"]["parameters"]["options"]["alpha"] == 0.01
        assert document["run"]["seconds"] >= 0

    def test_store_gc_keeps_what_the_latest_run_uses(self, finished_run, cppcl, tmp_path):
        place = finished_run.copy(tmp_path / "copy")
        before = set(place.store.references())
        cppcl(
            "run", finished_run.file, "--set", "n_directions=1", "--workspace", place.root, code=0
        )
        after = set(place.store.references())
        _, record = place.find_run("tiny")
        used = set(map(Reference.parse, record["all_artifacts"]))
        for reference in [r for r in used if r.stage == "tune"]:
            used |= set(place.store.open(reference).inputs.values())
        old = after - used
        # Two splits of class_cca in four stages, their four fits each, and the report.
        assert len(old) == 13
        assert old <= before
        dry = cppcl("store", "gc", "--dry-run", "--workspace", place.root)
        assert dry.stdout.endswith("would remove 13 artifacts\n")
        assert set(place.store.references()) == after
        result = cppcl("store", "gc", "--workspace", place.root, code=0)
        assert set(result.stdout.splitlines()) == {
            *(f"removed {reference}" for reference in old),
            "removed 13 artifacts",
        }
        assert set(place.store.references()) == used
        assert cppcl("store", "verify", "--workspace", place.root).code == 0

    def test_a_method_is_searched_by_name(self, finished_run, cppcl):
        sketch, place = finished_run.shapes / "sketches/circle/0.png", finished_run.workspace
        found = {
            method: cppcl(
                "search", "tiny", sketch, "--json", "--workspace", place.root, *method, code=0
            ).stdout
            for method in ((), ("--method", "cprl"), ("--method", "centred_cosine"))
        }
        assert found[()] == found["--method", "cprl"] != found["--method", "centred_cosine"]
        wrong = cppcl("search", "tiny", sketch, "--workspace", place.root, "--method", "cpr")
        assert wrong.code == 2
        assert "did you mean 'cprl'" in wrong.stderr

    def test_report(self, finished_run, cppcl, tmp_path):
        place = finished_run.workspace.root
        shown = cppcl("report", "tiny", "--workspace", place, code=0)
        page = Path(shown.stdout.strip())
        assert page.name == "report.html"
        assert page.is_absolute()
        name, _ = finished_run.workspace.find_run("tiny", "report")
        copied = cppcl("report", name, "--output", tmp_path / "a" / "b", "--workspace", place)
        assert Path(copied.stdout.strip()) == tmp_path / "a" / "b" / "report.html"
        assert (tmp_path / "a/b/report.html").read_bytes() == page.read_bytes()
        names = {path.name for path in (tmp_path / "a/b").rglob("*")}
        assert {"report.html", "scores.csv", "differences.csv"} <= names
        assert "published.csv" not in names
        text = page.read_text()
        assert "Pictures of shapes: licence unknown" in text
        # Two protocols with a plot of precision over recall, and two queries of two answers each.
        assert text.count("Query sketch: ") == 4
        assert text.count('alt="Picture ') == 8

    def test_search(self, finished_run, cppcl):
        place = finished_run.workspace
        sketch = finished_run.shapes / "sketches/circle/0.png"
        key = finished_run.summary["artifacts"]["encode"]
        by_name = cppcl("search", "tiny", sketch, "-k", 3, "--json", "--workspace", place.root)
        by_key = cppcl("search", key[:8], sketch, "-k", 3, "--json", "--workspace", place.root)
        assert by_name.code == 0, by_name.stderr
        assert by_name.json() == by_key.json()
        matches = by_name.json()
        assert [m["rank"] for m in matches] == [1, 2, 3]
        similarities = [m["similarity"] for m in matches]
        assert similarities == sorted(similarities, reverse=True)
        for match in matches:
            assert Path(match["path"]).is_file()
            assert f"/images/{match['label']}/" in match["path"]
        model = Model(place, Reference("encode", key))
        found = model.search(sketch, 3)
        assert [str(match.path) for match in found] == [m["path"] for m in matches]

    def test_search_ranks_as_the_experiment_does(self, finished_run, tmp_path):
        import numpy as np

        place = finished_run.copy(tmp_path / "copy")
        for file in place.runs.glob("*.json"):
            record = json.loads(file.read_text())
            record["configuration"]["evaluation"]["metric"] = "l2"
            record["evaluations"] = {}  # as where the run ended before
            file.write_text(json.dumps(record))
        model = Model(place, place.find_model("tiny"))
        paths = model.pictures.table.column("paths", "sketch")
        query = model.codes.array("sketch_codes")[0]
        distances = np.linalg.norm(model.codes.array("image_codes") - query, axis=1)
        matches = model.search(finished_run.shapes / paths[0], 12)
        assert [m.similarity for m in matches] == pytest.approx(-np.sort(distances), abs=1e-5)
        assert place.metric_of(Reference("train", "0" * 32)) == "cosine"

    def test_search_for_more_than_there_is(self, finished_run, cppcl):
        sketch = finished_run.shapes / "sketches/circle/0.png"
        place = finished_run.workspace.root
        result = cppcl("search", "tiny", sketch, "-k", 100, "--json", "--workspace", place, code=0)
        paths = [match["path"] for match in result.json()]
        assert len(paths) == len(set(paths)) == 12
        table = cppcl("search", "tiny", sketch, "--workspace", place, code=0)
        assert "nearest to" in table.stdout
        assert paths[0] in table.stdout.replace("\n", "")
        none = cppcl("search", "tiny", sketch, "-k", 0, "--workspace", place)
        assert (none.code, none.stderr) == (2, "cppcl: -k 0 must be at least 1\n")

    def test_codes_are_exported_with_what_they_are_codes_of(self, finished_run, cppcl, tmp_path):
        place = ("--workspace", finished_run.workspace.root)
        written = cppcl("export", "tiny", tmp_path / "out", *place, code=0).stdout.split()
        assert [Path(file).name for file in written] == [
            *("sketch_codes.npy", "sketch_samples.csv", "image_codes.npy", "image_samples.csv")
        ]
        key = finished_run.summary["artifacts"]["encode"]
        stored = finished_run.workspace.store.open(Reference("encode", key))
        table = open_pictures(
            finished_run.workspace.store,
            Reference("fetch", finished_run.summary["artifacts"]["fetch"]),
        ).table
        for modality in MODALITIES:
            codes = np.load(tmp_path / "out" / f"{modality}_codes.npy")
            np.testing.assert_array_equal(codes, stored.array(f"{modality}_codes"))
            with (tmp_path / "out" / f"{modality}_samples.csv").open() as stream:
                lines = list(csv.DictReader(stream))
            assert [int(line["row"]) for line in lines] == list(range(len(codes)))
            assert [line["id"] for line in lines] == table.column("ids", modality)
            paths = [finished_run.shapes / path for path in table.column("paths", modality)]
            assert [Path(line["path"]) for line in lines] == paths
        refused = cppcl("export", "tiny", written[0], *place, code=2)
        assert "is a file; give a folder" in refused.stderr

    def test_a_folder_of_sketches_in_one_search(self, finished_run, cppcl, tmp_path):
        """Each is answered as it is alone; one that is no picture is named and left out."""
        drawn = finished_run.shapes / "sketches"
        sketches = [drawn / "circle" / "0.png", drawn / "square" / "1.png"]
        place = ("-k", 3, "--json", "--workspace", finished_run.workspace.root)
        alone = {str(s): cppcl("search", "tiny", s, *place, code=0).json() for s in sketches}
        assert cppcl("search", "tiny", *sketches, *place, code=0).json() == alone
        shutil.copytree(drawn / "circle", tmp_path / "mine")
        (tmp_path / "mine" / "notes.txt").write_text("no picture")
        (tmp_path / "mine" / ".DS_Store").write_text("of the system")
        os.mkfifo(tmp_path / "mine" / "pipe.png")
        found = cppcl("search", "tiny", tmp_path / "mine", *place, code=1)
        assert "left out: " in found.stderr
        assert "notes.txt" in found.stderr
        n_sketches = len(list((drawn / "circle").iterdir()))
        assert len(found.json()) == n_sketches
        first = found.json()[str(tmp_path / "mine" / "0.png")]
        assert first == alone[str(sketches[0])]
        assert ".DS_Store" not in found.stderr
        assert "is a pipe" in found.stderr
        (tmp_path / "one").mkdir()
        shutil.copy(sketches[0], tmp_path / "one" / "1.png")
        only = cppcl("search", "tiny", tmp_path / "one", *place, code=0).json()
        assert only == {str(tmp_path / "one" / "1.png"): first}
        (tmp_path / "none").mkdir()
        assert "holds no file" in cppcl("search", "tiny", tmp_path / "none", *place, code=2).stderr

    @pytest.mark.parametrize("content", [b"no picture", b"", None], ids=["text", "empty", "gone"])
    def test_search_with_what_is_no_picture(self, content, finished_run, cppcl, tmp_path):
        sketch = tmp_path / "sketch of mine.png"
        if content is not None:
            sketch.write_bytes(content)
        result = cppcl(
            *("search", "tiny", sketch, "--workspace", finished_run.workspace.root),
            code=2 if content is None else 1,
        )
        assert "sketch of mine.png" in result.stderr
        assert "Traceback" not in result.stderr

    def test_index_a_folder_and_search_it(
        self, finished_run, cppcl, tmp_path, draw_pictures, inline_blocks
    ):
        place = finished_run.copy(tmp_path / "copy").root
        folder = draw_pictures(tmp_path / "new", per_class=4, first=5) / "images"
        pictures = sorted(folder.rglob("*.png"))
        broken = folder / "circle/0 broken.png"  # comes first: rows behind it must not shift
        broken.write_bytes(pictures[0].read_bytes()[:50])
        indexed = cppcl("index", "tiny", folder, "--workspace", place, code=0)
        key = indexed.stdout.strip()
        assert len(key) == 32
        assert f"cppcl search {key[:12]}" in indexed.stderr
        assert "1 of 13 image pictures were skipped" in indexed.stderr
        assert "circle/0 broken.png" in indexed.stderr
        sketch = finished_run.shapes / "sketches/circle/0.png"
        found = cppcl("search", key, sketch, "-k", 99, "--json", "--workspace", place, code=0)
        paths = [Path(match["path"]) for match in found.json()]
        assert sorted(paths) == pictures
        assert all(match["label"] in match["path"] for match in found.json())
        # The experiment itself still answers with its own gallery.
        own = cppcl("search", "tiny", sketch, "--json", "--workspace", place).json()
        assert not {match["path"] for match in own} & set(map(str, paths))
        # The gallery is not collected, and indexing it again computes nothing.
        assert cppcl("store", "gc", "--workspace", place).code == 0
        again = cppcl("index", key, folder, "--workspace", place)
        assert again.stdout.strip() == key
        assert len(inline_blocks) == 13

    def test_index_of_no_folder(self, finished_run, cppcl, tmp_path):
        place = finished_run.workspace.root
        file = finished_run.shapes / "images/circle/0.png"
        for folder in (tmp_path / "nowhere", file):
            missing = cppcl("index", "tiny", folder, "--workspace", place, code=2)
            assert f"{folder} is not a folder" in missing.stderr
        (tmp_path / "empty").mkdir()
        empty = cppcl("index", "tiny", tmp_path / "empty", "--workspace", place, code=2)
        assert "holds no pictures" in empty.stderr
