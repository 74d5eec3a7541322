"""Options of an estimator: read, changed and copied as scikit-learn's are."""

from __future__ import annotations

from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np

from cppcl.errors import InputError
from cppcl.validation import suggestion


class Estimator:
    """Base of classes whose constructor takes options as keywords and checks them.

    The constructor stores every option, as it was given, under its own name, and refuses what is
    out of range; nothing else changes options but `set_params`. What a subclass learns has names
    that end in ``_``. `sklearn.base.clone` then makes an unfitted copy.

    What a method says about itself (`cppcl.methods.Method`) has its usual answer here: it learns,
    without curricula and on the CPU. A subclass to which that does not apply says otherwise.
    """

    learns: ClassVar[bool] = True
    warm_start_option: ClassVar[str | None] = None
    zero_codes_hint: ClassVar[str] = ""

    @property
    def uses_curricula(self) -> bool:
        """True if `fit` with these options goes by curricula; here false."""
        return False

    @property
    def curriculum_modalities(self) -> tuple[str, ...]:
        """Modalities whose curricula `fit` goes by; here both, if it goes by curricula."""
        return ("sketch", "image") if self.uses_curricula else ()

    @property
    def paces(self) -> bool:
        """True if `fit` takes up some samples before others; here false."""
        return False

    @property
    def uses_gpu(self) -> bool:
        """True if these options ask for a GPU; here false."""
        return False

    def memory(self, n_sketches: int, n_images: int, dimensions: tuple[int, int]) -> int:
        """Bytes that `fit` needs at most; here those of the features, and as many codes."""
        n_sketch_features, n_image_features = dimensions
        return training_memory(
            n_sketches * 2 * n_sketch_features + n_images * 2 * n_image_features
        )

    @classmethod
    def option_names(cls) -> list[str]:
        """Names of the options, in the order of the constructor."""
        return list(signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options by name; `deep` is there for scikit-learn, no option is nested."""
        return {name: getattr(self, name) for name in self.option_names()}

    def set_params(self, **options: Any) -> Self:
        """Change options; what was learned stays, until the next `fit`.

        Raises
        ------
        InputError
            For an option that does not exist or is out of range; then none is changed.
        """
        check_option_names(type(self).__name__, options, self.option_names())
        checked = type(self)(**self.get_params() | options)
        for name in options:
            setattr(self, name, getattr(checked, name))
        return self

    def __repr__(self) -> str:
        """Constructor call that gives the same options; defaults are left out."""
        defaults = signature(type(self)).parameters
        given = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            # Compared as text: 1 equals 1.0 and True, and NaN not even itself.
            if repr(value) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(given)})"


def training_memory(n_values: int) -> int:
    """Bytes that training needs with so many values of features and codes together.

    3.5 times their own were measured with 224,000 samples.
    """
    return 4 * np.dtype(np.float32).itemsize * n_values


def check_option_names(owner: str, options: dict[str, Any], known: list[str]) -> None:
    """Raise `InputError`, with the nearest known name, for an option that does not exist."""
    for name in options:
        if name not in known:
            raise InputError(f"{owner} has no option {name!r}{suggestion(name, known)}")
