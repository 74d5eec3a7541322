"""The recipe of an artifact in canonical form, and the key computed from it."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeAlias

import numpy as np

from storage.errors import RecipeError

JSON: TypeAlias = "Mapping[str, JSON] | Sequence[JSON] | str | int | float | bool | None"

KEY_LENGTH = 32  # hexadecimal digits: 128 bits of the sha256
_STAGE = re.compile(r"[a-z][a-z0-9_-]*")
_KEY = re.compile(rf"[0-9a-f]{{{KEY_LENGTH}}}")
_RESERVED_STAGES = frozenset({"locks"})


def plain(value: Any, place: str = "value") -> Any:
    """Return `value` as plain JSON: dict, list, str, int, float, bool or None.

    Tuples become lists, NumPy scalars become Python numbers, enum members become their values.

    Parameters
    ----------
    value : object
        What to convert; it is not modified and shares nothing with the result.
    place : str
        How to name the value in an error.

    Raises
    ------
    RecipeError
        Not a finite number, a path, an array, or anything else without one JSON form.
    """
    if isinstance(value, Enum):
        return plain(value.value, place)
    if isinstance(value, np.generic):
        return plain(value.item(), place)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RecipeError(f"{place} is {value}: only finite numbers can be stored (use null)")
        return float(value)
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise RecipeError(f"{place} has the key {name!r}: keys must be strings")
        return {str.__str__(name): plain(item, f"{place}.{name}") for name, item in value.items()}
    if isinstance(value, PurePath):
        raise RecipeError(
            f"{place} is the path {str(value)!r}: a path does not say what is in the file; "
            "give its sha256, or its text if you mean the name"
        )
    if isinstance(value, np.ndarray):
        raise RecipeError(
            f"{place} is an array of shape {value.shape}: store it with put_array, "
            "or give its tolist()"
        )
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [plain(item, f"{place}[{index}]") for index, item in enumerate(value)]
    raise RecipeError(
        f"{place} is {value!r} ({type(value).__name__}): only JSON values can be stored "
        "(null, true/false, numbers, strings, lists, dictionaries)"
    )


def canonical_json(value: Any, place: str = "value") -> str:
    """Return the one JSON text of `value`: keys sorted, no spaces, floats by repr, ASCII."""
    return json.dumps(plain(value, place), sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, order=True)
class Reference:
    """The address of an artifact: what tasks pass to each other instead of arrays.

    Parameters
    ----------
    stage : str
        Lower-case letters, digits, ``-`` and ``_``, beginning with a letter.
    key : str
        32 hexadecimal digits, see `Recipe.key`.
    """

    stage: str
    key: str

    def __post_init__(self) -> None:
        check_stage(self.stage)
        if not isinstance(self.key, str) or not is_key(self.key):
            raise RecipeError(
                f"{self.key!r} is not a key: a key is {KEY_LENGTH} hexadecimal digits "
                "(Store.resolve accepts an abbreviated one)"
            )

    def __str__(self) -> str:
        return f"{self.stage}/{self.key}"

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Return the reference written ``stage/key``."""
        stage, _, key = text.partition("/")
        return cls(stage, key)


def is_stage(name: str) -> bool:
    """Return whether `name` can name a stage, and so a folder of the store."""
    return _STAGE.fullmatch(name) is not None and name not in _RESERVED_STAGES


def is_key(name: str) -> bool:
    """Return whether `name` has the form of a key."""
    return _KEY.fullmatch(name) is not None


def check_stage(stage: str) -> None:
    """Raise `RecipeError` unless `stage` can name a stage."""
    if not isinstance(stage, str) or not is_stage(stage):
        raise RecipeError(
            f"{stage!r} cannot name a stage: use lower-case letters, digits, '-' and '_', "
            f"beginning with a letter, and none of {sorted(_RESERVED_STAGES)}"
        )


@dataclass(frozen=True)
class Recipe:
    """What an artifact is made from. Equal recipes have equal keys and equal artifacts.

    Parameters
    ----------
    stage : str
        Name of the stage.
    version : str
        Version of the stage's code; change it when the same parameters and inputs give another
        result.
    parameters : mapping of str to JSON
        Everything that changes the result. As in JSON, 1 is not 1.0.
    inputs : mapping of str to Reference
        The artifacts that the stage reads, by role.

    Raises
    ------
    RecipeError
        Something has no canonical form; the message names it.
    """

    stage: str
    version: str
    parameters: Mapping[str, JSON] = field(default_factory=dict)
    inputs: Mapping[str, Reference] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_stage(self.stage)
        if not isinstance(self.version, str) or not self.version:
            raise RecipeError(f"version of {self.stage!r} is {self.version!r}: give a string")
        if not isinstance(self.parameters, Mapping):
            raise RecipeError(f"parameters of stage {self.stage!r} must be a dictionary")
        for name, reference in self.inputs.items():
            if not isinstance(name, str) or not isinstance(reference, Reference):
                raise RecipeError(
                    f"input {name!r} of stage {self.stage!r} is {reference!r}: give a Reference"
                )
        # Own copies, so that later changes to the caller's dictionaries do not change the key.
        object.__setattr__(self, "parameters", plain(self.parameters, "parameters"))
        object.__setattr__(self, "inputs", dict(self.inputs))

    def __hash__(self) -> int:
        return hash(self.reference)

    def document(self) -> dict[str, Any]:
        """Return the recipe as plain JSON, keys sorted: what the key is the digest of."""
        return {
            "stage": self.stage,
            "version": self.version,
            "parameters": json.loads(canonical_json(self.parameters)),
            "inputs": {name: str(self.inputs[name]) for name in sorted(self.inputs)},
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Recipe:
        """Return the recipe that `document` describes."""
        inputs = {name: Reference.parse(text) for name, text in document["inputs"].items()}
        return cls(document["stage"], document["version"], document["parameters"], inputs)

    @property
    def key(self) -> str:
        """First 32 hexadecimal digits of the sha256 of the canonical JSON of the recipe."""
        text = canonical_json(self.document())
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:KEY_LENGTH]

    @property
    def reference(self) -> Reference:
        """Where the artifact of this recipe lies."""
        return Reference(self.stage, self.key)
