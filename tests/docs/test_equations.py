"""What the page of equations names is there."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from cppcl.report.reproduction.errata import ERRATA

PAGE = (Path(__file__).parents[2] / "docs" / "equations.md").read_text()
NAMES = sorted(set(re.findall(r"`(cppcl\.[\w.]+)`", PAGE)))


def found(name: str) -> object:
    """Object of a dotted name: the longest module in it, then attributes."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            module: object = import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            module = getattr(module, part)
        return module
    raise AssertionError(f"there is no module of {name}")


@pytest.mark.parametrize("name", NAMES)
def test_what_an_equation_is_computed_by_exists(name):
    assert getattr(found(name), "__doc__", None)


def test_an_absent_name_is_noticed():
    with pytest.raises(AttributeError):
        found("cppcl.learning.graph.Laplacian.absent")


def test_many_names_are_checked():
    assert len(NAMES) > 40


def test_every_erratum_of_the_reports_has_a_row():
    rows = [int(number) for number in re.findall(r"(?m)^\| (\d+) \|", PAGE)]
    assert rows == sorted(ERRATA)
