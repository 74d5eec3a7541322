"""The chain of stages, wired: pictures to features to codes to scores to a report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from prefect import Task

from cppcl.curriculum.annotation.simulated import ANNOTATOR
from cppcl.errors import InputError
from cppcl.learning.estimator import merged
from cppcl.modality import MODALITIES, Modality
from flows.configuration.experiment import Experiment, Protocol
from flows.configuration.modalities import ExtractorPair, what_learns
from flows.record import RunRecord
from flows.selection import Selection
from storage import Recipe, Reference, canonical_json
from tasks.cluster.session import cluster_session
from tasks.progress import log
from tasks.reporting.report import render_report
from tasks.stages.binary_codes import binary_codes
from tasks.stages.build_curricula import build_curricula
from tasks.stages.contract import StageNotStoredError
from tasks.stages.encode import encode
from tasks.stages.evaluate import evaluate
from tasks.stages.extract import extract
from tasks.stages.fetch import fetch
from tasks.stages.learn import find_learned, learn, log_test_pictures
from tasks.stages.pseudo_sketches import draw_pseudo_sketches
from tasks.stages.split import split
from tasks.stages.train import constructed, train, train_ahead, training_recipe
from tasks.stages.tune import Search, best_options, search_ahead, tune
from tasks.workspace import Workspace


class ProtocolSplit(NamedTuple):
    """One split of a protocol."""

    protocol: str
    seed: int
    rows: Reference

    def __str__(self) -> str:
        return f"{self.protocol}, split {self.seed}"


ByModality = dict[Modality, Reference]
"""An artifact of each modality."""

MAIN = None
"""Name of the pair of extractors that methods use where they name no other."""


class Extracted(NamedTuple):
    """What was extracted for one split."""

    features: dict[str | None, ByModality]
    scores: ByModality
    annotator: dict[str, Reference]


class Asked(NamedTuple):
    """A method on one split, and what it is given: samples, features, curricula."""

    split: ProtocolSplit
    method: str
    options: Any
    samples: dict[str, Any]
    features: dict[str, Reference]
    given: dict[str, Any]


class Fit(NamedTuple):
    """A method on one split, with the options it is trained with."""

    protocol: str
    method: str
    label: str
    training: Recipe
    samples: dict[str, Any]
    features: dict[str, Reference]
    metric: str
    itq_bits: int | None


class Chain:
    """Stages of one experiment; run it inside a Prefect flow.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    workspace : Workspace
        Where results are stored.
    selection : Selection
        Which stages.
    """

    def __init__(self, experiment: Experiment, workspace: Workspace, selection: Selection) -> None:
        self.experiment = experiment
        self.workspace = workspace
        self.selection = selection
        self.record = RunRecord(experiment.name)
        self._extracted: dict[tuple[Modality, str, Reference | None], Reference] = {}

    def run(self) -> RunRecord:
        """Run the selected stages and return what they left."""
        runs = self.selection.runs
        data = self.experiment.dataset
        table = self.stage(
            "fetch",
            fetch,
            name=data.registered_name,
            options=data.arguments(),
            key_parameters=data.key_parameters(),
        )
        if self.experiment.pseudo_sketches:
            table = self.stage(
                "fetch",
                draw_pseudo_sketches,
                table=table,
                options=self.experiment.pseudo_sketches.model_dump(),
            )
        splits: list[ProtocolSplit] = []
        if runs("split"):
            for name, protocol in self.experiment.protocols.items():
                for seed in protocol.split.seeds:
                    splits.append(ProtocolSplit(name, seed, self.split(protocol, seed, table)))
        # Started by the first stage that is not stored, and closed after the last training.
        with cluster_session(*self.experiment.compute.cluster_arguments()) as cluster:
            extracted: list[Extracted] = []
            if runs("learn"):
                extracted = self.extract_splits(table, splits)
                cluster.close_if_laden()
            if runs("curricula"):
                asked = [
                    one
                    for split, pictures in zip(splits, extracted, strict=True)
                    for one in self.methods_of(split, table, pictures)
                ]
                fits = self.without_refused(self.tune(asked))
                models = self.train(fits) if runs("train") else []
        if runs("curricula"):
            if runs("encode"):
                for fit, model in zip(fits, models, strict=True):
                    self.score(fit, model)
            if self.experiment.tuning.choose:
                self.record.choose(self.experiment.protocols, self.workspace.store)
        if runs("report"):
            self.stage(
                "report",
                render_report,
                table=table,
                scores=self.record.scores,
                configuration=self.record.with_chosen(
                    self.experiment.without_places(), self.workspace.store
                ),
            )
        return self.record

    def stage(self, name: str, task: Task[..., Any], /, **arguments: Any) -> Reference:
        """Run one task of a stage, note its result and return the reference."""
        state = task(
            workspace=self.workspace,
            mode=self.selection.mode(name),
            return_state=True,
            **arguments,
        )
        return self.record.add(state.result())

    def split(self, protocol: Protocol, seed: int, table: Reference) -> Reference:
        """Split the table by the rule of a protocol."""
        return self.stage(
            "split",
            split,
            table=table,
            rule=protocol.split.rule,
            options=protocol.split.arguments(),
            seed=seed,
            audit=protocol.split.audit,
            target=protocol.target,
            noise=protocol.noise,
            pseudo_share=protocol.split.pseudo_share,
            least_drawn=protocol.split.least_drawn,
        )

    def extract_splits(self, table: Reference, splits: list[ProtocolSplit]) -> list[Extracted]:
        """Learn and extract features and scores of every split, shared if nothing learns."""
        pairs: dict[str | None, ExtractorPair] = {MAIN: self.experiment.features}
        pairs |= self.experiment.more_features
        curriculum = self.experiment.curriculum
        learned = [
            (
                {name: self.learn(pair, table, split) for name, pair in pairs.items()},
                self.learn(curriculum, table, split),
            )
            for split in splits
        ]
        if not self.selection.runs("extract"):
            return []
        return [
            Extracted(
                {name: self.extract(pair, table, by[name]) for name, pair in pairs.items()},
                self.extract(curriculum, table, by_scores),
                self.annotator(table),
            )
            for by, by_scores in learned
        ]

    def learn(
        self, pair: ExtractorPair | None, table: Reference, split: ProtocolSplit
    ) -> ByModality:
        """Let extractors learn from a split; returns what was learned, by modality."""
        found: ByModality = {}
        sources: dict[Modality | None, Reference] = {}
        for modality in MODALITIES if pair else ():
            options = getattr(pair, modality)
            if not options.learns:
                continue
            source = modality if options.learned else options.source
            if source not in sources:
                teacher = options if source is None else getattr(pair, source)
                sources[source] = self.learn_from(source, teacher, table, split)
            found[modality] = sources[source]
        return found

    def learn_from(
        self, modality: Modality | None, options: Any, table: Reference, split: ProtocolSplit
    ) -> Reference:
        """Let an extractor learn from one modality, or both (None), or find what it names."""
        if options.learned:
            store = self.workspace.store
            learned = find_learned(store, options.learned, what_learns(options))
            log_test_pictures(store, learned, table=table, split=split.rows, label=str(split))
            return learned
        return self.stage(
            "learn",
            learn,
            table=table,
            split=split.rows,
            modality=modality,
            extractor=options.registered_name,
            options=options.arguments(),
            longest_side=self.experiment.longest_side,
            target=self.experiment.protocols[split.protocol].target,
            label=str(split),
        )

    def extract(
        self, pair: ExtractorPair | None, table: Reference, learned: ByModality
    ) -> ByModality:
        """Extract the features, or the scores, of both modalities."""
        found: ByModality = {}
        for modality in MODALITIES if pair else ():
            options = getattr(pair, modality)
            found[modality] = self.extract_modality(
                modality,
                options.registered_name,
                options.arguments(),
                table,
                learned.get(modality),
            )
        return found

    def annotator(self, table: Reference) -> dict[str, Reference]:
        """Extract what a simulated annotator looks at, if the experiment has one."""
        curriculum = self.experiment.curriculum
        if curriculum is None or curriculum.sketch_source != "simulated":
            return {}
        return {
            role: self.extract_modality("sketch", extractor, {}, table)
            for role, extractor in ANNOTATOR.items()
        }

    def extract_modality(
        self,
        modality: Modality,
        extractor: str,
        options: dict[str, Any],
        table: Reference,
        learned: Reference | None = None,
    ) -> Reference:
        """Extract one modality; each request is computed once."""
        asked = modality, extractor, canonical_json(options), learned
        if asked not in self._extracted:
            self._extracted[asked] = self.stage(
                "extract",
                extract,
                table=table,
                modality=modality,
                extractor=extractor,
                options=options,
                longest_side=self.experiment.longest_side,
                block_rows=self.experiment.block_rows,
                learned=learned,
                max_bad_share=self.experiment.compute.max_bad_share,
            )
        return self._extracted[asked]

    def methods_of(
        self, split: ProtocolSplit, table: Reference, pictures: Extracted
    ) -> Iterator[Asked]:
        """Build the curricula of a split; yields every method, and what it is given."""
        protocol = self.experiment.protocols[split.protocol]
        samples = {"table": table, "split": split.rows, "target": protocol.target}
        curricula = None
        if self.experiment.curriculum:
            curricula = self.stage(
                "curricula",
                build_curricula,
                **samples,
                sketch_scores=pictures.scores["sketch"],
                image_scores=pictures.scores["image"],
                annotator=pictures.annotator,
                options=self.experiment.curriculum.pairing(),
                answers=self.experiment.curriculum.answers(),
                label=str(split),
            )
        for method, options in protocol.methods.items():
            chosen = pictures.features[options.features]
            features = {f"{modality}_features": found for modality, found in chosen.items()}
            given = {**samples, **features, "curricula": curricula}
            yield Asked(split, method, options, samples, features, given)

    def tune(self, asked: list[Asked]) -> Iterator[Fit]:
        """Choose the options of every method on every split, those of a grid by validation."""
        searches = [self.search_of(one) for one in asked]
        if self.selection.runs("tune") and self.selection.mode("tune") == "reuse":
            self.search_ahead([Search(**search) for search in searches if search is not None])
        for one, search in zip(asked, searches, strict=True):
            if one.method in self.record.left_out.get(one.split.protocol, {}):
                continue
            arguments, tuning = one.options.arguments(), None
            if search is not None and self.selection.runs("tune"):
                try:
                    tuning = self.stage("tune", tune, **search)
                except (InputError, StageNotStoredError) as error:
                    # One that refused the data when the stage ran left nothing in the store.
                    if not self.may_answer(one):
                        raise
                    self.record.leave_out(one.split.protocol, one.method, error)
                    continue
                self.record.add_tuning(one.split.protocol, one.method, tuning)
                arguments = merged(arguments, best_options(self.workspace.store, tuning))
            training = training_recipe(
                **one.given,
                method=one.options.registered_name,
                options=arguments,
                tuning=tuning if one.options.tune else None,
                only_right=one.options.only_right,
            )
            yield Fit(
                one.split.protocol,
                one.method,
                f"{one.method}, {one.split}",
                training,
                one.samples,
                one.features,
                one.options.metric or self.experiment.evaluation.metric,
                one.options.itq_bits,
            )

    def search_ahead(self, searches: list[Search]) -> None:
        """Score the combinations of all searches at once on the cluster."""
        store = self.workspace.store
        if pending := [search for search in searches if search.is_pending(store)]:
            started = time.monotonic()
            search_ahead(workspace=self.workspace, searches=pending)
            self.record.search_seconds += time.monotonic() - started

    def may_answer(self, asked: Asked) -> bool:
        """True if validation chooses among several methods, and this is one of them."""
        candidates = self.experiment.protocols[asked.split.protocol].candidates
        return self.experiment.tuning.choose and asked.options.answers and len(candidates) > 1

    def search_of(self, asked: Asked) -> dict[str, Any] | None:
        """Arguments of the search of a method's options, or None where there is none."""
        if not asked.options.tune and not self.may_answer(asked):
            return None
        protocol = self.experiment.protocols[asked.split.protocol]
        return {
            **asked.given,
            "method": asked.options.registered_name,
            "options": asked.options.arguments(),
            "grid": asked.options.tune or {},
            "metric": asked.options.metric or self.experiment.evaluation.metric,
            **self.experiment.tuning.search_options(protocol),
            "label": f"{asked.method}, {asked.split}",
        }

    def without_refused(self, tuned: Iterator[Fit]) -> list[Fit]:
        """Leave out methods that refused the data of a split, in the whole protocol.

        Raises
        ------
        InputError
            If no method of a protocol is left.
        """
        fits = list(tuned)
        for protocol, refused in self.record.left_out.items():
            for method, error in refused.items():
                log(f"{protocol}: {method} is left out: {error}")
            if refused.keys() >= set(self.experiment.protocols[protocol].candidates):
                raise next(iter(refused.values()))
        return [
            fit for fit in fits if fit.method not in self.record.left_out.get(fit.protocol, {})
        ]

    def train(self, fits: list[Fit]) -> list[Reference]:
        """Train every method on every split, on the cluster where that is faster."""
        ahead = self.train_ahead([(fit.training, fit.label) for fit in fits])
        return [
            self.stage(
                "train",
                train,
                recipe=fit.training,
                seconds=ahead.get(fit.training.reference),
                label=fit.label,
            )
            for fit in fits
        ]

    def train_ahead(self, recipes: list[tuple[Recipe, str]]) -> dict[Reference, float]:
        """Train on the cluster; returns what was trained, and the seconds it took."""
        mode, store = self.selection.mode("train"), self.workspace.store
        stored = all(store.find(recipe.reference) for recipe, _ in recipes)
        if mode == "require" or (mode == "reuse" and stored):
            return {}
        return train_ahead(workspace=self.workspace, recipes=recipes, mode=mode)

    def score(self, fit: Fit, model: Reference) -> None:
        """Encode with a trained method, make binary codes where asked for, and evaluate."""
        codes = self.stage("encode", encode, model=model, **fit.features, label=fit.label)
        if not self.selection.runs("evaluate"):
            return
        options = self.experiment.evaluation.model_dump() | {"metric": fit.metric}
        if fit.itq_bits:
            codes = self.stage(
                "evaluate",
                binary_codes,
                codes=codes,
                split=fit.samples["split"],
                bits=fit.itq_bits,
                label=fit.label,
            )
        elif not constructed(fit.training).code_bits:
            options["radius"] = None
        if self.experiment.protocols[fit.protocol].on_the_fly:
            options["on_the_fly"] = True
        scored = self.stage(
            "evaluate",
            evaluate,
            **fit.samples,
            codes=codes,
            **options,
            label=fit.label,
        )
        self.record.add_scores(fit.protocol, fit.method, scored)
