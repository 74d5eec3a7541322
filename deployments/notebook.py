"""Experiments from a notebook: run one, and get its tables, its report and how it looks."""

from __future__ import annotations

import html
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cppcl.report.tables import score_name
from deployments.cli import quieten
from deployments.server import prepare_prefect
from deployments.terminal import Terminal
from storage import Reference
from tasks.workspace import Workspace

Row = dict[str, Any]


@dataclass(frozen=True, repr=False)
class RunResult:
    """What a run of an experiment came to; a notebook shows its scores.

    Tables are pandas data frames where pandas is installed, else lists of dictionaries.

    Attributes
    ----------
    record : dict
        What ``cppcl run --json`` prints.
    workspace : Path
        Where the artifacts are.
    """

    record: dict[str, Any]
    workspace: Path

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return str(self.record["experiment"])

    @property
    def scores(self) -> Any:
        """Table of scores, from 0 to 1: one row a protocol and method, means over splits."""
        return table(self._scores())

    @property
    def stages(self) -> Any:
        """Table of stages: seconds, and whether all of it was stored before."""
        return table(
            [
                {"stage": stage, "seconds": seconds, "cached": self.record["cached"][stage]}
                for stage, seconds in self.record["seconds"].items()
            ]
        )

    @property
    def differences(self) -> Any:
        """Table of the first method of a protocol less each other one, with 95 % intervals."""
        return table(
            [
                {"protocol": protocol, "first": found["first"], "method": method, **row}
                for protocol, found in self.record.get("differences", {}).items()
                for method, row in found["methods"].items()
            ]
        )

    @property
    def report(self) -> Path | None:
        """The report, a page; None where the run stopped before."""
        key = self.record["artifacts"].get("report")
        if key is None:
            return None
        artifact = Workspace(self.workspace).store.open(Reference("report", key))
        return artifact.file_path("report.html").absolute()

    def __repr__(self) -> str:
        """Name of the experiment, and its protocols."""
        return f"RunResult({self.name!r}, protocols: {', '.join(self.record['metrics'])})"

    def _scores(self) -> list[Row]:
        return [
            {"protocol": protocol, "method": method, **scores}
            for protocol, methods in self.record["metrics"].items()
            for method, scores in methods.items()
        ]

    def _repr_html_(self) -> str:
        """Scores in per cent, and where the report is."""
        rows = self._scores()
        names = list(dict.fromkeys(name for row in rows for name in row))
        shown = [name for name in names if not name.endswith("_std")]
        head = "".join(f"<th>{html.escape(score_name(name))}</th>" for name in shown)
        body = "".join(
            "<tr>" + "".join(f"<td>{_cell(row, name)}</td>" for name in shown) + "</tr>"
            for row in rows
        )
        several = len(shown) < len(names)
        spread = "mean \u00b1 standard deviation over splits" if several else "one split"
        report = f"<p>Report: {html.escape(str(self.report))}</p>" if self.report else ""
        return (
            f"<p><b>{html.escape(self.name)}</b>: per cent, {spread}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{report}"
        )


def run(
    experiment: str,
    overrides: Sequence[str] = (),
    *,
    workspace: str | Path = ".cppcl",
    until: str | None = None,
) -> RunResult:
    """Run an experiment as ``cppcl run`` does; what is stored is reused.

    Parameters
    ----------
    experiment : str
        ``emoji``, ``folder``, ... or the path of a YAML file.
    overrides : sequence of str
        ``key=value``, as of ``--set``: ``["root=my/pictures", "cprl.alpha=0.01"]``.
    workspace : path
        Where results are stored.
    until : str, optional
        Stop after this stage.

    Returns
    -------
    RunResult

    Raises
    ------
    InputError
        If the experiment, an option or a value is wrong.
    """
    quieten()
    from flows.configuration.enough import check_data
    from flows.configuration.load import load_experiment

    check_data(load_experiment(experiment, overrides))
    place = Path(workspace).absolute()
    with Terminal(sys.stderr) as terminal:
        prepare_prefect(terminal, place, verbose=False)
        from flows.experiment import run_experiment

        record = run_experiment(experiment, list(overrides), workspace=place, until=until)
    return RunResult(record, place)


def table(rows: list[Row]) -> Any:
    """Rows as a pandas data frame, where pandas is installed."""
    if find_spec("pandas") is None:
        return rows
    import pandas

    return pandas.DataFrame(rows)


def _cell(row: Row, name: str) -> str:
    value, spread = row.get(name), row.get(f"{name}_std")
    if value is None:
        return ""
    if not isinstance(value, float):
        return html.escape(str(value))
    return f"{100 * value:.1f}" + ("" if spread is None else f" \u00b1 {100 * spread:.1f}")
