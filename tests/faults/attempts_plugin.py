"""A pytest plugin that writes how often each test tried something, and whether it survived.

PYTHONPATH=tests/faults python -m pytest -p attempts_plugin --attempts FILE PATH ...
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis.internal.observability import add_observability_callback


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--attempts", type=Path, required=True, metavar="FILE")


def pytest_configure(config: pytest.Config) -> None:
    def note(observed: Any) -> None:
        from tests.attempts import tried

        if observed.type == "test_case" and observed.status in ("passed", "failed"):
            tried()

    add_observability_callback(note)
    config.pluginmanager.register(Writing(config.getoption("attempts")), "attempts-writing")


class Writing:
    """Appends a line for each test that ended."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.taken()

    def taken(self) -> int:
        """Attempts since this was asked last; tests can be imported once pytest is configured."""
        from tests.attempts import taken

        return taken()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        failed_early = report.when != "call" and report.failed
        if report.skipped or (report.when != "call" and not failed_early):
            return
        line = {"test": report.nodeid, "tried": max(1, self.taken()), "broken": int(report.failed)}
        with self.file.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
