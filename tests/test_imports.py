"""The import rules of pyproject.toml hold, wherever in a module the import stands."""

from __future__ import annotations

import ast
from collections import Counter
from copy import deepcopy
from pathlib import Path

import grimp
import pytest
from importlinter import cli

from cppcl.datasets import DATASETS
from cppcl.features import EXTRACTORS
from cppcl.methods import METHODS

ROOT = Path(__file__).parents[1]
PACKAGES = ("cppcl", "flows", "tasks", "storage", "deployments")


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)


@pytest.fixture(autouse=True)
def loggers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The linter's configuration of logging would disable those of our modules."""
    monkeypatch.setattr("logging.config.dictConfig", lambda config: None)


def test_contracts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    code = cli.lint_imports(config_filename="pyproject.toml", no_cache=True)
    assert code == cli.EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_imports_inside_functions_count(graph: grimp.ImportGraph) -> None:
    # `zarr` is imported in functions only, so a graph without those would not hold it.
    assert "zarr" in graph.find_modules_directly_imported_by("storage.blocks")
    assert "distributed" in graph.find_modules_directly_imported_by("tasks.cluster.session")


def circles(graph: grimp.ImportGraph) -> list[list[str]]:
    """Groups of modules each of which imports, directly or not, every other of its group."""
    found: list[list[str]] = []
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    pending: list[str] = []  # not yet in a group

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        pending.append(module)
        for imported in sorted(graph.find_modules_directly_imported_by(module)):
            if imported not in number:
                visit(imported)
            if imported in pending:
                lowest[module] = min(lowest[module], lowest[imported])
        if lowest[module] == number[module]:
            group = pending[pending.index(module) :]
            del pending[len(pending) - len(group) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in sorted(graph.modules):
        if module not in number:
            visit(module)
    return found


def test_no_import_circle(graph: grimp.ImportGraph) -> None:
    assert circles(graph) == []


def test_an_import_circle_is_found() -> None:
    graph = grimp.ImportGraph()
    for importer, imported in ("ab", "bc", "ca", "cd", "de", "xa"):
        graph.add_import(importer=importer, imported=imported)
    assert circles(graph) == [["a", "b", "c"]]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("cppcl.retrieval.metrics", "prefect"),
        ("cppcl.retrieval.metrics", "tasks.stages.contract"),
        ("storage.store", "cppcl.errors"),
        ("storage.store", "dask"),
        ("tasks.workers.blocks", "prefect"),
        ("tasks.samples", "prefect"),  # which workers import
        ("tasks.stages.fetch", "flows.configuration.experiment"),
        ("flows.chain", "deployments.cli"),
        ("flows.chain", "zarr"),
    ],
)
def test_a_forbidden_import_breaks_a_contract(
    source: str,
    target: str,
    graph: grimp.ImportGraph,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    changed = deepcopy(graph)
    if target not in changed.modules:
        changed.add_module(target, is_squashed=True)
    changed.add_import(
        importer=source, imported=target, line_number=1, line_contents=f"import {target}"
    )
    build = "importlinter.application.use_cases._build_graph"
    monkeypatch.setattr(build, lambda *args, **kwargs: changed)
    monkeypatch.chdir(ROOT)
    assert cli.lint_imports(config_filename="pyproject.toml", no_cache=True) == 1
    assert "BROKEN" in capsys.readouterr().out


def names_in(file: Path, names: set[str]) -> list[str]:
    """Texts of a module that are one of these names, but for defaults of arguments."""
    tree = ast.parse(file.read_text())
    defaults: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            defaults |= {id(value) for value in (*node.args.defaults, *node.args.kw_defaults)}
        elif isinstance(node, ast.keyword) and node.arg == "default":
            defaults.add(id(node.value))
    return [
        f"{file.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in names and id(node) not in defaults
    ]


@pytest.mark.parametrize("package", ["tasks", "flows", "cppcl/report"])
def test_no_stage_names_a_method_an_extractor_or_a_data_set(package: str) -> None:
    names = {*METHODS, *EXTRACTORS, *DATASETS} - {"folder"}  # which is a word, too
    found = [line for file in (ROOT / package).rglob("*.py") for line in names_in(file, names)]
    assert found == []


def test_such_a_name_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    file = tmp_path / "stage.py"
    file.write_text('def f(name="cprl"):\n    return name == "cprl"\n')
    assert names_in(file, {"cprl"}) == ["stage.py:2: cprl"]


def test_no_class_name_exists_twice() -> None:
    named = Counter(
        node.name
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in named.items() if count > 1] == []
