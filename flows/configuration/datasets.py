"""Options of data sets: one of the registry, or two of different roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from cppcl.datasets import DATASETS
from cppcl.datasets.transfer import ROLES
from cppcl.errors import InputError
from flows.configuration.options import RegisteredOptions, models_of, one_of

MODELS = models_of(DATASETS, discriminator="name")
OneSet = one_of(MODELS, discriminator="name")


class TransferOptions(RegisteredOptions):
    """Train on one data set, ask on another."""

    name: Literal["transfer"] = Field(
        "transfer", description="Train on one data set, ask on another"
    )
    train_on: OneSet = Field(description="Data set that trains")
    test_on: OneSet = Field(description="Data set whose sketches ask for its images")

    @model_validator(mode="after")
    def check_kinds(self) -> Self:
        """Refuse pictures beside rows of numbers."""
        kinds = {role: has_pictures(part) for role, part in parts_of(self).items()}
        if len(set(kinds.values())) > 1:
            words = {True: "pictures", False: "features without pictures"}
            raise ValueError(
                f"train_on has {words[kinds['train_on']]}, test_on {words[kinds['test_on']]}; "
                "one extractor must be able to describe both"
            )
        return self

    def arguments(self) -> dict[str, Any]:
        """Name and constructor arguments of both data sets, by role."""
        return {
            role: {"name": part.registered_name, "options": part.arguments()}
            for role, part in parts_of(self).items()
        }

    def key_parameters(self) -> dict[str, Any]:
        """Name of both data sets, and their arguments that belong in a key."""
        return {
            role: {"name": part.registered_name, **part.key_parameters()}
            for role, part in parts_of(self).items()
        }


DataSetOptions = one_of([*MODELS, TransferOptions], discriminator="name")


def parts_of(data_set: RegisteredOptions) -> Mapping[str, RegisteredOptions]:
    """Both data sets of a transfer by role; else the data set alone, without one."""
    if isinstance(data_set, TransferOptions):
        return {role: getattr(data_set, role) for role in ROLES}
    return {"": data_set}


def check_places(data_set: RegisteredOptions) -> None:
    """Refuse folders and files of a data set, or of both, that are missing or of another kind.

    Raises
    ------
    InputError
        The message begins with the role of one of two data sets.
    """
    for role, part in parts_of(data_set).items():
        try:
            data_set = DATASETS[part.registered_name](**part.arguments())
            if hasattr(data_set, "check"):
                data_set.check()
        except InputError as error:
            raise type(error)(f"{role}: {error}" if role else str(error)) from error


def has_pictures(data_set: RegisteredOptions) -> bool:
    """True if the samples of a data set, or of both, are pictures."""
    return all(DATASETS[part.registered_name].has_pictures for part in parts_of(data_set).values())
