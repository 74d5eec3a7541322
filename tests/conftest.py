"""A Prefect server, a Dask cluster and a small picture folder for the tests that need them."""

from __future__ import annotations

import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Prefect reads these when it is imported.
PREFECT_HOME = tempfile.mkdtemp(prefix="cppcl-test-prefect-")
os.environ.update(
    {
        "PREFECT_HOME": PREFECT_HOME,
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
)
os.environ.pop("PREFECT_API_URL", None)
os.environ.pop("CPPCL_WORKSPACE", None)
os.environ.pop("CPPCL_DATA", None)
os.environ.pop("CPPCL_REMOTE", None)

SHAPES = ("circle", "square", "triangle")


def pytest_unconfigure() -> None:
    shutil.rmtree(PREFECT_HOME, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests with a server or a cluster last, the long ones of them first.

    Their background threads draw random numbers, which Hypothesis takes for a strategy's. A long
    test at the end would leave the other worker of xdist without work.
    """
    shared = {"prefect_server", "dask_cluster"}
    long = ("tests/faults/", "tests/docs/")

    def rank(item: pytest.Item) -> int:
        if not shared & set(getattr(item, "fixturenames", ())):
            return 0
        return 1 if item.nodeid.startswith(long) else 2

    items.sort(key=rank)


MEASURED = ("tests/cppcl/", "tests/storage/")
"""Tests of the packages whose coverage is measured."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Trace these alone: it takes a third of the time, and packages are covered by their own."""
    plugin = item.config.pluginmanager.get_plugin("_cov")
    controller = plugin and plugin.cov_controller
    if not controller or item.nodeid.startswith(MEASURED):
        return (yield)
    controller.pause()
    try:
        return (yield)
    finally:
        controller.resume()


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[str]:
    """Address of a Prefect server that flows of this process and of children use."""
    from prefect.settings import PREFECT_API_URL
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=120):
        yield str(PREFECT_API_URL.value())


@pytest.fixture(scope="session")
def dask_cluster() -> Iterator[Any]:
    """Two workers; stages that run while a test holds this find them."""
    from tasks.cluster.session import cluster_session

    with cluster_session(workers=2, memory_per_worker="2GiB") as session:
        session.client()
        yield session


@pytest.fixture(scope="session")
def dask_address(dask_cluster: Any) -> str:
    """Address of the scheduler, as `compute.cluster` takes it."""
    return str(dask_cluster.client().scheduler.address)


def draw(path: Path, shape: str, number: int, *, filled: bool, side: int = 40) -> None:
    """Draw one shape, differently for every number."""
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (side, side), "white")
    pen = ImageDraw.Draw(picture)
    low, high = 4 + number % 7, side - 5 - number % 5
    colour = ((50 * number + 30) % 200, (90 * number) % 200, 60 + number % 100)
    fill, line = (colour, "black") if filled else (None, "black")
    if shape == "circle":
        pen.ellipse((low, low, high, high), fill=fill, outline=line, width=2)
    elif shape == "square":
        pen.rectangle((low, low, high, high), fill=fill, outline=line, width=2)
    else:
        pen.polygon([(side // 2, low), (high, high), (low, high)], fill=fill, outline=line)
    for row in range(number % 3):
        pen.line((low, 8 + 5 * row, high, 8 + 5 * row), fill=line)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path)


@pytest.fixture(scope="session")
def draw_pictures() -> Callable[..., Path]:
    """Make a folder of shapes: ``sketches/<shape>/<n>.png`` and ``images/<shape>/<n>.png``."""

    def make(root: Path, *, per_class: int = 4, first: int = 0, side: int = 40) -> Path:
        for kind, shape in enumerate(SHAPES):
            for number in range(first, first + per_class):
                for folder, filled in (("sketches", False), ("images", True)):
                    path = root / folder / shape / f"{number}.png"
                    draw(path, shape, 10 * number + kind, filled=filled, side=side)
        return root

    return make


def tiny_experiment(root: Path, cluster: str) -> dict[str, Any]:
    """Two protocols on a folder of shapes, each stage cheap."""
    cprl = {
        "n_atoms": 4,
        "alpha": 0.01,
        "n_rounds": 5,
        "initialization": {"n_initial_rounds": 2},
        "pacing": {"mu": 0.5},
    }
    return {
        "name": "tiny",
        "dataset": {"name": "folder", "root": str(root), "pairing": "name"},
        "longest_side": 40,
        "block_rows": 5,
        "features": {
            "sketch": {"name": "pixels", "size": [8, 8]},
            "image": {"name": "pixels", "size": [8, 8]},
        },
        "curriculum": {
            "sketch": {"name": "edgeness", "n_windows": 20},
            "image": {"name": "colour_contrast", "n_windows": 20},
            "delta": 0.1,
        },
        "protocols": {
            "instance": {
                "split": {"rule": "instance", "n_train": 7, "seeds": [0, 1]},
                "methods": {"cprl": cprl, "centred_cosine": None},
            },
            "category": {
                "split": {"rule": "category", "minimum_groups": 2, "seeds": [0, 1]},
                "methods": {
                    "class_cca": {
                        "n_directions": 2,
                        "tune": {"ridge": [0.1, 1.0]},
                    }
                },
            },
        },
        "tuning": {"n_folds": 2},
        "evaluation": {"ranks": [1, 2]},
        "report": {"queries": 2, "nearest": 2},
        "compute": {"cluster": cluster, "workers": 1},
    }


@pytest.fixture(scope="session")
def make_experiment() -> Callable[..., dict[str, Any]]:
    """Configuration of an experiment on a folder of shapes, as YAML holds it."""

    def make(root: Path, *, cluster: str = "local", **changes: Any) -> dict[str, Any]:
        return {**tiny_experiment(root, cluster), **changes}

    return make


@pytest.fixture(scope="session")
def write_experiment(make_experiment: Callable[..., dict[str, Any]]) -> Callable[..., Path]:
    """Write such a configuration beside the folder, and return the file."""
    import yaml

    def write(root: Path, **changes: Any) -> Path:
        path = root.parent / "tiny.yaml"
        path.write_text(yaml.safe_dump(make_experiment(root, **changes), sort_keys=False))
        return path

    return write


@pytest.fixture
def shapes(tmp_path: Path, draw_pictures: Callable[..., Path]) -> Path:
    """Folder of 3 x 4 sketches and as many images."""
    return draw_pictures(tmp_path / "shapes")


@pytest.fixture
def workspace(tmp_path: Path) -> Any:
    """An empty workspace."""
    from tasks.workspace import Workspace

    return Workspace(tmp_path / "workspace")


@pytest.fixture(scope="module")
def blank_figures() -> Iterator[None]:
    """Figures are made but not drawn, which takes most of the time of a small run."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FigureCanvasAgg, "draw", FigureCanvasAgg.get_renderer)
        yield


@contextmanager
def extract_here() -> Iterator[list[str]]:
    """Extract, learn and tune in this process, without Dask; gives the pictures decoded."""
    import tasks.cluster.scheduling
    import tasks.stages.extract
    import tasks.stages.learn
    import tasks.stages.tune
    import tasks.workers.blocks
    from tasks.workers.extractors import learn_from

    decoded: list[str] = []
    read_sample = tasks.workers.extractors.read_sample

    def read(root: Path, path: str, **options: Any) -> Any:
        decoded.append(path)
        return read_sample(root, path, **options)

    def run(blocks: Any, partial: str, root: str, spec: Any, device: str, store: str) -> Any:
        for done, block in enumerate(blocks, start=1):
            report = tasks.workers.blocks.extract_block(partial, block, root, spec, store)
            yield tasks.cluster.scheduling.Finished(report, done)

    def learn(lessons: Any, spec: Any, device: str, partial: str, label: str) -> Any:
        return learn_from(lessons, spec, partial, label)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks.workers.extractors, "read_sample", read)
        patch.setattr(tasks.stages.extract, "run_blocks", run)
        patch.setattr(tasks.stages.learn, "run_job", learn)
        patch.setattr(tasks.stages.tune, "run_jobs", lambda work, jobs, **options: map(work, jobs))
        yield decoded


@pytest.fixture(scope="session")
def extracting_here() -> Callable[[], AbstractContextManager[list[str]]]:
    """Make a context in which this process extracts, without Dask."""
    return extract_here


@pytest.fixture
def inline_blocks() -> Iterator[list[str]]:
    """Extract in this process; holds the pictures that were decoded."""
    with extract_here() as decoded:
        yield decoded


@pytest.fixture(scope="module")
def inline_blocks_of_module() -> Iterator[list[str]]:
    """Extract in this process during all tests of a module."""
    with extract_here() as decoded:
        yield decoded


@dataclass(frozen=True)
class CommandResult:
    """What a command of the command line returned and wrote."""

    code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """Last line of standard output."""
        return json.loads(self.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def cppcl() -> Callable[..., CommandResult]:
    """Run the command line in this process, to the exit code that is expected, if one is."""

    def run(*arguments: object, code: int | None = None) -> CommandResult:
        from deployments.cli import main

        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                ended = main([str(argument) for argument in arguments])
            except SystemExit as error:  # argparse
                ended = int(error.code or 0)
        result = CommandResult(ended, out.getvalue(), err.getvalue())
        assert code in (None, result.code), result.stderr
        return result

    return run


@dataclass(frozen=True)
class FinishedRun:
    """An experiment that was run once by the command line; to be read, not changed."""

    file: Path
    shapes: Path
    workspace: Any
    result: CommandResult

    @property
    def summary(self) -> Any:
        """The record that ``--json`` printed."""
        return self.result.json()

    def copy(self, folder: Path) -> Any:
        """Workspace with the same artifacts, to be changed; without what searches found out."""
        left_out = shutil.ignore_patterns("drawings")
        copied = shutil.copytree(self.workspace.root, folder, ignore=left_out)
        return type(self.workspace)(Path(copied))


@pytest.fixture(scope="session")
def finished_run(
    tmp_path_factory: pytest.TempPathFactory,
    prefect_server: str,
    dask_address: str,
    draw_pictures: Callable[..., Path],
    write_experiment: Callable[..., Path],
    cppcl: Callable[..., CommandResult],
) -> FinishedRun:
    """The tiny experiment, run as a user does."""
    from tasks.workspace import Workspace

    folder = tmp_path_factory.mktemp("finished")
    shapes = draw_pictures(folder / "shapes")
    file = write_experiment(shapes, cluster=dask_address)
    workspace = Workspace(folder / "workspace")
    result = cppcl("run", file, "--workspace", workspace.root, "--json")
    assert result.code == 0, result.stderr
    return FinishedRun(file, shapes, workspace, result)


@pytest.fixture
def copied_run(finished_run: FinishedRun, tmp_path: Path) -> Any:
    """Workspace of a copy of that run, to be changed."""
    return finished_run.copy(tmp_path / "copy")
