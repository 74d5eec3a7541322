"""Extractors of the two modalities: for features, and for the scores of curricula."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from cppcl.curriculum.build import PairForm, Source
from cppcl.curriculum.semiorder import DeltaUnit, Scope
from cppcl.features import EXTRACTORS, learning_part, make_extractor
from cppcl.modality import MODALITIES, Modality
from flows.configuration.extractors import ExtractorOptions, ScoreOptions
from flows.configuration.options import PAIRING, Options, RegisteredOptions


class ExtractorPair(Options):
    """An extractor for each modality; one may use what the other learned."""

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
            if not learner.learns or learner.learned or learner.source in (None, modality):
                continue
            other = learner.learn_from
            source = getattr(self, other)
            if what_learns(source) != what_learns(learner):
                raise ValueError(
                    f"{modality}.learn_from={other}: {learner.registered_name!r} cannot go "
                    f"by what {source.registered_name!r} learns; set learn_from to {modality}, or "
                    "give both modalities the same extractor"
                )
            needed, learned = shapes_learned(learner), shapes_learned(source)
            if needed != learned:
                raise ValueError(
                    f"{modality}.learn_from={other}: the {modality} extractor needs arrays of the "
                    f"shapes {needed}, but the {other} extractor learns {learned}; give both the "
                    f"same numbers, or set learn_from to {modality}"
                )
        return self

    @model_validator(mode="after")
    def check_one_network(self) -> Self:
        """Refuse two extractors that would learn from both modalities, each for itself."""
        both = [getattr(self, modality) for modality in MODALITIES]
        if not all(options.learns and options.source is None for options in both):
            return self
        sketch, image = (learning_part(o.registered_name, o.arguments()) for o in both)
        if sketch != image or both[0].learned != both[1].learned:
            raise ValueError(
                f"{sketch[0]!r} for sketches and {image[0]!r} for images learn from both "
                "modalities at once, so their codes can be compared only where they are the same; "
                "give both the same name, options and learned"
            )
        return self


def what_learns(options: RegisteredOptions) -> str:
    """Name of the extractor that learns: of a combination, the part that does."""
    return learning_part(options.registered_name, options.arguments())[0]


def shapes_learned(options: RegisteredOptions) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what an extractor learns."""
    extractor = make_extractor(options.registered_name, options.arguments())
    return extractor.shapes


class FeatureOptions(ExtractorPair):
    """Extractors of the two modalities."""


class CurriculumOptions(ExtractorPair):
    """How scores and people's answers become pairs (harder, easier); Section 4 of the paper."""

    sketch: ScoreOptions = Field(description="Easiness score of sketches, an extractor")
    image: ScoreOptions = Field(description="Easiness score of images, an extractor")
    sketch_source: Literal["auto", Source, "simulated", "drawn"] = Field(
        "auto",
        description="Source of pairs of sketches: scores, answers or both; auto is both "
        "where there are answers. simulated: from the answers of a simulated annotator. drawn: of "
        "the same thing the fuller drawing is easier, for data sets of unfinished drawings",
    )
    image_source: Literal["auto", Source] = Field(
        "auto", description="Source of pairs of images: scores, answers or both"
    )
    sketch_answers: Path | None = Field(
        None,
        description="People's answers on sketches, .csv or .jsonl: sample_a, sample_b, easier (a, "
        "b or skip)",
    )
    image_answers: Path | None = Field(None, description="People's answers on images")
    answer_share: float = Field(1.0, gt=0, le=1, description="Share of decided answers to keep")
    pair_form: PairForm = Field(
        "sampled",
        description="Of the pairs that scores admit, a sample is listed (hashed: one that stays "
        "when pictures are added), all count without being listed, or the worst violation of each "
        "picture does (chain)",
    )
    delta: float = Field(
        0.5,
        ge=0,
        allow_inf_nan=False,
        description="Least difference of scores of a pair, of both modalities",
    )
    delta_unit: DeltaUnit = Field(
        "deviation",
        description="Unit of delta: standard deviations of the scores, or the scores' own unit",
    )
    rho: float = Field(
        0.3,
        ge=0,
        le=1,
        description="Share of the admissible pairs that a sample keeps, of both modalities; 0 for "
        "no pairs by scores",
    )
    scope: Scope = Field(
        "auto", description="Pairs within a class, of any two samples, or chosen by the classes"
    )
    maximum_pairs: int | None = Field(
        100_000, ge=1, description="Pairs that a sample keeps at most, null for any number"
    )
    seed: int = Field(0, ge=0, description="Seed of the samples of pairs and of answers")

    @model_validator(mode="before")
    @classmethod
    def learn_from_own_modality(cls, data: Any) -> Any:
        """Let a score that learns do so from its own modality: the scores of the two differ."""
        if not isinstance(data, dict):
            return data
        own = {
            modality: {"learn_from": modality, **options}
            for modality in MODALITIES
            if isinstance(options := data.get(modality), dict) and score_learns(options)
        }
        return {**data, **own}

    @model_validator(mode="after")
    def check_answers(self) -> Self:
        """Refuse a source of answers without a file, and a file that is not used."""
        for modality in MODALITIES:
            source, answers = (getattr(self, f"{modality}_{x}") for x in ("source", "answers"))
            if source in {"answers", "both"} and answers is None:
                raise ValueError(
                    f"{modality}_source={source} needs {modality}_answers, the file of answers"
                )
            if source in {"scores", "simulated", "drawn"} and answers is not None:
                raise ValueError(
                    f"{modality}_answers={answers} is not used as {modality}_source is {source}; "
                    "set it to answers or both, or leave the file out"
                )
        return self

    @model_validator(mode="after")
    def check_shares(self) -> Self:
        """Refuse a share of 0 where pairs are not drawn, so that all would count."""
        drawn = self.pair_form in ("sampled", "hashed")
        pairing = self.pairing()
        empty = any(
            pairing.get(f"{modality}_rho", pairing.get("rho")) == 0
            and pairing[f"{modality}_source"] in ("scores", "both")
            for modality in MODALITIES
        )
        if not drawn and empty:
            raise ValueError(
                f"rho=0 means no pairs, but pair_form={self.pair_form} counts every pair that "
                "scores admit; use pair_form sampled or hashed, or leave rho out"
            )
        return self

    def pairing(self) -> dict[str, Any]:
        """Options of the step from scores and answers to pairs, without places of files.

        ``delta`` and ``rho`` are each one option where both modalities have the same, so that
        it does not matter how they were given, and ``sketch_rho`` and ``image_rho`` where they
        differ.
        """
        options = self.model_dump(exclude={"sketch", "image", "sketch_answers", "image_answers"})
        for name in PAIRING:
            common = options.pop(name)
            own = {modality: getattr(getattr(self, modality), name) for modality in MODALITIES}
            held = {m: common if value is None else value for m, value in own.items()}
            if len(set(held.values())) == 1:
                options[name] = held["sketch"]
            else:
                options |= {f"{modality}_{name}": value for modality, value in held.items()}
        for modality in MODALITIES:
            if options[f"{modality}_source"] == "auto":
                options[f"{modality}_source"] = "both" if modality in self.answers() else "scores"
        return options

    def answers(self) -> dict[Modality, Path]:
        """Files of answers."""
        found = {modality: getattr(self, f"{modality}_answers") for modality in MODALITIES}
        return {modality: path for modality, path in found.items() if path is not None}


def score_learns(options: dict[str, Any]) -> bool:
    """True if options, not yet checked, name an extractor that learns."""
    extractor = EXTRACTORS.get(str(options.get("name")))
    return extractor is not None and extractor.learns
