"""Prefect flow of a reproduction: every table and figure of the paper on one data set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect import State, flow, get_run_logger
from prefect.artifacts import create_link_artifact
from prefect.context import FlowRunContext
from prefect.runtime import flow_run
from prefect.states import Failed
from pydantic_core import SchemaError

from cppcl.errors import CppclError, DataUnavailableError
from cppcl.modality import Modality
from cppcl.report.sweep import value_text
from cppcl.retrieval.hamming import HAMMING_RADIUS
from flows.experiment import DEFAULT_WORKSPACE
from flows.reproduction.config import (
    AnyItem,
    AxisOptions,
    BinaryItem,
    GridItem,
    MethodsItem,
    ProtocolItem,
    ReproductionOptions,
    ScoresItem,
    SensitivityItem,
    SurfaceItem,
    chosen_items,
    load_reproduction,
    runs_of,
)
from flows.reproduction.runs import DataAbsentError, Runs
from flows.watching import tell_failure
from storage import Reference, StoreError
from tasks.lineage import Lineage, scores_behind
from tasks.progress import listening, log
from tasks.reporting.reproduction.page import render_reproduction
from tasks.reporting.reproduction.series import MeasuredItem, Series
from tasks.reporting.retrieval_time import retrieval_time
from tasks.reporting.score_time import score_time
from tasks.stages.binary_codes import binary_codes
from tasks.stages.evaluate import evaluate
from tasks.workspace import STAMP, Workspace

PAGE = "index.html"


def run_name() -> str:
    """Name of a run in Prefect's pages."""
    return f"reproduce {Path(flow_run.parameters['dataset']).stem}"


@flow(
    name="cppcl-reproduce",
    flow_run_name=run_name,
    validate_parameters=True,
    persist_result=False,
    on_failure=[tell_failure],
    on_crashed=[tell_failure],
)
def run_reproduction(
    dataset: str,
    quick: bool = False,
    items: list[str] | None = None,
    anew: bool = False,
    workspace: Path = DEFAULT_WORKSPACE,
) -> dict[str, Any] | State[dict[str, Any]]:
    """Rebuild the paper's tables and figures on a data set; the record of it is returned.

    An item that fails is told and left out; the record is then data of a failed state. Where
    pictures are not here, the item says so.

    Parameters
    ----------
    dataset : str
        Name of a reproduction that comes along, or a YAML file.
    quick : bool
        Few values of every sweep, one split.
    items : list of str
        These tables and figures alone.
    anew : bool
        Compute what only a recorded run of an earlier version has.
    workspace : path
        Where results are stored.
    """
    options = load_reproduction(dataset)
    chosen = chosen_items(options, items)
    place = Workspace(Path(workspace))
    started = datetime.now(UTC)
    logger = get_run_logger().info if FlowRunContext.get() else None
    with place.store.in_use(), listening(on_message=logger):
        runs = Runs(place, quick=quick, anew=anew)
        maker = Maker(options, runs)
        measured = [maker.measure(name, chosen[name]) for name in chosen]
        summary = publish(options, measured, runs, place, started)
    if failed := summary["failed"]:
        return Failed(data=summary, message=f"failed: {', '.join(failed)}")
    return summary


class Maker:
    """Gathers what each table or figure is made of.

    Parameters
    ----------
    options : ReproductionOptions
        The description.
    runs : Runs
        Where evaluations come from.
    """

    def __init__(self, options: ReproductionOptions, runs: Runs) -> None:
        self.options = options
        self.runs = runs
        self.problems: list[str] = []
        self.absent: list[str] = []

    def measure(self, name: str, item: AnyItem) -> MeasuredItem:
        """One table or figure, whatever could be measured of it."""
        log(f"{name}: {item.title}")
        self.problems, self.absent = [], []
        makers: dict[type, Callable[[Any], tuple[list[Series], dict[str, Any]]]] = {
            ScoresItem: self.scores,
            MethodsItem: self.methods,
            GridItem: self.grid,
            SensitivityItem: self.sensitivity,
            SurfaceItem: self.surface,
            BinaryItem: self.binary,
            ProtocolItem: self.protocol,
        }
        series, shown = makers[type(item)](item)
        for problem in dict.fromkeys(self.problems):
            log(f"failed, {name}: {problem}")
        notes = [*item.notes, *self.notes_of(item)]
        return MeasuredItem(
            name=name,
            kind=item.kind,
            title=item.title,
            source=item.source,
            options=shown,
            series=series,
            notes=list(dict.fromkeys(notes)),
            message="; ".join(dict.fromkeys([*self.problems, *self.absent])),
            failed=bool(self.problems),
        )

    def notes_of(self, item: AnyItem) -> Iterator[str]:
        """What a reader must know of the runs of an item."""
        for name in dict.fromkeys(runs_of(item)):
            run = self.options.runs[name]
            if run.note:
                yield f"{run.preset}: {run.note}"

    def evaluations(
        self, run: str, method: str, methods: Sequence[str], changes: Sequence[str] = ()
    ) -> tuple[list[Reference], str]:
        """Evaluations of a method in a run of several, or why there are none."""
        try:
            found = self.runs.evaluations(self.options.runs[run], changes, methods)
            return found[method], ""
        except SchemaError as error:
            # An interruption, where it comes while pydantic builds a model.
            raise KeyboardInterrupt from error
        except (DataAbsentError, DataUnavailableError) as error:
            text = str(error).partition("\n")[0]
            self.absent.append(text)
            return [], text
        except Exception as error:
            known = isinstance(error, CppclError | StoreError)
            text = str(error) if known else f"{type(error).__name__}: {error}"
            changed = f" ({', '.join(changes)})" if changes else ""
            self.problems.append(f"{run}{changed}: {text}")
            return [], f"failed: {text}"

    def scores(self, item: ScoresItem) -> tuple[list[Series], dict[str, Any]]:
        """Lines of a table."""
        wanted: dict[str, list[str]] = {}
        for line in item.lines.values():
            if line.run and line.method:
                wanted.setdefault(line.run, []).append(line.method)
        series = []
        for name, line in item.lines.items():
            found: list[Reference] = []
            missing, preset = "", "quoted"
            if line.run and line.method:
                methods = tuple(dict.fromkeys(wanted[line.run]))
                found, missing = self.evaluations(line.run, line.method, methods)
                preset = self.options.runs[line.run].preset
            about = {
                "line": name,
                "printed": line.printed,
                "preset": preset,
                "errata": list(line.errata),
                "note": line.note,
            }
            series.append(Series(line.title, found, about, missing=missing))
        statements = [statement.model_dump(mode="json") for statement in item.statements]
        return series, {"score": item.score, "statements": statements}

    def protocol(self, item: ProtocolItem) -> tuple[list[Series], dict[str, Any]]:
        """Published rows, and methods of ours under the same protocol."""
        series = [
            Series(row.title, about={"printed": row.scores, "note": row.note})
            for row in item.rows.values()
        ]
        for method, title in item.methods.items():
            found, missing = self.evaluations(item.run, method, tuple(item.methods))
            series.append(Series(title, found, {"printed": {}, "note": ""}, missing=missing))
        return series, {"sizes": item.sizes}

    def methods(self, item: MethodsItem) -> tuple[list[Series], dict[str, Any]]:
        """Several methods of a run."""
        series = []
        for method, title in item.methods.items():
            found, missing = self.evaluations(item.run, method, tuple(item.methods))
            extra: list[Reference] = []
            if item.kind == "retrieval_time" and found:
                extra = self.made(retrieval_time, evaluation=found[0], label=f"{title}, a query")
            series.append(Series(title, found, {"note": ""}, extra, missing))
        claims = claims_document(item)
        return series, {"score": item.score, "printed": item.printed, "claims": claims}

    def made(self, task: Any, **arguments: Any) -> list[Reference]:
        """Artifact of a task; none, and a problem, where it fails."""
        state = task(workspace=self.runs.workspace, return_state=True, **arguments)
        result = state.result(raise_on_failure=False)
        if isinstance(result, Exception):
            self.problems.append(f"{arguments.get('label', '')}: {result}")
            return []
        return [result.reference]

    def grid(self, item: GridItem) -> tuple[list[Series], dict[str, Any]]:
        """One method, with what decides which pictures are shown."""
        found, missing = self.evaluations(item.run, item.method, (item.method,))
        experiment = self.runs.experiment(self.options.runs[item.run])
        shown = {"queries": item.queries, "nearest": item.nearest, "seed": item.seed}
        configuration = {"report": shown, "longest_side": experiment.longest_side}
        return [Series(item.label, found, missing=missing)], {"configuration": configuration}

    def sensitivity(self, item: SensitivityItem) -> tuple[list[Series], dict[str, Any]]:
        """Every value of every option, for every method."""
        series: list[Series] = []
        axes = []
        for axis in item.axes:
            first = len(series)
            values = axis.chosen(self.runs.quick)
            for value in values:
                changes = axis.changes(value)
                for method, title in item.methods.items():
                    found, missing = self.evaluations(
                        item.run, method, tuple(item.methods), changes
                    )
                    about = {
                        "option": axis.option,
                        "value": value,
                        "seconds": axis.seconds,
                        "errata": list(axis.errata),
                    }
                    series.append(Series(title, found, about, missing=missing))
            if axis.seconds:
                series[first:] = self.with_times(axis.seconds, series[first:])
            axes.append(axis_document(axis, values))
        return series, {"score": item.score, "axes": axes}

    def with_times(self, modality: Modality, series: Sequence[Series]) -> list[Series]:
        """The same series, each with what the scores of its curriculum take beside the others."""
        store = self.runs.workspace.store
        behind = [scores_behind(store, one.evaluations, modality) for one in series]
        extracted = list(dict.fromkeys(filter(None, behind)))
        if not extracted:
            return list(series)
        evaluation = next(one.evaluations[0] for one in series if one.evaluations)
        times = self.made(
            score_time,
            table=Lineage.of_evaluation(store, evaluation).table,
            modality=modality,
            extracted=extracted,
            label="scores of a picture",
        )
        return [
            replace(one, extra=times) if scored else one
            for one, scored in zip(series, behind, strict=True)
        ]

    def surface(self, item: SurfaceItem) -> tuple[list[Series], dict[str, Any]]:
        """Every pair of values of two options."""
        along_x, along_y = (axis.chosen(self.runs.quick) for axis in (item.x, item.y))
        series = []
        for y in along_y:
            for x in along_x:
                changes = item.changes(x, y)
                found, missing = self.evaluations(item.run, item.method, (item.method,), changes)
                title = f"{value_text(x)}, {value_text(y)}"
                series.append(Series(title, found, {"x": x, "y": y}, missing=missing))
        axes = {
            "x": axis_document(item.x, along_x),
            "y": axis_document(item.y, along_y),
        }
        return series, {"score": item.score, **axes, "claims": claims_document(item)}

    def binary(self, item: BinaryItem) -> tuple[list[Series], dict[str, Any]]:
        """Exact codes and binary codes of several lengths, of every method."""
        series = []
        for method, title in item.methods.items():
            exact, missing = self.evaluations(item.run, method, tuple(item.methods))
            about = {"method": method, "bits": None, "note": ""}
            series.append(Series(title, exact, about, missing=missing))
            for bits in item.bits if exact else ():
                found = self.of_bits(title, exact, bits)
                about = {"method": method, "bits": bits, "note": ""}
                short = "" if found else f"codes are shorter than {bits} entries"
                series.append(Series(title, found, about, missing=short))
        return series, {"score": item.score}

    def of_bits(self, title: str, exact: Iterable[Reference], bits: int) -> list[Reference]:
        """Evaluations of binary codes of a length; none where codes are shorter."""
        store, found = self.runs.workspace.store, []
        for number, reference in enumerate(exact, start=1):
            scored = store.open(reference)
            codes = scored.inputs["codes"]
            if min(store.open(codes).shape("sketch_codes")[1:]) < bits:
                return []
            label = f"{title}, {bits} bits, split {number}"
            split = {name: scored.inputs[name] for name in ("table", "split")}
            for made in self.made(
                binary_codes, codes=codes, split=scored.inputs["split"], bits=bits, label=label
            ):
                found += self.made(
                    evaluate,
                    **split,
                    codes=made,
                    target=scored.parameters["target"],
                    metric="cosine",
                    ranks=tuple(scored.parameters["ranks"]),
                    seed=scored.parameters["seed"],
                    radius=HAMMING_RADIUS,
                    label=label,
                )
        return found


def claims_document(item: MethodsItem | SurfaceItem) -> dict[str, Any]:
    """Statements of the paper on an item, as plain data."""
    return {name: claim.model_dump(mode="json") for name, claim in item.claims.items()}


def axis_document(axis: AxisOptions, chosen: Sequence[Any]) -> dict[str, Any]:
    """What is shown of an option and its values."""
    return {
        "option": axis.option,
        "title": axis.title,
        "chosen": list(chosen),
        "expected": axis.expected,
        "statement": axis.statement,
        "errata": list(axis.errata),
        "seconds": axis.seconds,
    }


def publish(
    options: ReproductionOptions,
    measured: Sequence[MeasuredItem],
    runs: Runs,
    place: Workspace,
    started: datetime,
) -> dict[str, Any]:
    """Render, write the record, and return it."""
    notes = [*options.notes, *runs.notes.values()]
    if runs.quick:
        notes.insert(0, "Quick: few values of every sweep, and one split; not the whole.")
    state: Any = render_reproduction(
        workspace=place,
        name=options.name,
        title=options.title,
        intro=options.intro,
        notes=notes,
        items=measured,
        return_state=True,
    )
    result = state.result()
    page = place.store.open(result.reference).file_path(PAGE)
    name = f"reproduce-{options.name}{'-quick' if runs.quick else ''}"
    create_link_artifact(key=f"{name}-page", link=page.absolute().as_uri())
    summary: dict[str, Any] = {
        "experiment": name,
        "items": {
            item.name: {
                "title": item.title,
                "kind": item.kind,
                "state": "failed" if item.failed else "absent" if item.message else "done",
                "message": item.message,
            }
            for item in measured
        },
        "failed": [item.name for item in measured if item.failed],
        "notes": notes,
        "artifacts": {"reproduction": result.reference.key},
        "cached": result.cached,
    }
    used = {str(reference) for item in measured for _, reference in item.inputs()}
    place.record_run(
        name,
        started.strftime(STAMP),
        {
            **summary,
            "started": started.isoformat(timespec="seconds"),
            # What these were made from is kept with them.
            "all_artifacts": sorted({str(result.reference), *used}),
        },
    )
    return summary
