"""A pytest plugin that writes how often each test tried something, and whether it survived.

PYTHONPATH=tests/faults python -m pytest -p attempts_plugin --attempts FILE PATH ...
"""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from hypothesis.internal.observability import add_observability_callback

COUNTER = "tests.attempts"


def counter() -> Any:
    """Return the module that tests note their attempts in, under the name that they import it by.

    Its folder is no package, and something that is installed may have the same name.
    """
    if COUNTER not in sys.modules:
        spec = spec_from_file_location(COUNTER, Path(__file__).parents[1] / "attempts.py")
        module = sys.modules[COUNTER] = module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[COUNTER]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--attempts", type=Path, required=True, metavar="FILE")


def pytest_configure(config: pytest.Config) -> None:
    counter()  # before tests import it

    def note(observed: Any) -> None:
        if observed.type == "test_case" and observed.status in ("passed", "failed"):
            counter().tried()

    add_observability_callback(note)
    config.pluginmanager.register(Writing(config.getoption("attempts")), "attempts-writing")


class Writing:
    """Appends a line for each test that ended."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        counter().taken()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        failed_early = report.when != "call" and report.failed
        if report.skipped or (report.when != "call" and not failed_early):
            return
        line = {
            "test": report.nodeid,
            "tried": max(1, counter().taken()),
            "broken": int(report.failed),
        }
        with self.file.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
