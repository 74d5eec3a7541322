"""The chain of stages, wired: pictures to features to codes to scores to a report."""

from __future__ import annotations

from tasks.render_report import render_report

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
from tasks.split import split
from tasks.train import train
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
        table = self.fetch()
        splits = {}
        if self.selection.runs("split"):
            for name, protocol in self.experiment.protocols.items():
                splits[name] = self.split(protocol, table)
        if not self.selection.runs("extract"):
            return self.record
        features, scores = self.extract(table)
        for name, rows in splits.items():
            for seed, row in zip(self.experiment.protocols[name].split.seeds, rows, strict=True):
                self.train_and_evaluate(name, seed, table, row, features, scores)
        if self.selection.runs("report"):
            self.report(table)
        return self.record

    def fetch(self) -> Reference:
        """Bring the data set here."""
        data = self.experiment.dataset
        return self.record.add(
            fetch(
                workspace=self.workspace,
                name=data.registered_name,
                options=data.arguments(),
                key_parameters=data.key_parameters(),
                mode=self.selection.mode("fetch"),
            )
        )

    def split(self, protocol: Protocol, table: Reference) -> list[Reference]:
        """Split the table once for every seed of a protocol."""
        return [
            self.record.add(
                split(
                    workspace=self.workspace,
                    table=table,
                    rule=protocol.split.rule,
                    options=protocol.split.model_dump(exclude={"rule", "seeds"}),
                    seed=seed,
                    mode=self.selection.mode("split"),
                )
            )
            for seed in protocol.split.seeds
        ]

    def extract(
        self, table: Reference
    ) -> tuple[dict[Modality, Reference], dict[Modality, Reference]]:
        """Extract the features and the scores of both modalities on one cluster."""
        experiment, compute = self.experiment, self.experiment.compute
        with cluster.session(compute.cluster, compute.workers, compute.memory_per_worker):
            features, scores = (
                {
                    modality: self.record.add(
                        extract(
                            workspace=self.workspace,
                            table=table,
                            modality=modality,
                            extractor=getattr(sides, modality).registered_name,
                            options=getattr(sides, modality).key_parameters(),
                            longest_side=experiment.longest_side,
                            block_rows=experiment.block_rows,
                            max_bad_share=compute.max_bad_share,
                            mode=self.selection.mode("extract"),
                        )
                    )
                    for modality in MODALITIES
                }
                for sides in (experiment.features, experiment.curriculum)
            )
        return features, scores

    def train_and_evaluate(
        self,
        name: str,
        seed: int,
        table: Reference,
        rows: Reference,
        features: dict[Modality, Reference],
        scores: dict[Modality, Reference],
    ) -> None:
        """Build curricula, then train, encode and evaluate every method on one split."""
        protocol, runs, mode = (
            self.experiment.protocols[name],
            self.selection.runs,
            self.selection.mode,
        )
        if not runs("curricula"):
            return
        here = f"{name}, split {seed}"
        sides = {f"{modality}_features": reference for modality, reference in features.items()}
        common = {"workspace": self.workspace, "table": table, "split": rows}
        curricula = self.record.add(
            build_curricula(
                **common,
                sketch_scores=scores["sketch"],
                image_scores=scores["image"],
                target=protocol.target,
                options=self.experiment.curriculum.pairing(),
                what=here,
                mode=mode("curricula"),
            )
        )
        for method, options in protocol.methods.items():
            if not runs("train"):
                return
            what = f"{method}, {here}"
            arguments = options.key_parameters()
            model = self.record.add(
                train(
                    **common,
                    **sides,
                    curricula=curricula if arguments.get("mu") else None,
                    method=options.registered_name,
                    options=arguments,
                    target=protocol.target,
                    what=what,
                    mode=mode("train"),
                )
            )
            if not runs("encode"):
                continue
            codes = self.record.add(
                encode(
                    workspace=self.workspace,
                    model=model,
                    **sides,
                    what=what,
                    mode=mode("encode"),
                )
            )
            if not runs("evaluate"):
                continue
            scored = evaluate(
                **common,
                codes=codes,
                target=protocol.target,
                **self.experiment.evaluation.model_dump(),
                what=what,
                mode=mode("evaluate"),
            )
            self.record.add_scores(name, method, scored)

    def report(self, table: Reference) -> None:
        """Render what was measured."""
        self.record.add(
            render_report(
                workspace=self.workspace,
                table=table,
                scores=self.record.scores,
                configuration=self.experiment.model_dump(mode="json", exclude={"compute"}),
                artifacts=self.record.all_artifacts(),
                mode=self.selection.mode("report"),
            )
        )
