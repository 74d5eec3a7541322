"""What stands behind an evaluation: codes, the trained method, and what that was trained with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cppcl.modality import MODALITIES, Modality
from storage import Artifact, Reference, Store


@dataclass(frozen=True)
class Lineage:
    """Codes, the trained method that made them, and what it was trained with.

    Attributes
    ----------
    codes : Artifact
        An `encode` or `binary` artifact.
    training : Artifact
        The `train` artifact behind it.
    """

    codes: Artifact
    training: Artifact

    @classmethod
    def of_codes(cls, store: Store, reference: Reference) -> Lineage:
        """Lineage of an `encode` artifact, or of a `binary` one that was made from it."""
        codes = exact = store.open(reference)
        while "model" not in exact.inputs:
            exact = store.open(exact.inputs["codes"])
        return cls(codes, store.open(exact.inputs["model"]))

    @classmethod
    def of_evaluation(cls, store: Store, reference: Reference) -> Lineage:
        """Lineage of an `evaluate` artifact."""
        return cls.of_codes(store, store.open(reference).inputs["codes"])

    @property
    def table(self) -> Reference:
        """Sample table of the training pictures."""
        return self.training.inputs["table"]

    @property
    def split(self) -> Reference:
        """Split whose training rows the method learned from."""
        return self.training.inputs["split"]

    @property
    def features(self) -> dict[Modality, Reference]:
        """Features that the method was trained with, by modality."""
        return by_modality(self.training, "features")

    @property
    def encoded(self) -> dict[Modality, Reference]:
        """Features that the codes were made from; a gallery of its own has images alone."""
        return by_modality(self.codes, "features")

    @property
    def curricula(self) -> Reference | None:
        """Curricula that the method was trained with, if any."""
        return self.training.inputs.get("curricula")


def by_modality(artifact: Artifact, kind: str) -> dict[Modality, Reference]:
    """Inputs of an artifact of one kind, ``features`` or ``scores``, by modality."""
    inputs = artifact.inputs
    named = {modality: f"{modality}_{kind}" for modality in MODALITIES}
    return {modality: inputs[name] for modality, name in named.items() if name in inputs}


def first_curricula(store: Store, evaluations: Iterable[Reference]) -> Reference | None:
    """Curricula behind the first of these evaluations that has any."""
    found = (Lineage.of_evaluation(store, evaluation).curricula for evaluation in evaluations)
    return next(filter(None, found), None)


def scores_behind(
    store: Store, evaluations: Iterable[Reference], modality: Modality
) -> Reference | None:
    """Scores of the curriculum of a modality behind the first of these evaluations with any."""
    curricula = first_curricula(store, evaluations)
    return (
        None if curricula is None else by_modality(store.open(curricula), "scores").get(modality)
    )


def everything_behind(store: Store, references: Iterable[Reference]) -> Iterator[Artifact]:
    """These artifacts and all that they were made from, directly or not, each once."""
    waiting = list(references)
    seen = set(waiting)
    while waiting:
        artifact = store.open(waiting.pop())
        yield artifact
        for reference in artifact.inputs.values():
            if reference not in seen:
                seen.add(reference)
                waiting.append(reference)
