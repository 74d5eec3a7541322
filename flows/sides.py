"""Extractors of the two modalities: for features, and for the scores of curricula."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from cppcl.datasets.table import MODALITIES
from cppcl.features import learning_part, make_extractor
from flows.extractors import ExtractorOptions
from flows.options import Options, RegisteredOptions


class Pair(Options):
    """An extractor for each modality; one may describe by what the other learned."""

    sketch: ExtractorOptions = Field(description="Extractor for sketches")
    image: ExtractorOptions = Field(description="Extractor for images")

    @model_validator(mode="after")
    def check_learners(self) -> Self:
        """Refuse an extractor that could not use what the other one learns."""
        for modality in MODALITIES:
            learner = getattr(self, modality)
            if not learner.learns and getattr(learner, "learned", None):
                raise ValueError(
                    f"{modality}.learned={learner.learned}: {learner.registered_name!r} with "
                    "these options learns nothing; leave learned out"
                )
            if not learner.learns or learner.learned or learner.learn_from == modality:
                continue
            side = learner.learn_from
            source = getattr(self, side)
            if what_learns(source) != what_learns(learner):
                raise ValueError(
                    f"{modality}.learn_from={side}: {learner.registered_name!r} cannot describe "
                    f"by what {source.registered_name!r} learns; set learn_from to {modality}, or "
                    "give both sides the same extractor"
                )
            needed, learned = shapes_learned(learner), shapes_learned(source)
            if needed != learned:
                raise ValueError(
                    f"{modality}.learn_from={side}: the {modality} extractor needs arrays of the "
                    f"shapes {needed}, but the {side} extractor learns {learned}; give both the "
                    f"same numbers, or set learn_from to {modality}"
                )
        return self


def what_learns(options: RegisteredOptions) -> str:
    """Name of what learns for an extractor: of a combination, that of its part."""
    return learning_part(options.registered_name, options.arguments())[0]


def shapes_learned(options: RegisteredOptions) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what an extractor learns."""
    extractor = make_extractor(options.registered_name, options.arguments())
    return getattr(extractor, "shapes", {})


class Sides(Pair):
    """Extractors of the two modalities."""


class CurriculumOptions(Pair):
    """How scores become pairs (harder, easier); Section 4 of the paper."""

    sketch: ExtractorOptions = Field(description="Easiness score of sketches, an extractor")
    image: ExtractorOptions = Field(description="Easiness score of images, an extractor")
    delta: float = Field(
        0.5,
        ge=0,
        allow_inf_nan=False,
        description="Least difference of scores, in standard deviations",
    )
    rho: float = Field(0.3, gt=0, le=1, description="Share of the admissible pairs that is kept")
    scope: Literal["auto", "within_class", "global"] = Field(
        "auto", description="Pairs within a class, of any two samples, or chosen by the classes"
    )
    seed: int = Field(0, ge=0, description="Seed of the subsample of pairs")

    def pairing(self) -> dict[str, Any]:
        """Options of the step from scores to pairs."""
        return self.model_dump(include={"delta", "rho", "scope", "seed"})
