"""Evaluations that the items of a reproduction need: stored, recorded, or computed now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from cppcl.datasets import DATASETS, PublishedSet
from cppcl.errors import CppclError, InputError
from flows.chain import Chain
from flows.configuration.datasets import check_places, parts_of
from flows.configuration.experiment import Experiment
from flows.configuration.load import load_experiment
from flows.reproduction.config import (
    AnyItem,
    GridItem,
    RunOptions,
    ScoresItem,
    SensitivityItem,
    SurfaceItem,
)
from flows.selection import Selection
from storage import Reference
from tasks.progress import log
from tasks.stages.contract import Mode, StageNotStoredError
from tasks.workspace import Workspace

Found = dict[str, list[Reference]]
"""Evaluations of each split, by method."""


class DataAbsentError(CppclError):
    """The pictures of an experiment are not here."""


class StoredScores(Selection):
    """Every stage up to scores, all of which must be stored."""

    def mode(self, stage: str) -> Mode:
        """Nothing but the table of the data set is made."""
        return "reuse" if stage == "fetch" else "require"


class StoredChain(Chain):
    """Looks up what is stored, and leaves no trace in Prefect's records."""

    def stage(self, name: str, task: Any, /, **arguments: Any) -> Reference:
        """Find the artifact of one stage."""
        plain = task.fn.__wrapped__
        found = plain(workspace=self.workspace, mode=self.selection.mode(name), **arguments)
        return self.record.add(found)


class Runs:
    """Evaluations of experiments, each found or made once.

    Parameters
    ----------
    workspace : Workspace
        Where results are stored and runs recorded.
    quick : bool
        True for the smaller form of each run.
    anew : bool
        True to leave recorded runs of earlier versions aside.
    """

    def __init__(self, workspace: Workspace, *, quick: bool = False, anew: bool = False) -> None:
        self.workspace = workspace
        self.quick = quick
        self.anew = anew
        self.notes: dict[str, str] = {}
        self._found: dict[str, Found] = {}

    def experiment(self, run: RunOptions, changes: Sequence[str] = ()) -> Experiment:
        """Experiment of a run, with changes; the protocol that is shown alone."""
        return experiment_of(run, changes, self.quick)

    def evaluations(
        self, run: RunOptions, changes: Sequence[str] = (), methods: Sequence[str] = ()
    ) -> Found:
        """Evaluations of a run, of these methods alone where there are any.

        Raises
        ------
        DataAbsentError
            If its pictures are not here.
        CppclError
            Whatever ends a run.
        """
        experiment = self.experiment(run, changes)
        if methods:
            experiment = with_methods(experiment, run.protocol, methods)
        asked = experiment.model_dump_json()
        if asked not in self._found:
            self.check_data(experiment)
            self._found[asked] = self.find(run, experiment)
        return self._found[asked]

    def check_data(self, experiment: Experiment) -> None:
        """Refuse an experiment whose pictures would have to be downloaded."""
        place = self.workspace.published_data
        for options in parts_of(experiment.dataset).values():
            name = options.registered_name
            data_set = DATASETS[name](**options.arguments())
            if isinstance(data_set, PublishedSet) and data_set.status(place).missing:
                raise DataAbsentError(f"data not present: `cppcl data status {name}`")

    def find(self, run: RunOptions, experiment: Experiment) -> Found:
        """Take what is stored, else what an earlier version recorded, else compute it."""
        try:
            chain: Chain = StoredChain(experiment, self.workspace, StoredScores(until="evaluate"))
            return chain.run().scores[run.protocol]
        except StageNotStoredError:
            pass
        if not self.anew:
            for name, record in reversed(self.workspace.run_records().items()):
                found = recorded(record, experiment, run.protocol)
                if found and all(self.workspace.store.find(r) for r in flat(found)):
                    self.notes[name] = (
                        f"{run.experiment}: taken from the recorded run {name}, which an earlier "
                        "version of the code made; --anew computes it with this one"
                    )
                    return found
        log(f"running {experiment.name}, {run.protocol}")
        return (
            Chain(experiment, self.workspace, Selection(until="evaluate"))
            .run()
            .scores[run.protocol]
        )


def check_items(items: Mapping[str, AnyItem], runs: Mapping[str, RunOptions]) -> None:
    """Refuse items that cannot be made, before anything runs.

    Raises
    ------
    CppclError
        An experiment, a protocol, a method or an option of a run is not there, or the data set of
        all of them lies in a place that is not; the message names the item.
    """
    places = {}
    for name, item in items.items():
        for run, methods, changes in asked_of(item):
            try:
                experiment = experiment_of(runs[run], changes)
                with_methods(experiment, runs[run].protocol, methods)
            except CppclError as error:
                raise InputError(f"item {name}, run {run}: {error}") from error
            places[repr(experiment.dataset)] = experiment.dataset
    if len(places) == 1:  # of several, each may fail for itself
        check_places(*places.values())


def asked_of(item: AnyItem) -> Iterator[tuple[str, list[str], list[str]]]:
    """Runs that an item asks for, their methods, and changes: one for each option it varies."""
    if isinstance(item, ScoresItem):
        for line in item.lines.values():
            if line.run and line.method:
                yield line.run, [line.method], []
        return
    methods = [item.method] if isinstance(item, GridItem | SurfaceItem) else list(item.methods)
    yield item.run, methods, []
    if isinstance(item, SensitivityItem):
        for axis in item.axes:
            yield item.run, methods, axis.changes(axis.values[-1])
    elif isinstance(item, SurfaceItem):
        yield item.run, methods, item.changes(item.x.values[-1], item.y.values[-1])


def experiment_of(run: RunOptions, changes: Sequence[str] = (), quick: bool = False) -> Experiment:
    """Experiment of a run, with changes; the protocol that is shown alone."""
    smaller = run.quick if quick else ()
    experiment = load_experiment(run.experiment, [*run.overrides, *smaller, *changes])
    if run.protocol not in experiment.protocols:
        raise CppclError(
            f"experiment {run.experiment!r} has no protocol {run.protocol!r}; there is "
            f"{', '.join(experiment.protocols)}"
        )
    only = {run.protocol: experiment.protocols[run.protocol]}
    return experiment.model_copy(update={"protocols": only})


def with_methods(experiment: Experiment, protocol: str, methods: Sequence[str]) -> Experiment:
    """An experiment with some of its methods."""
    options = experiment.protocols[protocol]
    for method in methods:
        if method not in options.methods:
            raise CppclError(
                f"experiment {experiment.name!r}, {protocol!r} has no method {method!r}; there is "
                f"{', '.join(options.methods)}"
            )
    kept = {name: options.methods[name] for name in methods}
    changed = options.model_copy(update={"methods": kept, "published": None})
    return experiment.model_copy(update={"protocols": {protocol: changed}})


def flat(found: Found) -> Iterator[Reference]:
    """Every evaluation."""
    for references in found.values():
        yield from references


def recorded(record: Mapping[str, Any], experiment: Experiment, protocol: str) -> Found | None:
    """Evaluations of a recorded run with the same options; None if it has others.

    An option that did not exist when it was made counts as its default. Splits may be among those
    that it has.
    """
    if protocol not in record.get("evaluations", {}):
        return None
    try:
        before = Experiment.model_validate(record["configuration"])
    except (KeyError, ValidationError):  # of an index, or with options that there are no more
        return None
    if before.name != experiment.name or protocol not in before.protocols:
        return None
    old, new = before.protocols[protocol], experiment.protocols[protocol]
    seeds, wanted = list(old.split.seeds), list(new.split.seeds)
    if not set(wanted) <= set(seeds) or not new.methods.keys() <= old.methods.keys():
        return None
    shared = ("dataset", "longest_side", "features", "curriculum", "tuning", "evaluation")
    pairs: list[tuple[Any, Any]] = [(getattr(experiment, p), getattr(before, p)) for p in shared]
    pairs.append((new.split.model_copy(update={"seeds": old.split.seeds}), old.split))
    pairs += [(options, old.methods[name]) for name, options in new.methods.items()]
    used = {options.features for options in new.methods.values()} - {None}
    if not used <= before.more_features.keys():
        return None
    pairs += [(experiment.more_features[name], before.more_features[name]) for name in used]
    if not all(now == then for now, then in pairs):
        return None
    places = [seeds.index(seed) for seed in wanted]
    texts = record["evaluations"][protocol]
    return {
        name: [Reference.parse(texts[name][place]) for place in places] for name in new.methods
    }
