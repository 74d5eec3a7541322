"""What a run did: references, seconds and reuse of every stage, and the scores."""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cppcl.errors import CppclError
from cppcl.report.comparisons import COMPARISONS
from cppcl.retrieval.cutoffs import convention_line
from cppcl.retrieval.metrics import summarise
from flows.configuration.experiment import Protocol
from storage import Reference, Store
from tasks.lineage import Lineage
from tasks.reporting.report import training_of
from tasks.stages.contract import StageResult
from tasks.stages.names import STAGES


@dataclass
class RunRecord:
    """Results of the stages of one run, in the order in which they were produced.

    Parameters
    ----------
    experiment : str
        Name of the experiment.
    """

    experiment: str
    results: dict[str, list[StageResult]] = field(default_factory=dict)
    scores: dict[str, dict[str, list[Reference]]] = field(default_factory=dict)
    tunings: dict[str, dict[str, list[Reference]]] = field(default_factory=dict)
    left_out: dict[str, dict[str, CppclError]] = field(default_factory=dict)
    chosen: dict[str, dict[str, Any]] = field(default_factory=dict)
    search_seconds: float = 0.0

    def add(self, result: StageResult) -> Reference:
        """Note a stage's result and return its reference."""
        self.results.setdefault(result.reference.stage, []).append(result)
        return result.reference

    def add_scores(self, protocol: str, method: str, evaluation: Reference) -> None:
        """Note which protocol and method an evaluation belongs to."""
        self.scores.setdefault(protocol, {}).setdefault(method, []).append(evaluation)

    def add_tuning(self, protocol: str, method: str, tuning: Reference) -> None:
        """Note which protocol and method a search belongs to."""
        self.tunings.setdefault(protocol, {}).setdefault(method, []).append(tuning)

    def leave_out(self, protocol: str, method: str, error: CppclError) -> None:
        """Note that a method refuses the data of a split; what it did on others is dropped."""
        self.left_out.setdefault(protocol, {}).setdefault(method, error)
        self.tunings.get(protocol, {}).pop(method, None)

    def choose(self, protocols: Mapping[str, Protocol], store: Store) -> None:
        """Let the method that validation prefers be the first of its protocol: see `choice_of`."""
        tuned = self.tuned(store)
        for protocol, methods in self.scores.items():
            searches = {
                method: tuned[protocol][method]
                for method in protocols[protocol].candidates
                if method in methods and method in tuned.get(protocol, {})
            }
            if not searches:  # a single method has no rival
                continue
            self.chosen[protocol] = choice_of(searches)
            first = self.chosen[protocol]["method"]
            self.scores[protocol] = {first: methods[first], **methods}

    def tuned(self, store: Store) -> dict[str, dict[str, list[dict[str, Any]]]]:
        """What was searched and chosen, one search a split, by protocol and method."""
        return {
            protocol: {
                method: [store.open(r).json("search.json") for r in references]
                for method, references in methods.items()
            }
            for protocol, methods in self.tunings.items()
        }

    def with_chosen(self, configuration: dict[str, Any], store: Store) -> dict[str, Any]:
        """Configuration of the experiment, with the options that each split chose."""
        for protocol, methods in self.tuned(store).items():
            for method, searches in methods.items():
                options = configuration["protocols"][protocol]["methods"][method]
                if any(search["best"] for search in searches):
                    options["chosen"] = [search["best"] for search in searches]
        if self.chosen:
            configuration["chosen"] = self.chosen
        return configuration

    def evaluations(self) -> dict[str, dict[str, list[str]]]:
        """Evaluations of each split as text, by protocol and method."""
        return {
            protocol: {method: [str(r) for r in refs] for method, refs in methods.items()}
            for protocol, methods in self.scores.items()
        }

    def metrics(self, store: Store) -> dict[str, dict[str, dict[str, float]]]:
        """Means over splits, with ``<name>_std``, of every protocol and method.

        The standard deviation is that of the splits, where there are several. The method
        ``chance`` is the expectation of a random ranking.
        """
        table: dict[str, dict[str, dict[str, float]]] = {}
        for protocol, methods in self.scores.items():
            documents = {
                method: [store.open(r).json("scores.json") for r in references]
                for method, references in methods.items()
            }
            table[protocol] = {
                m: summarise([d["scores"] for d in ds]) for m, ds in documents.items()
            }
            # Chance depends on the test rows alone: the same for every method that has the score.
            chance: dict[str, float] = {}
            for ds in documents.values():
                chance |= summarise([d["chance"] for d in ds])
            table[protocol]["chance"] = chance
        return table

    def conventions(self, store: Store) -> dict[str, dict[str, Any]]:
        """Scores that tables show, and how they are computed, in a line, by protocol."""
        found = {}
        for protocol, methods in self.scores.items():
            document = store.open(next(iter(methods.values()))[0]).json("scores.json")
            shown = [name for name in document["scores"] if name == "map" or "rank" in name]
            shown += [name for name in document.get("of_queries", ()) if name not in shown]
            found[protocol] = {"scores": shown, "line": convention_line(shown)}
        return found

    def training(self, store: Store) -> dict[str, dict[str, dict[str, float]]]:
        """How training went, means over splits: see `tasks.reporting.report.training_of`."""
        return {
            protocol: {method: training_of(store, refs) for method, refs in methods.items()}
            for protocol, methods in self.scores.items()
        }

    def comparisons(self, store: Store) -> dict[str, Any]:
        """``differences`` of methods and ``published`` scores beside ours, as the report has them.

        Each is left out where the report shows none.
        """
        for result in self.results.get("report", ()):
            report = store.open(result.reference)
            if COMPARISONS in report.names:
                return dict(report.json(COMPARISONS))
        return {}

    def summary(self, store: Store) -> dict[str, Any]:
        """Return the record that ``cppcl run --json`` prints.

        ``differences`` and ``published`` are there where the report compares methods, and
        ``tuned`` where there are grids.
        """
        stages = [stage for stage in STAGES if stage in self.results]
        artifacts = {s: self.results[s][0].reference.key for s in stages} | self._first(store)
        return {
            "experiment": self.experiment,
            "metrics": self.metrics(store),
            "conventions": self.conventions(store),
            **self.comparisons(store),
            "training": self.training(store),
            "artifacts": artifacts,
            **({"chosen": self.chosen} if self.chosen else {}),
            **({"left_out": self._reasons()} if self.left_out else {}),
            "seconds": {stage: round(self.seconds(stage), 3) for stage in stages},
            "cached": {s: all(r.cached for r in self.results[s]) for s in stages},
            "peak_memory_bytes": peak_memory_bytes(),
            **({"tuned": self.tuned(store)} if self.tunings else {}),
        }

    def seconds(self, stage: str) -> float:
        """Wall time of a stage; that of `tune` includes what all searches scored at once."""
        at_once = self.search_seconds if stage == "tune" else 0.0
        return at_once + sum(result.seconds for result in self.results[stage])

    def _first(self, store: Store) -> dict[str, str]:
        """Model that answers: of the first method of the first protocol, on its first split."""
        if not self.scores:
            return {}
        evaluation = next(iter(next(iter(self.scores.values())).values()))[0]
        lineage = Lineage.of_evaluation(store, evaluation)
        found = (evaluation, lineage.codes.reference, lineage.training.reference)
        return {reference.stage: reference.key for reference in found}

    def _reasons(self) -> dict[str, dict[str, str]]:
        return {
            protocol: {method: str(error) for method, error in methods.items()}
            for protocol, methods in self.left_out.items()
        }

    def all_artifacts(self) -> list[str]:
        """Every reference of the run, as text."""
        return sorted({str(r.reference) for results in self.results.values() for r in results})


def choice_of(methods: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Best and second method by the mean over splits of what their searches reached.

    Parameters
    ----------
    methods : dict
        Searches of each method, one a split.

    Returns
    -------
    dict
        ``method``, ``validation`` (its score), ``score`` (the name), and where there is a second
        one ``runner_up`` and ``runner_up_validation``.
    """
    reached = {
        method: sum(best_mean(search) for search in searches) / len(searches)
        for method, searches in methods.items()
    }
    first, *rest = sorted(reached, key=lambda method: -reached[method])
    chosen: dict[str, Any] = {
        "method": first,
        "validation": reached[first],
        "score": methods[first][0]["score"],
    }
    if rest:
        chosen |= {"runner_up": rest[0], "runner_up_validation": reached[rest[0]]}
    return chosen


def best_mean(search: Mapping[str, Any]) -> float:
    """Score that a search reached."""
    return float(next(row["mean"] for row in search["table"] if row["best"]))


def peak_memory_bytes() -> int:
    """Largest resident memory of this process or of one of its ended children."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
