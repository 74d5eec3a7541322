"""A method on several spaces of features, with its cosines corrected for hubs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.base import SampleWeights
from cppcl.baselines.logistic import MOST_CLASSES, LogisticRegression
from cppcl.curriculum.base import Curriculum
from cppcl.errors import InputError, NotFittedError
from cppcl.learning.agreement import Agreement, remembered_agreement
from cppcl.learning.composition import Composition
from cppcl.learning.graph import number_labels
from cppcl.learning.learner import BaseMethod
from cppcl.learning.preparation import Preparation, unit_rows
from cppcl.learning.soft_links import expected_group_codes, group_codes, soft_targets
from cppcl.modality import MODALITIES, Modality
from cppcl.retrieval.hubness import hub_offsets, images_with_hubness, sketches_with_hubness
from cppcl.validation import Floating, Labels, check_labels

FEATURE_SCALE = 2.0
"""Norm of the features beside that of a code, as the regression of soft links sees them."""
REGRESSION_C = 10.0
"""Inverse of the strength of that regression's regularisation."""
MOST_IN_BANK = 4096
"""Training sketches by which hubs are found, evenly spaced over the rows where there are more."""
Widths = tuple[Sequence[int], Sequence[int]]
"""Columns of each space of the sketch features, and of the image features."""


class ComposedMethod(BaseMethod):
    """A method on each of several spaces, whose codes are put side by side.

    It has the interface of `cppcl.methods.Method`; what it declares of itself, and its history,
    are those of the method on the first space.

    Parameters
    ----------
    make : callable
        Returns the method, not fitted.
    composition : Composition
        On which spaces it learns, and what becomes of its codes.
    """

    own_version: ClassVar[int] = 1

    def __init__(self, make: Callable[[], Any], composition: Composition) -> None:
        self.make, self.composition = make, composition
        self._members = [make()]
        self._widths = np.zeros((2, 0), dtype=np.int64)
        self._centred: list[Preparation] = []
        self._training: list[list[Floating]] = []
        self._numbers: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        self._agreement: Agreement | None = None
        self._groups: list[Floating] = []
        self._regressions: list[LogisticRegression] = []
        self._bank: Floating | None = None
        self.version = 100 * int(self._members[0].version) + self.own_version

    @property
    def history_(self) -> dict[str, NDArray[Any]]:
        """One value a round, of the method on the first space."""
        history: dict[str, NDArray[Any]] = self._members[0].history_
        return history

    @property
    def learns(self) -> bool:  # type: ignore[override]
        """True if the method learns from more than one sample."""
        return bool(self._members[0].learns)

    @property
    def zero_codes_hint(self) -> str:  # type: ignore[override]
        """What leaves fewer codes of zero."""
        return str(self._members[0].zero_codes_hint)

    @property
    def uses_curricula(self) -> bool:
        """True if the method uses curricula."""
        return bool(self._members[0].uses_curricula)

    @property
    def curriculum_modalities(self) -> tuple[str, ...]:
        """Modalities whose curricula the method uses."""
        modalities: tuple[str, ...] = self._members[0].curriculum_modalities
        return modalities

    @property
    def paces(self) -> bool:
        """True if the method takes up some samples before others."""
        return bool(self._members[0].paces)

    @property
    def uses_agreement(self) -> bool:
        """True if the method weighs samples by agreement, which all spaces judge together."""
        return bool(self._members[0].uses_agreement)

    @property
    def uses_gpu(self) -> bool:
        """True if the method asks for a GPU."""
        return bool(self._members[0].uses_gpu)

    def memory(self, n_sketches: int, n_images: int, dimensions: tuple[int, int]) -> int:
        """Bytes that `fit` needs at most: one space at a time, and the codes of all."""
        return 2 * int(self._members[0].memory(n_sketches, n_images, dimensions))

    def fit(
        self,
        sketch_features: NDArray[Any],
        image_features: NDArray[Any],
        sketch_labels: Labels,
        image_labels: Labels,
        sketch_curriculum: Curriculum | None = None,
        image_curriculum: Curriculum | None = None,
        links: Any = None,
        *,
        spaces: Widths | None = None,
    ) -> Self:
        """Learn on every space; parameters are those of `cppcl.methods.Method.fit`.

        Parameters
        ----------
        spaces : pair of sequence of int, optional
            Columns of each space, of both modalities; one space if None.

        Raises
        ------
        InputError
            If modalities have different numbers of spaces, there are not as many weights, or
            what the method says.
        """
        features = np.asarray(sketch_features), np.asarray(image_features)
        whole = tuple((F.shape[1],) for F in features)
        asked = spaces
        if self.composition.spaces == "joined" or spaces is None:
            spaces = whole[0], whole[1]
        if len(spaces[0]) != len(spaces[1]):
            raise InputError(
                f"spaces='separate': the sketch features have {len(spaces[0])} spaces, one an "
                f"extractor, and those of images {len(spaces[1])}; combine as many for both"
            )
        self._widths = np.array(spaces, dtype=np.int64)
        self._check(self._widths)
        labels, curricula = (sketch_labels, image_labels), (sketch_curriculum, image_curriculum)
        given: dict[str, Any] = {} if links is None else {"links": links}
        self._agreement = None
        if self.uses_agreement and links is None:
            given["agreement"] = self._agreement = self._judged(features, labels, asked)
        self._members = [
            self.make().fit(*parts, *labels, *curricula, **given)
            for parts in zip(*map(self._parts, MODALITIES, features), strict=True)
        ]
        self._centred = [Preparation().fit(F) for F in features]
        self._training = [
            self.encode_spaces(modality, F)
            for modality, F in zip(MODALITIES, features, strict=True)
        ]
        self._numbers = None
        if sketch_labels is not None and image_labels is not None:
            numbers = number_labels(sketch_labels, image_labels)
            self._numbers = numbers[0], numbers[1]
        self._regressions = []
        self._settle()
        return self

    def _judged(
        self,
        features: tuple[NDArray[Any], NDArray[Any]],
        labels: tuple[Labels, Labels],
        spaces: Widths | None,
    ) -> Agreement:
        """Agreement of the samples by all spaces together."""
        for modality, of_modality, F in zip(MODALITIES, labels, features, strict=True):
            check_labels(of_modality, len(F), f"{modality}_labels")
        sketches, images = number_labels(*labels)
        seed = int(getattr(self._members[0], "seed", 0))
        return remembered_agreement(features, (sketches, images), spaces=spaces, seed=seed)

    def shares_members(self, other: object) -> bool:
        """True if what another method learned is what this one did, the very same object."""
        return isinstance(other, type(self)) and self._members is other._members

    def fit_like(
        self, fitted: object, training: Sequence[Any], spaces: Widths | None = None
    ) -> Self:
        """Fit, or take what another one learned if it did so with the same options.

        Parameters
        ----------
        fitted : object
            A composed method that was fitted on the same samples, or anything else.
        training : sequence
            Positional arguments of `fit`.
        spaces : pair of sequence of int, optional
            As for `fit`.
        """
        if not isinstance(fitted, type(self)) or not self._learns_like(fitted):
            return self.fit(*training, spaces=spaces)
        self._members, self._widths = fitted._members, fitted._widths
        self._centred, self._training = fitted._centred, fitted._training
        self._numbers, self._regressions = fitted._numbers, fitted._regressions
        self._agreement = fitted._agreement
        self._check(self._widths)
        self._settle()
        return self

    def _settle(self) -> None:
        """Find what the codes of new samples need of those of training."""
        sketches, images = map(self._side_by_side, self._training)
        self._groups = []
        if self.composition.soft_links:
            if self._numbers is None or not np.intersect1d(*self._numbers).size:
                raise InputError(
                    f"composition.soft_links={self.composition.soft_links} needs labels that "
                    "occur in both modalities; use 0"
                )
            codes, judged = (sketches, images), self._agreement
            if judged is not None and judged.members is not None:
                means = expected_group_codes(codes, self._numbers, judged.members)
            else:
                weights = None if judged is None else judged.probabilities
                means = group_codes(codes, self._numbers, weights)
            self._groups = list(means)
            if self._uses_regression and not self._regressions:
                self._regressions.append(self._regression(*self._numbers))
        rows = np.arange(len(sketches))
        if len(rows) > MOST_IN_BANK:
            rows = np.linspace(0, len(rows) - 1, MOST_IN_BANK).round().astype(np.int64)
        self._bank = self._linked("sketch", [C[rows] for C in self._training[0]])

    @property
    def _uses_regression(self) -> bool:
        """True if a regression says how likely the classes are, once their codes are known."""
        n_classes = len(self._groups[0]) if self._groups else 0
        possible = 2 <= n_classes <= MOST_CLASSES
        model = self.composition.posterior
        return model == "regression" or (model == "auto" and possible)

    def _regression(
        self, sketches: NDArray[np.int64], images: NDArray[np.int64]
    ) -> LogisticRegression:
        """Regression of the classes of both modalities, by their numbers."""
        shared = np.intersect1d(sketches, images)
        of_sketches, of_images = np.isin(sketches, shared), np.isin(images, shared)
        judged = self._agreement
        return _new_regression("none" if judged is None else "agreement").fit(
            _regression_rows(self._training[0])[of_sketches],
            _regression_rows(self._training[1])[of_images],
            sketches[of_sketches],
            images[of_images],
            agreement=judged and judged.only(of_sketches, of_images),
        )

    def _linked(self, modality: Modality, spaces: list[Floating]) -> Floating:
        """Codes (n, d) of unit norm, moved by soft links."""
        codes = self._side_by_side(spaces)
        weight = self.composition.soft_links
        if not weight:
            return codes
        here = MODALITIES.index(modality)
        own, other = self._groups[here], self._groups[1 - here]
        if self._uses_regression:
            rows, regression = _regression_rows(spaces), self._regressions[0]
            probabilities = (
                regression.encode_sketches(rows)
                if modality == "sketch"
                else regression.encode_images(rows)
            )
            target = (probabilities @ ((own + other) / 2)).astype(codes.dtype, copy=False)
        else:
            target = soft_targets(codes, own, other, self.composition.link_temperature)
        moved: Floating = unit_rows(codes + weight * target)
        return moved * codes.any(axis=1, keepdims=True)

    def _learns_like(self, other: ComposedMethod) -> bool:
        """True if both learn the same from the same samples."""
        here, there = self.make, other.make
        return (
            isinstance(here, partial)
            and isinstance(there, partial)
            and here.func is there.func
            and here.keywords == there.keywords
            and self.composition.spaces == other.composition.spaces
        )

    def _check(self, widths: NDArray[np.int64]) -> None:
        """Refuse a composition that does not go with these features."""
        self.composition.shares(widths.shape[1])
        sketch, image = widths.sum(axis=1)
        if self.composition.centred_share and sketch != image:
            raise InputError(
                f"centred_share={self.composition.centred_share} needs the same features in both "
                f"modalities, but sketches have {sketch} columns and images {image}; use "
                "centred_share=0"
            )

    def encode_sketches(self, features: NDArray[Any]) -> Floating:
        """Codes (n, d) of sketch features (n, m_s)."""
        return self.compose("sketch", self.encode_spaces("sketch", features))

    def encode_images(self, features: NDArray[Any]) -> Floating:
        """Codes (n, d) of image features (n, m_i)."""
        return self.compose("image", self.encode_spaces("image", features))

    def encode_spaces(self, modality: Modality, features: NDArray[Any]) -> list[Floating]:
        """Codes (n, d_k) of every space, of unit norm, and the centred features last."""
        if not self._widths.size:
            raise NotFittedError("this method is not fitted yet; call fit")
        features = np.asarray(features)
        codes = [
            unit_rows(
                member.encode_sketches(part)
                if modality == "sketch"
                else member.encode_images(part)
            )
            for member, part in zip(self._members, self._parts(modality, features), strict=True)
        ]
        centred = self._centred[MODALITIES.index(modality)]
        return [*codes, centred.transform(features, name=f"{modality}_features")]

    def compose(self, modality: Modality, spaces: list[Floating]) -> Floating:
        """Codes (n, d) from what `encode_spaces` returned, of a method that learned the same."""
        chosen = self.composition
        codes = self._linked(modality, spaces)
        if chosen.hubness == "none":
            return codes
        if modality == "sketch":
            return sketches_with_hubness(codes, chosen.hubness)
        if self._bank is None:
            raise NotFittedError("this method is not fitted yet, it holds no bank of sketches")
        offsets = hub_offsets(
            self._bank,
            codes,
            chosen.hubness,
            n_neighbors=chosen.n_neighbors,
            temperature=chosen.hub_temperature,
        )
        return images_with_hubness(codes, offsets)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was learned, by name; that of the first space has the method's own names."""
        if self._bank is None:
            raise NotFittedError("this method is not fitted yet; call fit")
        arrays = {"composition_widths": self._widths, "composition_bank": self._bank}
        for modality, means in zip(MODALITIES, self._groups, strict=False):
            arrays[f"{modality}_composition_groups"] = means
        if self._groups and self._uses_regression:
            found = self._regressions[0].to_arrays()
            arrays |= {f"composition_regression_{name}": array for name, array in found.items()}
        for modality, preparation in zip(MODALITIES, self._centred, strict=True):
            found = preparation.to_arrays()
            arrays |= {f"composition_{modality}_{name}": array for name, array in found.items()}
        for number, member in enumerate(self._members):
            prefix = f"space{number}_" if number else ""
            arrays |= {f"{prefix}{name}": array for name, array in member.to_arrays().items()}
        return arrays

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_arrays` returned."""
        rest = {name: np.asarray(array) for name, array in arrays.items()}
        if "composition_widths" not in rest:
            raise NotFittedError("the arrays hold no composition_widths; give all of them")

        def take(prefix: str) -> dict[str, NDArray[Any]]:
            names = [name for name in rest if name.startswith(prefix)]
            return {name.removeprefix(prefix): rest.pop(name) for name in names}

        self._widths, self._bank = rest.pop("composition_widths"), rest.pop("composition_bank")
        groups = [f"{modality}_composition_groups" for modality in MODALITIES]
        self._groups = [rest.pop(name) for name in groups if name in rest]
        self._centred = [
            Preparation().from_arrays(take(f"composition_{modality}_")) for modality in MODALITIES
        ]
        regression = take("composition_regression_")
        self._regressions = []
        if regression:
            self._regressions.append(_new_regression().from_arrays(regression))
        others = [take(f"space{number}_") for number in range(1, self._widths.shape[1])]
        self._members = [self.make().from_arrays(found) for found in (rest, *others)]
        return self

    def _parts(self, modality: Modality, features: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Columns of every space."""
        widths = self._widths[MODALITIES.index(modality)]
        if features.shape[1] != widths.sum():
            raise InputError(
                f"{modality}_features has {features.shape[1]} columns, but training had "
                f"{widths.sum()}"
            )
        yield from np.split(features, np.cumsum(widths)[:-1], axis=1)

    def _side_by_side(self, codes: list[Floating]) -> Floating:
        """Codes whose cosine is the weighted sum of those of the spaces."""
        chosen = self.composition
        shares = [*chosen.shares(len(codes) - 1), chosen.centred_share]
        parts = [C * math.sqrt(s) for C, s in zip(codes, shares, strict=True) if s]
        joined: Floating = np.concatenate(parts, axis=1)
        return unit_rows(joined)


def _regression_rows(spaces: Sequence[Floating]) -> Floating:
    """Codes of all spaces, of unit norm together, beside the centred features."""
    *codes, centred = spaces
    joined = [C / math.sqrt(len(codes)) for C in codes]
    rows: Floating = np.concatenate([*joined, FEATURE_SCALE * centred], axis=1)
    return rows


def _new_regression(sample_weights: SampleWeights = "none") -> LogisticRegression:
    """Regression that takes its rows as they are."""
    as_they_are = Preparation(center=False, unit_norm=False)
    return LogisticRegression(
        C=REGRESSION_C, preparation=as_they_are, sample_weights=sample_weights
    )
