"""Rules of splits, and what is made wrong or left out in training: their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    model_validator,
)

from cppcl.datasets.splits import UNSEEN_CLASSES
from cppcl.validation import suggestion
from flows.configuration.options import Options, distinct

Seeds = Annotated[tuple[int, ...], AfterValidator(distinct)]


def _check_share(number: int | float, info: ValidationInfo) -> int | float:
    if isinstance(number, float) and number >= 1:
        raise ValueError(f"{info.field_name}={number} must be a whole number or a share below 1")
    return number


def _check_amount(amount: int | float | None) -> int | float | None:
    if amount is not None and (amount < 0 or (isinstance(amount, float) and not 0 < amount < 1)):
        raise ValueError(f"{amount} must be a whole number of samples or a share below 1")
    return amount


Target = Annotated[
    Literal["groups", "labels"],
    Field(
        description="What makes a picture relevant: the same instance (groups) or class (labels)"
    ),
]
Amount = Annotated[int | float | None, AfterValidator(_check_amount)]


def _named_classes(labels: Any) -> Any:
    """Let the name of a published choice stand for its classes."""
    if not isinstance(labels, str):
        return labels
    if labels not in UNSEEN_CLASSES:
        raise ValueError(
            f"labels={labels!r} is no published choice of test classes; there is "
            f"{', '.join(UNSEEN_CLASSES)}{suggestion(labels, UNSEEN_CLASSES)}; or give a list"
        )
    return UNSEEN_CLASSES[labels]


class NoiseOptions(Options):
    """What is made wrong in training samples, by the seed of the split; the test stays clean."""

    wrong_labels: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Share of training samples with another label, where labels count",
    )
    wrong_pairs: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Share of training images that exchange their instances, where these count",
    )
    near_pairs: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="The same among images of similar names",
    )

    @model_validator(mode="after")
    def check_pairs(self) -> Self:
        """Refuse pairs that are to be wrong in two ways."""
        if self.wrong_pairs and self.near_pairs:
            raise ValueError("wrong_pairs and near_pairs exclude each other; set one of them to 0")
        return self


_BESIDE_RULE = ("audit", "noise", "least_drawn", "pseudo_share")
"""Options that every rule has; they are applied to what it gives."""


class SplitRule(Options):
    """Base of the options of every rule."""

    rule: str
    audit: Path | None = Field(
        None,
        description="Verdicts of cppcl audit, .csv: training samples that they call wrong are "
        "left out, or get the right label",
    )
    noise: NoiseOptions = Field(
        NoiseOptions(), description="What is made wrong in training samples"
    )
    pseudo_share: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of the training images whose contours train as sketches, too; needs "
        "pseudo_sketches",
    )
    least_drawn: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Least share of its strokes that a training sketch shows, where drawings are "
        "unfinished; 1: whole ones alone",
    )

    def arguments(self) -> dict[str, Any]:
        """Arguments of the rule, beside the seed."""
        return self.model_dump(exclude={"rule", "seeds", *_BESIDE_RULE})


class InstanceSplit(SplitRule):
    """Unseen instances: whole groups are held out, and relevance is by group."""

    rule: Literal["instance"] = Field(
        "instance", description="Unseen instances: whole groups are held out"
    )
    seeds: Seeds = Field((0, 1, 2), min_length=1, description="One split a seed")
    n_train: Annotated[int | float, AfterValidator(_check_share)] = Field(
        0.5, gt=0, description="Training groups: a number, or a share below 1"
    )


class CategorySplit(SplitRule):
    """New pictures of known classes: relevance is by label."""

    rule: Literal["category"] = Field("category", description="New pictures of known classes")
    seeds: Seeds = Field((0, 1, 2), min_length=1, description="One split a seed")
    train_share: float = Field(0.5, gt=0, lt=1, description="Share of each class that trains")
    minimum_groups: int = Field(
        10, ge=2, description="Classes with fewer instances in both modalities are left out"
    )


class CountedSplit(SplitRule):
    """Fixed numbers of training and test samples of each class: relevance is by label."""

    rule: Literal["counted"] = Field(
        "counted", description="So many samples of each class, as publications state it"
    )
    seeds: Seeds = Field((0, 1, 2), min_length=1, description="One split a seed")
    train_sketches: Amount = Field(
        None, description="Training sketches a class, null for the rest"
    )
    train_images: Amount = Field(None, description="Training images a class, null for the rest")
    test_sketches: Amount = Field(None, description="Test sketches a class, null for the rest")
    test_images: Amount = Field(None, description="Test images a class, null for the rest")
    sketch_order: Literal["random", "name"] = Field(
        "random", description="Test sketches are drawn, or the last ones by name"
    )


class UnseenSplit(SplitRule):
    """Whole classes are held out (zero-shot): relevance is by label."""

    rule: Literal["unseen"] = Field("unseen", description="Classes that training never sees")
    seeds: Seeds = Field((0,), min_length=1, description="One split a seed")
    n_labels: Annotated[int | float, AfterValidator(_check_share)] = Field(
        0.2, gt=0, description="Test classes, drawn where labels is empty: a number, or a share"
    )
    minimum_images: int = Field(1, ge=1, description="Images of a class that may be drawn")
    labels: Annotated[tuple[str, ...], BeforeValidator(_named_classes)] = Field(
        (),
        description="Test classes, where they are published: a list, or a name: "
        f"{', '.join(UNSEEN_CLASSES)}",
    )
    seen_images: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Share of the images of each training class that is in the gallery instead: "
        "above 0 a generalised gallery, of seen and unseen classes",
    )
    target: Target = "labels"

    def arguments(self) -> dict[str, Any]:
        """What decides which samples train; a share of none is left out of keys."""
        found = super().arguments()
        del found["target"]
        if not self.seen_images:
            del found["seen_images"]
        return found


class FileSplit(SplitRule):
    """A split that a file names."""

    rule: Literal["file"] = Field("file", description="A split that a file names")
    seeds: Seeds = Field((0,), min_length=1, description="What {seed} in path stands for")
    path: str = Field(description="JSON file, or a split that comes along (cufs-official)")
    target: Target = "labels"

    def arguments(self) -> dict[str, Any]:
        """Path alone: the file says which samples train, whatever is relevant."""
        return {"path": self.path}


class TransferSplit(SplitRule):
    """One data set trains, another is the test."""

    rule: Literal["transfer"] = Field(
        "transfer", description="One data set trains, another is the test"
    )
    seeds: Seeds = Field(
        (0,),
        min_length=1,
        description="One split a seed; all are the same where every picture is used and none is "
        "in both data sets",
    )
    target: Target = "labels"
    train_share: float = Field(
        1.0,
        gt=0,
        le=1,
        description="Share of each class of train_on, or of instances, that trains",
    )
    test_share: float = Field(
        1.0,
        gt=0,
        le=1,
        description="Share of each class of test_on, or of instances, that is asked",
    )
    shared_train: float = Field(
        0.5, ge=0, lt=1, description="Share of the pictures in both that trains; the rest is asked"
    )


SplitOptions = Annotated[
    InstanceSplit | CategorySplit | CountedSplit | UnseenSplit | FileSplit | TransferSplit,
    Field(discriminator="rule"),
]


SPLIT_RULES: dict[str, type[SplitRule]] = {
    rule.model_fields["rule"].default: rule for rule in SplitRule.__subclasses__()
}
"""Options of every rule, by its name."""
