"""The chain of stages, wired: pictures to features to codes to scores to a report."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from prefect import Task

from cppcl.datasets.table import MODALITIES, Modality
from flows.config import Experiment, Protocol
from flows.record import RunRecord
from flows.selection import Selection
from storage import Reference
from tasks import cluster
from tasks.build_curricula import build_curricula
from tasks.encode import encode
from tasks.evaluate import evaluate
from tasks.extract import extract
from tasks.fetch import fetch
from tasks.render_report import render_report
from tasks.split import split
from tasks.train import train
from tasks.tune import best_options, tune
from tasks.workspace import Workspace


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
        splits: list[tuple[str, int, Reference]] = []
        if runs("split"):
            for name, protocol in self.experiment.protocols.items():
                for seed in protocol.split.seeds:
                    splits.append((name, seed, self.split(protocol, seed, table)))
        if not runs("extract"):
            return self.record
        with self.session():
            features = self.extract(self.experiment.features, table)
            curriculum = self.experiment.curriculum
            scores = self.extract(curriculum, table) if curriculum else {}
        if runs("curricula"):
            # Started by the first search that is not stored, and closed after the last training.
            with self.session():
                for name, seed, rows in splits:
                    self.compare_methods(name, seed, table, rows, features, scores)
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

    def session(self) -> AbstractContextManager[cluster.Cluster]:
        """Make the cluster of the experiment available; it starts when it is needed."""
        compute = self.experiment.compute
        return cluster.session(compute.cluster, compute.workers, compute.memory_per_worker)

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
            options=protocol.split.model_dump(exclude={"rule", "seeds", "target"}),
            seed=seed,
        )

    def extract(self, sides: Any, table: Reference) -> dict[Modality, Reference]:
        """Extract what both sides ask for: features, or scores."""
        return {
            modality: self.stage(
                "extract",
                extract,
                table=table,
                modality=modality,
                extractor=getattr(sides, modality).registered_name,
                options=getattr(sides, modality).arguments(),
                longest_side=self.experiment.longest_side,
                block_rows=self.experiment.block_rows,
                max_bad_share=self.experiment.compute.max_bad_share,
            )
            for modality in MODALITIES
        }

    def compare_methods(
        self,
        name: str,
        seed: int,
        table: Reference,
        rows: Reference,
        features: dict[Modality, Reference],
        scores: dict[Modality, Reference],
    ) -> None:
        """Build curricula, then tune, train, encode and evaluate every method on one split."""
        protocol, runs = self.experiment.protocols[name], self.selection.runs
        here = f"{name}, split {seed}"
        sides = {f"{modality}_features": reference for modality, reference in features.items()}
        split = {"table": table, "split": rows, "target": protocol.target}
        curricula = None
        if self.experiment.curriculum:
            curricula = self.stage(
                "curricula",
                build_curricula,
                **split,
                sketch_scores=scores["sketch"],
                image_scores=scores["image"],
                options=self.experiment.curriculum.pairing(),
                what=here,
            )
        for method, options in protocol.methods.items():
            what = f"{method}, {here}"
            arguments, tuning = options.arguments(), None
            if options.tune and runs("tune"):
                tuning = self.stage(
                    "tune",
                    tune,
                    **split,
                    **sides,
                    curricula=curricula,
                    method=options.registered_name,
                    options=arguments,
                    grid=options.tune,
                    metric=self.experiment.evaluation.metric,
                    **self.experiment.tuning.settled(protocol),
                    what=what,
                )
                self.record.add_tuning(name, method, tuning)
                arguments |= best_options(self.workspace.store, tuning)
            if not runs("train"):
                continue
            model = self.stage(
                "train",
                train,
                **split,
                **sides,
                curricula=curricula if arguments.get("mu") else None,
                method=options.registered_name,
                options=arguments,
                tuning=tuning,
                what=what,
            )
            if not runs("encode"):
                continue
            codes = self.stage("encode", encode, model=model, **sides, what=what)
            if not runs("evaluate"):
                continue
            scored = self.stage(
                "evaluate",
                evaluate,
                **split,
                codes=codes,
                **self.experiment.evaluation.model_dump(),
                what=what,
            )
            self.record.add_scores(name, method, scored)
