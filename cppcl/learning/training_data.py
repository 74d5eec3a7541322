"""What an estimator trains on: features of both modalities, what links them, curricula."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.among import among
from cppcl.curriculum.base import Curriculum
from cppcl.errors import InputError
from cppcl.learning.agreement import Agreement, remembered_agreement
from cppcl.learning.graph import Laplacian, Normalize, number_labels
from cppcl.modality import MODALITIES
from cppcl.optim.pacing.options import Curricula
from cppcl.optim.pacing.problem import GroupScale, group_sizes
from cppcl.validation import Floating, Labels, check_labels, check_links, check_matrix


@dataclass(frozen=True)
class TrainingData:
    """Arguments of `fit` of methods that pace, checked and of one dtype; sketches come first.

    Attributes
    ----------
    features : pair of (n_k, m_k) arrays
        One sample a row.
    labels : pair of (n_k,) int64 arrays
        Numbers of the labels, shared by the modalities.
    curricula : pair of Curriculum or None
        Pairs of either modality.
    links : sparse array (K, L) or None
        Affinities that replace the links by label.
    labelled : bool
        True if labels of both modalities were given.
    """

    features: tuple[Floating, Floating]
    labels: tuple[NDArray[np.int64], NDArray[np.int64]]
    curricula: tuple[Curriculum | None, Curriculum | None]
    links: Any
    labelled: bool

    @classmethod
    def checked(
        cls,
        features: tuple[Any, Any],
        labels: tuple[Labels | None, Labels | None],
        curricula: tuple[Curriculum | None, Curriculum | None],
        links: Any,
    ) -> Self:
        """Check what a user gave.

        Raises
        ------
        InputError
            For features that are not finite, lengths that differ, fewer than two samples of a
            modality, curricula of another size, or neither labels nor links.
        """
        matrices = [
            check_matrix(given, f"{modality}_features")
            for modality, given in zip(MODALITIES, features, strict=True)
        ]
        dtype = np.result_type(*matrices)
        sketches, images = (matrix.astype(dtype, copy=False) for matrix in matrices)
        known = []
        for modality, F, of_modality, curriculum in zip(
            MODALITIES, matrices, labels, curricula, strict=True
        ):
            if len(F) < 2:
                raise InputError(
                    f"{modality}_features holds {len(F)} sample; training needs at least 2"
                )
            if of_modality is None and links is None:
                raise InputError(
                    f"{modality}_labels is None: give the labels of both modalities, or links"
                )
            # Where links are given, labels only say which samples make up a group.
            known.append(
                [0] * len(F)
                if of_modality is None
                else check_labels(of_modality, len(F), f"{modality}_labels")
            )
            if curriculum is not None and not hasattr(curriculum, "smoothed_gradient"):
                raise InputError(
                    f"{modality}_curriculum is a {type(curriculum).__name__}, not a curriculum; "
                    "give cppcl.curriculum.ExplicitPairs(pairs, n_samples)"
                )
            if curriculum is not None and curriculum.n_samples != len(F):
                raise InputError(
                    f"{modality}_curriculum is over {curriculum.n_samples} samples, "
                    f"but {modality}_features has {len(F)} rows"
                )
        sketch_labels, image_labels = number_labels(*known)
        weights = None if links is None else check_links(links, len(sketches), len(images))
        labelled = labels[0] is not None and labels[1] is not None
        numbers = sketch_labels, image_labels
        return cls((sketches, images), numbers, curricula, weights, labelled)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating type of everything that is computed."""
        return self.features[0].dtype

    @property
    def linked_by_label(self) -> tuple[int, int]:
        """How many labels occur in both modalities, and how many images have one of them."""
        sketches, images = self.labels
        linked = np.intersect1d(sketches, images)
        return len(linked), int(np.isin(images, linked).sum())

    @property
    def has_classes(self) -> bool:
        """True if labels that link samples have several images each on the average.

        A label of one image is an instance: new samples have labels of their own.
        """
        return self.labelled and _several(*self.linked_by_label)

    @property
    def n_directions(self) -> int:
        """Directions in which the modalities can be expected to agree.

        One for each class. Half of the pairs and at most a third of the features, as the weakest
        directions are noise, but 16 where there are so many pairs. Given links are those of
        classes where several images have the same ones.
        """
        if self.links is None:
            linked, n_images = self.linked_by_label
        else:
            by_image = self.links.T.tocsr()
            linked = min(_distinct_rows(self.links), _distinct_rows(by_image))
            n_images = int((by_image.sum(axis=1) > 0).sum())
        if _several(linked, n_images):
            return linked
        n_features = min(int(F.shape[1]) for F in self.features)
        return max(min(linked // 2, n_features // 3), min(linked, 16))

    def laplacian(
        self,
        normalize: Normalize,
        within: Sequence[Any] = (None, None),
        members: tuple[Any, Any] | None = None,
    ) -> Laplacian:
        """Graph by labels or by links, with these weights within either modality.

        Members (K, G) and (L, G), the probability of each class, replace labels that are certain.
        """
        sketches, images = within
        rest: Any = {"normalize": normalize, "within": (sketches, images), "dtype": self.dtype}
        if members is not None:
            return Laplacian(*members, **rest)
        if self.links is None:
            return Laplacian.from_labels(*self.labels, **rest)
        return Laplacian.from_links(self.links, **rest)

    def group_scale(self, scale: GroupScale = "relative") -> NDArray[Any]:
        """E of regulariser A for each sample, (K + L,)."""
        sizes = [group_sizes(of_modality, scale) for of_modality in self.labels]
        return np.concatenate(sizes).astype(self.dtype)

    def chosen_curricula(self, chosen: Curricula) -> tuple[Curriculum | None, Curriculum | None]:
        """Curricula of the sketches and of the images, None where one does not take part."""
        sketches, images = (
            curriculum if chosen in ("both", modality) else None
            for modality, curriculum in zip(MODALITIES, self.curricula, strict=True)
        )
        return sketches, images

    def agreement(self, given: Agreement | None, *, option: str, seed: int = 0) -> Agreement:
        """Agreement of the samples as it is given, or judged here; `option` asks for it.

        Raises
        ------
        InputError
            If links are given, or agreement of other samples.
        """
        if self.links is not None:
            raise InputError(f"{option} judges labels, not given links; leave it out")
        if given is None:
            return remembered_agreement(self.features, self.labels, seed=seed)
        for modality, F in zip(MODALITIES, self.features, strict=True):
            n = len(getattr(given, modality))
            if n != len(F):
                raise InputError(
                    f"agreement is of {n} {modality} samples, but {modality}_features has "
                    f"{len(F)} rows"
                )
        return given

    def right_curricula(
        self, chosen: Curricula, judged: Agreement | None
    ) -> tuple[Curriculum | None, Curriculum | None]:
        """Curricula that take part; of samples that likely are right alone, where some are not."""
        curricula = self.chosen_curricula(chosen)
        if judged is None or judged.right_share == 1:
            return curricula
        sketches, images = (
            None if curriculum is None else among(curriculum, np.flatnonzero(probability >= 0.5))
            for curriculum, probability in zip(curricula, judged.probabilities, strict=True)
        )
        return sketches, images

    def digest(self) -> bytes:
        """Digest of 32 bytes of all of it."""
        digest = sha256()
        for name, array in self._named_arrays():
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.digest()

    def _named_arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        parts = zip(MODALITIES, self.features, self.labels, self.curricula, strict=True)
        for modality, F, labels, curriculum in parts:
            yield f"{modality} features", F
            yield f"{modality} labels", labels
            if curriculum is not None:
                # Pairs need not be listed: what they ask of these two vectors tells them apart.
                v = np.random.default_rng(0).random(len(F))
                yield f"{modality} curriculum", curriculum.smoothed_gradient(v, 1.0)[1]
                yield f"{modality} curriculum", curriculum.smoothed_gradient(1 - v, 1.0)[1]
        if self.links is not None:
            for name in ("data", "indices", "indptr"):
                yield f"links {name}", getattr(self.links, name)


def _several(n_labels: int, n_images: int) -> bool:
    """True if labels have at least two images each on the average."""
    return 0 < 2 * n_labels <= n_images


def _distinct_rows(links: Any) -> int:
    """Rows of a CSR array that hold a weight and differ from one another."""
    links = links.copy()
    links.eliminate_zeros()
    links.sort_indices()
    bounds = [(a, b) for a, b in pairwise(links.indptr) if b > a]
    return len({(links.indices[a:b].tobytes(), links.data[a:b].tobytes()) for a, b in bounds})
