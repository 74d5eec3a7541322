"""What every method shares: prepared features, what was learned as named arrays, codes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import NotFittedError
from cppcl.learning.estimator import Estimator
from cppcl.learning.preparation import Preparation
from cppcl.modality import MODALITIES, Modality
from cppcl.validation import Floating, Labels, suggestion

if TYPE_CHECKING:
    from cppcl.features import Extractor


class BaseMethod:
    """Usual values of what a method declares about itself (`cppcl.methods.Method`).

    It learns, without curricula and on the CPU. A subclass to which that does not apply says
    otherwise.
    """

    learns: ClassVar[bool] = True
    warm_start_option: ClassVar[str | None] = None
    zero_codes_hint: ClassVar[str] = ""

    @property
    def uses_curricula(self) -> bool:
        """True if `fit` uses curricula with these options; here false."""
        return False

    @property
    def curriculum_modalities(self) -> tuple[str, ...]:
        """Modalities whose curricula `fit` uses; here both, if it uses curricula at all."""
        return MODALITIES if self.uses_curricula else ()

    @property
    def uses_agreement(self) -> bool:
        """True if `fit` weighs samples by agreement; here false."""
        return False

    @property
    def paces(self) -> bool:
        """True if `fit` takes up some samples before others; here false."""
        return False

    @property
    def code_bits(self) -> int | None:
        """Bits of a code where codes are binary, -1 and 1; here None."""
        return None

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

    def departures(
        self, dimensions: tuple[int, int], scores: Mapping[Modality, Extractor]
    ) -> dict[str, str]:
        """What it has otherwise than the publication, by aspect; here nothing is said."""
        return {}

    def transform(
        self, sketch_features: NDArray[Any], image_features: NDArray[Any] | None = None
    ) -> Any:
        """Codes of sketches, or of sketches and of images, as those of ``CCA`` of scikit-learn.

        Parameters
        ----------
        sketch_features : ndarray, (n, m_s)
            One sample a row.
        image_features : ndarray, (p, m_i), optional
            Likewise.

        Returns
        -------
        ndarray, (n, d), or a pair with one of (p, d)
            What `encode_sketches`, and `encode_images`, return.
        """
        made: Any = self
        sketches = made.encode_sketches(sketch_features)
        if image_features is None:
            return sketches
        return sketches, made.encode_images(image_features)

    def score(
        self,
        sketch_features: NDArray[Any],
        image_features: NDArray[Any],
        sketch_labels: Labels,
        image_labels: Labels,
    ) -> float:
        """Mean average precision of the images that sketches find, by the cosine of codes.

        Parameters
        ----------
        sketch_features : ndarray, (n, m_s)
            Queries, one a row.
        image_features : ndarray, (p, m_i)
            Gallery.
        sketch_labels, image_labels : array_like, (n,) and (p,)
            An image is right where its label is that of the sketch.

        Returns
        -------
        float
            From 0 to 1, as `cppcl.retrieval.metrics.evaluate` has it.
        """
        from cppcl.retrieval.metrics import evaluate

        sketches, images = self.transform(sketch_features, image_features)
        return evaluate(sketches, images, sketch_labels, image_labels).scores["map"]


class Learner(BaseMethod, Estimator, ABC):
    """Base of methods, which learn from sketches and images and code new ones.

    A subclass is a dataclass with a group of options `preparation`. Its `fit` calls `_keep` with
    what it learned, and its `_code` codes prepared features with that.

    Attributes
    ----------
    history_ : dict of str to ndarray
        One value a round of training; empty for closed forms.
    """

    preparation: Preparation
    history_: dict[str, NDArray[Any]]

    def __post_init__(self) -> None:
        self.read_groups()
        self._arrays: dict[str, NDArray[Any]] = {}
        self._preparations: dict[Modality, Preparation] = {}

    def encode_sketches(self, features: NDArray[Any]) -> Floating:
        """Codes (n, d) of sketch features (n, m_s)."""
        return self._encode("sketch", features)

    def encode_images(self, features: NDArray[Any]) -> Floating:
        """Codes (n, d) of image features (n, m_i)."""
        return self._encode("image", features)

    @property
    def n_features_in_(self) -> tuple[int, int]:
        """Columns of the sketch features and of the image features that `fit` was given."""
        sketch, image = (self._preparation_of(modality).n_features_ for modality in MODALITIES)
        return sketch, image

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is something to code with."""
        return bool(self._preparations)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Arrays that `fit` learned, each by its name and ``_``."""
            if name.startswith("_") or not name.endswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if self._preparations and name[:-1] not in self._arrays:
                known = [f"{learned}_" for learned in self._arrays]
                raise NotFittedError(
                    f"this {type(self).__name__} learned no {name!r}{suggestion(name, known)}"
                )
            return self._fitted(name[:-1])

    def __dir__(self) -> list[str]:
        """Names of attributes, those of what was learned among them."""
        return sorted({*super().__dir__(), *(f"{name}_" for name in self._arrays)})

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `fit` learned, by name."""
        arrays = {
            f"{modality}_preparation_{name}": array
            for modality in MODALITIES
            for name, array in self._preparation_of(modality).to_arrays().items()
        }
        history = {f"history_{name}": array for name, array in self.history_.items()}
        return arrays | self._arrays | history

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_arrays` returned, on an object with the same options."""
        rest = {name: np.asarray(array) for name, array in arrays.items()}

        def take(prefix: str) -> dict[str, NDArray[Any]]:
            names = [name for name in rest if name.startswith(prefix)]
            return {name.removeprefix(prefix): rest.pop(name) for name in names}

        preparations = {
            modality: self._new_preparation().from_arrays(take(f"{modality}_preparation_"))
            for modality in MODALITIES
        }
        history = take("history_")
        self._keep(rest, preparations, history)
        return self

    def _keep(
        self,
        arrays: dict[str, NDArray[Any]],
        preparations: dict[Modality, Preparation],
        history: dict[str, NDArray[Any]],
    ) -> None:
        self._arrays, self._preparations, self.history_ = arrays, preparations, history

    def _new_preparation(self) -> Preparation:
        return Preparation(**self.preparation.get_params())

    @abstractmethod
    def _code(self, modality: Modality, prepared: Floating) -> Floating:
        """Codes (n, d) of prepared features (n, m) of one modality."""

    def _encode(self, modality: Modality, features: NDArray[Any]) -> Floating:
        preparation = self._preparation_of(modality)
        return self._code(modality, preparation.transform(features, name=f"{modality}_features"))

    def _preparation_of(self, modality: Modality) -> Preparation:
        if modality not in self._preparations:
            raise self._not_fitted(f"{modality} preparation")
        return self._preparations[modality]

    def _fitted(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            raise self._not_fitted(name)
        return self._arrays[name]

    def _not_fitted(self, name: str) -> NotFittedError:
        return NotFittedError(
            f"this {type(self).__name__} is not fitted yet, it holds no {name}; call fit, or "
            "from_arrays with all of its arrays"
        )


def training_memory(n_values: int) -> int:
    """Bytes that training needs with so many values of features and codes together.

    3.5 times their own were measured with 224,000 samples.
    """
    return 4 * np.dtype(np.float32).itemsize * n_values
