"""Render the reproduction of the paper's tables and figures on one data set."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version

from cppcl.report.reproduction.data import Item, Reproduction, State
from cppcl.report.reproduction.render import render_reproduction as render
from cppcl.retrieval.metrics import CONVENTION
from storage import Recipe, Store, Writer
from tasks.reporting.reproduction import plots, protocols, sweeps, tables
from tasks.reporting.reproduction.cells import Content
from tasks.reporting.reproduction.series import MeasuredItem
from tasks.samples import open_pictures
from tasks.stages.contract import Mode, StageResult, produce, stage_task
from tasks.workspace import Workspace

VERSION = "7"
LIBRARIES = ("cppcl", "numpy", "matplotlib")

KINDS: dict[str, Callable[[Store, MeasuredItem], Content]] = {
    "scores": tables.scores,
    "differences": tables.differences,
    "binary_codes": tables.binary_codes,
    "costs": tables.costs,
    "retrieval_time": tables.retrieval_time,
    "precision_recall": plots.precision_recall,
    "per_category": plots.per_category,
    "grid": plots.grid,
    "convergence": plots.convergence,
    "sensitivity": sweeps.sensitivity,
    "surface": sweeps.surface,
    "protocol": protocols.protocol,
}
"""What makes an item of each kind."""


def reproduction_of_paper(
    *,
    workspace: Workspace,
    name: str,
    title: str,
    notes: Sequence[str],
    items: Sequence[MeasuredItem],
    intro: str = "",
    mode: Mode = "reuse",
) -> StageResult:
    """Publish the page of a reproduction, with its tables and figures.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    name, title : str
        Of the reproduction.
    notes : sequence of str
        About the whole.
    intro : str
        What is rebuilt, where it is not the paper.
    items : sequence of MeasuredItem
        Tables and figures, with the evaluations that they are made from.
    mode : {'reuse', 'force', 'require'}
        What to do with a stored artifact.
    """
    store = workspace.store
    inputs = dict(pair for item in items for pair in item.inputs())
    recipe = Recipe(
        "reproduction",
        VERSION,
        {
            "name": name,
            "title": title,
            "notes": list(notes),
            "items": [item.document() for item in items],
            **({"intro": intro} if intro else {}),
        },
        inputs,
    )

    def create(writer: Writer) -> None:
        data = replace(gather(store, name, title, notes, items), intro=intro)
        for file, content in render(data).items():
            writer.put_bytes(file, content)

    return produce(store, recipe, create, mode=mode, label="page, tables, figures")


render_reproduction = stage_task(reproduction_of_paper)


def gather(
    store: Store, name: str, title: str, notes: Sequence[str], items: Sequence[MeasuredItem]
) -> Reproduction:
    """Collect everything that the page shows."""
    return Reproduction(
        name=name,
        title=title,
        items=[item_of(store, item) for item in items],
        notes=notes,
        convention=CONVENTION,
        licences=licences(store, items),
        versions={"python": platform.python_version(), **{n: version(n) for n in LIBRARIES}},
    )


def item_of(store: Store, item: MeasuredItem) -> Item:
    """One table or figure."""
    state: State = "done"
    if item.message:
        state = "failed" if item.failed else "absent"
    content = KINDS[item.kind](store, item)
    notes = [*item.notes, *content.pop("notes", ())]
    return Item(item.name, item.title, item.source, state, item.message, notes=notes, **content)


def licences(store: Store, items: Sequence[MeasuredItem]) -> list[str]:
    """Attribution of the pictures of every data set that is used."""
    tables = {
        store.open(series.evaluations[0]).inputs["table"]
        for item in items
        for series in item.series
        if series.evaluations
    }
    return sorted({line for t in tables for line in open_pictures(store, t).licence.splitlines()})
