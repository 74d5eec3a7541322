"""What the report of a reproduction shows: plain data, gathered before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from cppcl.errors import InputError
from cppcl.report.data import ResultGrid
from cppcl.report.reproduction.verdicts import missing_text
from cppcl.retrieval.comparison import Interval

Agreement = Literal["agrees", "higher", "lower"]
State = Literal["done", "absent", "failed"]


BESIDE = "_beside"
"""End of the name of a table that sets published scores beside ours."""

LEAST_DIGITS = 3
"""Decimals of a printed fraction: rates are printed as per cent with one."""


def rounding_of(printed: float) -> float:
    """Half a unit of the last digit that a fraction is printed with, three decimals or more."""
    exponent = int(Decimal(repr(printed)).normalize().as_tuple().exponent)
    return 0.5 * 10.0 ** min(exponent, -LEAST_DIGITS)


def agreement(printed: float, interval: Interval) -> Agreement:
    """Whether the interval of ours holds a printed number, up to the rounding of its last digit.

    Parameters
    ----------
    printed : float
        What the publication prints.
    interval : Interval
        Our mean with its 95 % interval, in the same unit.
    """
    tolerance = rounding_of(printed)
    if interval.low > printed + tolerance:
        return "higher"
    return "lower" if interval.high < printed - tolerance else "agrees"


@dataclass(frozen=True)
class Value:
    """One value of a table: as a file has it, and as people read it."""

    value: str | float | int | None
    text: str = ""

    @classmethod
    def of(cls, value: str | float | int | None, pattern: str = "") -> Value:
        """Return a value, shown by a format pattern; a dash for None."""
        if value is None:
            return cls(None, "–")
        return cls(value, format(value, pattern) if pattern else str(value))


@dataclass(frozen=True)
class Row:
    """A line of a table.

    Parameters
    ----------
    title : str
        What it is about.
    cells : sequence of Cell
        One for each column.
    artifacts : sequence of str
        ``stage/key`` of what its numbers were computed from; `cppcl store show` tells more.
    errata : sequence of int
        Numbers of `cppcl.report.reproduction.errata.ERRATA` that explain a difference.
    note : str
        What else a reader must know.
    """

    title: str
    cells: Sequence[Value]
    artifacts: Sequence[str] = ()
    errata: Sequence[int] = ()
    note: str = ""


@dataclass(frozen=True)
class ResultTable:
    """A table, and the file of the same.

    Parameters
    ----------
    name : str
        Of the CSV file, without ending.
    caption : str
        What it shows, and in which unit.
    columns : sequence of str
        Titles of the cells, without that of the first column.
    rows : sequence of Row
        Lines.
    first : str
        Title of the first column.
    """

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Row]
    first: str = "method"

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise InputError(
                    f"row {row.title!r} of table {self.name!r} has {len(row.cells)} cells; give "
                    f"{len(self.columns)}, one a column"
                )


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, what was measured, and whether that supports it.

    Parameters
    ----------
    text : str
        The statement.
    measured : str
        What we find, with numbers.
    holds : bool or None
        Whether it does; None where the numbers do not decide.
    missing_splits : int
        How many splits are missing for a verdict.
    errata : sequence of int
        As in `Row`.
    """

    text: str
    measured: str
    holds: bool | None
    errata: Sequence[int] = ()
    missing_splits: int = 0

    @property
    def verdict(self) -> str:
        """In a word."""
        if self.missing_splits:
            return missing_text(self.missing_splits)
        return {True: "holds", False: "does not hold", None: "not decided"}[self.holds]


@dataclass(frozen=True)
class Curve:
    """A line of a plot; ``intervals`` are drawn as bars, ``number`` decides its colour."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    number: int = 0
    intervals: Sequence[Interval] | None = None
    markers: bool = True


@dataclass(frozen=True)
class Panel:
    """One plot; ``level`` is a horizontal line with its name, such as chance."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    logarithmic: bool = False
    y_from_zero: bool = False
    level: tuple[str, float] | None = None


@dataclass(frozen=True)
class Plots:
    """Panels beside one another."""

    panels: Sequence[Panel]


@dataclass(frozen=True)
class Bars:
    """A group of bars for each category, a bar for each method; values (methods, categories)."""

    categories: Sequence[str]
    values: Mapping[str, Sequence[float]]
    y_label: str


@dataclass(frozen=True)
class Surface:
    """A value with its interval at each place of a grid, (y, x); None where missing."""

    x_label: str
    y_label: str
    x: Sequence[float]
    y: Sequence[float]
    values: Sequence[Sequence[Interval | None]]
    value_label: str


@dataclass(frozen=True)
class Points:
    """Named points (x, y) of a plane, each with its intervals."""

    x_label: str
    y_label: str
    points: Mapping[str, tuple[Interval, Interval]]
    logarithmic: bool = True


@dataclass(frozen=True)
class Figure:
    """A figure: its file's name without ending, and what it shows."""

    name: str
    caption: str
    content: Plots | Bars | Surface | Points | ResultGrid


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper, rebuilt.

    Parameters
    ----------
    name : str
        Letters, digits and ``_``.
    title : str
        For people.
    source : str
        Where it stands in the paper.
    state : {'done', 'absent', 'failed'}
        Whether all, or something because of data that is not here, or because of an error.
    message : str
        Why something is missing.
    tables, figures, claims, notes
        What is shown.
    """

    name: str
    title: str
    source: str
    state: State = "done"
    message: str = ""
    tables: Sequence[ResultTable] = ()
    figures: Sequence[Figure] = ()
    claims: Sequence[Claim] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Reproduction:
    """All that the report shows.

    Parameters
    ----------
    name, title : str
        Of the data set.
    items : sequence of Item
        Each name once.
    notes : sequence of str
        About the whole.
    convention : str
        How scores are computed.
    licences : sequence of str
        Attribution of pictures.
    versions : dict of str to str
        Of the software that drew it.
    """

    name: str
    title: str
    items: Sequence[Item]
    notes: Sequence[str] = ()
    intro: str = ""
    convention: str = ""
    licences: Sequence[str] = ()
    versions: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind, names in (
            ("items", [item.name for item in self.items]),
            ("tables", [table.name for item in self.items for table in item.tables]),
            ("figures", [figure.name for item in self.items for figure in item.figures]),
        ):
            if len(set(names)) < len(names):
                raise InputError(f"{kind} are named {names}; give each name once")

    @property
    def errata(self) -> list[int]:
        """Numbers of the errata that something refers to, in order."""
        used: set[int] = set()
        for item in self.items:
            for claim in item.claims:
                used.update(claim.errata)
            for table in item.tables:
                for row in table.rows:
                    used.update(row.errata)
        return sorted(used)
