"""How well each training sample agrees with what it is tied to, judged by models without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.learning.graph import number_labels
from cppcl.learning.mixture import mixture
from cppcl.learning.preparation import principal_axes, unit_rows
from cppcl.validation import Labels, check_choice, check_labels, check_matrix, check_number

Kind = Literal["pairs", "labels"]
"""What may be wrong: which sketch belongs to which image, or the class of a sample."""
AskedKind = Literal["auto", "pairs", "labels"]
"""A kind, or whichever the targets are."""
Array = NDArray[np.float64]
Rows = NDArray[np.int64]

N_FOLDS: dict[Kind, int] = {"pairs": 10, "labels": 20}
N_ROUNDS: dict[Kind, int] = {"pairs": 2, "labels": 3}
"""Models of the first round count all samples alike, those of later rounds by probability."""
LEAST_TO_HOLD_OUT = 4
"""Two folds of two pairs, or samples, each: a wrong pair is put together from two."""
MOST_COMPONENTS = 300
"""Principal components of a space that a model of pairs sees."""
N_DIRECTIONS = 100
CCA_RIDGE = 0.3
"""Of the model of pairs: canonical directions, and ridge relative to the largest variance."""
MOST_WRONG = 64
"""Wrong pairs that are looked at for every right one."""
MOST_LANDMARKS = 2000
"""Samples by which the kernel of the model of labels is expanded."""
KERNEL_WIDTH = 0.5
LABEL_RIDGE = 0.5
SHARED = 0.7
"""Kernel between the modalities, against that within one."""
TEMPERATURE = 0.1
"""Of the posterior of a class, for least-squares scores of which the right one is near 1."""
NO_WEIGHT = 1e-9
"""Sum of probabilities that is none."""
LEAST = 1e-3
"""Least probability by which samples are weighed, so that none is lost wholly."""


@dataclass(frozen=True)
class Agreement:
    """How likely each training sample is tied to the right thing.

    Attributes
    ----------
    kind : {'pairs', 'labels'}
        What was judged.
    sketch, image : (n_s,) and (n_i,) float64
        Scores out of fold, higher where more likely right; NaN of a sample that has no partner.
    sketch_probability, image_probability : (n_s,) and (n_i,) float64
        Probability that it is right; 1 where nothing is known.
    right_share : float
        Estimated share of right pairs, or of right labels; 1 where data look clean.
    sketch_likeliest, image_likeliest : (n_s,) and (n_i,) arrays
        Label that the models hold likeliest; of pairs the target that is given.
    members : pair of sparse (n_s, G) and (n_i, G), or None
        Of labels: the probability that a sample is of each class. That of the given label is the
        probability that it is right; the rest is divided by the posterior of the other classes.
    """

    kind: Kind
    sketch: Array
    image: Array
    sketch_probability: Array
    image_probability: Array
    right_share: float
    sketch_likeliest: NDArray[Any]
    image_likeliest: NDArray[Any]
    members: tuple[Any, Any] | None = None

    def only(self, sketches: NDArray[Any], images: NDArray[Any]) -> Agreement:
        """Agreement of some of the samples, by masks or row numbers."""
        return replace(
            self,
            sketch=self.sketch[sketches],
            image=self.image[images],
            sketch_probability=self.sketch_probability[sketches],
            image_probability=self.image_probability[images],
            sketch_likeliest=self.sketch_likeliest[sketches],
            image_likeliest=self.image_likeliest[images],
            members=self.members and (self.members[0][sketches], self.members[1][images]),
        )

    @property
    def probabilities(self) -> tuple[Array, Array]:
        """Probability that each sketch, and each image, is right, at least 0.001."""
        return np.maximum(self.sketch_probability, LEAST), np.maximum(
            self.image_probability, LEAST
        )


def agreement(
    sketch_features: NDArray[Any],
    image_features: NDArray[Any],
    sketch_targets: Labels,
    image_targets: Labels,
    *,
    kind: AskedKind = "auto",
    spaces: tuple[Sequence[int], Sequence[int]] | None = None,
    n_folds: int | None = None,
    seed: int = 0,
) -> Agreement:
    r"""Judge every training sample by models that were trained without it.

    Of pairs: the cosine of the codes of a pair less half the mean cosine of either to the others,
    by a canonical correlation analysis with ridge of the other folds. Of labels: the logarithm of
    the posterior of the given label, by least squares with a Gaussian kernel on both modalities.
    Several spaces of features add their cosines, or their kernels.

    Scores of wrong pairs and wrong labels can be had in any number: those of samples put together
    at random. So their distribution is known, the observed scores are a mixture of it and that
    of right ones, and the share of the right ones is estimated from it. Further rounds of models
    weigh training samples by the probabilities of the last.

    Parameters
    ----------
    sketch_features, image_features : (n_s, m_s) and (n_i, m_i) array_like
        One sample a row, finite.
    sketch_targets, image_targets : sequences of n_s and n_i hashables
        A sketch and an image of equal target belong together.
    kind : {'auto', 'pairs', 'labels'}, default 'auto'
        'auto' judges pairs where nearly every target has one sketch or one image.
    spaces : pair of sequence of int, optional
        Columns of each space of either modality; one space if None.
    n_folds : int, optional
        At least 2; 10 of pairs and 20 of labels, or as many as have two targets, or samples, each.
        Folds of pairs hold out whole targets.
    seed : int, default 0
        Of the folds.

    Raises
    ------
    InputError
        For features or targets that do not fit each other, or fewer targets than folds.
    """
    check_choice("kind", kind, AskedKind)
    if n_folds is not None:
        check_number("n_folds", n_folds, least=2, whole=True)
    matrices = (
        check_matrix(sketch_features, "sketch_features"),
        check_matrix(image_features, "image_features"),
    )
    sketch_numbers, image_numbers = number_labels(
        check_labels(sketch_targets, len(matrices[0]), "sketch_targets"),
        check_labels(image_targets, len(matrices[1]), "image_targets"),
    )
    parts = [
        [F.astype(np.float64) for F in np.split(matrix, np.cumsum(widths)[:-1], axis=1)]
        for matrix, widths in zip(
            matrices, spaces or ((matrices[0].shape[1],), (matrices[1].shape[1],)), strict=True
        )
    ]
    found = settled_kind(sketch_numbers, image_numbers) if kind == "auto" else kind
    judge = _of_pairs if found == "pairs" else _of_labels
    judged = judge(parts[0], parts[1], sketch_numbers, image_numbers, n_folds, seed)
    # A label stands where a sample that has it does.
    targets = np.concatenate([np.asarray(sketch_targets), np.asarray(image_targets)])
    numbers = np.concatenate([sketch_numbers, image_numbers])
    named = targets[np.unique(numbers, return_index=True)[1]]
    return replace(
        judged,
        sketch_likeliest=named[judged.sketch_likeliest],
        image_likeliest=named[judged.image_likeliest],
    )


MOST_REMEMBERED = 4
_remembered: dict[bytes, Agreement] = {}


def remembered_agreement(
    features: tuple[NDArray[Any], NDArray[Any]],
    labels: tuple[Rows, Rows],
    *,
    spaces: tuple[Sequence[int], Sequence[int]] | None = None,
    seed: int = 0,
) -> Agreement:
    """Agreement of training samples, taken from the last few that were asked for if it is there.

    A search fits many combinations of options on the same samples. Labels are numbers.
    """
    digest = sha256(repr((spaces, seed)).encode())
    for array in (*features, *labels):
        digest.update(f"{array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    key = digest.digest()
    if key not in _remembered:
        found = agreement(*features, *labels, spaces=spaces, seed=seed)
        while len(_remembered) >= MOST_REMEMBERED:
            del _remembered[next(iter(_remembered))]
        _remembered[key] = found
    return _remembered[key]


def agreement_memory(n_sketches: int, n_images: int, dimensions: tuple[int, int]) -> int:
    """Bytes that `agreement` needs at most: features and kernel in double precision."""
    n_values = n_sketches * dimensions[0] + n_images * dimensions[1]
    n = n_sketches + n_images
    return 8 * (4 * n_values + 5 * n * min(n, MOST_LANDMARKS))


def settled_kind(sketch_numbers: Rows, image_numbers: Rows) -> Kind:
    """'pairs' where links are at most twice as many as samples, else 'labels'."""
    size = 1 + max(int(numbers.max(initial=-1)) for numbers in (sketch_numbers, image_numbers))
    counts = [np.bincount(numbers, minlength=size) for numbers in (sketch_numbers, image_numbers)]
    n_links = int((counts[0] * counts[1]).sum())
    return "pairs" if n_links <= 2 * max(len(sketch_numbers), len(image_numbers)) else "labels"


def _of_pairs(
    sketches: list[Array],
    images: list[Array],
    of_sketches: Rows,
    of_images: Rows,
    n_folds: int | None,
    seed: int,
) -> Agreement:
    left, right = listed_links(of_sketches, of_images)
    targets = of_sketches[left]
    fold = _dealt(np.unique(targets), n_folds, seed, "pairs")[targets]
    spaces = [
        (_components(of_sketch), _components(of_image))
        for of_sketch, of_image in zip(sketches, images, strict=True)
    ]

    def judged(weights: Array) -> Iterator[tuple[Rows, Array, Array]]:
        for number in range(fold.max() + 1):
            held_out, trains = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
            w = weights[trains]
            codes = [
                _canonical_codes(
                    S[left[trains]], B[right[trains]], w, S[left[held_out]], B[right[held_out]]
                )
                for S, B in spaces
            ]
            of_sketch, of_image = (np.hstack(parts) for parts in zip(*codes, strict=True))
            own, wrong = _against_others(of_sketch, of_image, targets[held_out])
            yield held_out, own, wrong

    scores, probability, share = _rounds(judged, fold, N_ROUNDS["pairs"])
    by_sample = [
        (_largest(scores, rows, n, np.nan), _largest(probability, rows, n, 1.0))
        for rows, n in ((left, len(of_sketches)), (right, len(of_images)))
    ]
    (sketch, p), (image, q) = by_sample
    return Agreement("pairs", sketch, image, p, q, share, of_sketches, of_images)


def _of_labels(
    sketches: list[Array],
    images: list[Array],
    of_sketches: Rows,
    of_images: Rows,
    n_folds: int | None,
    seed: int,
) -> Agreement:
    n_sketches = len(of_sketches)
    labels = np.concatenate([of_sketches, of_images])
    known, labels = np.unique(labels, return_inverse=True)
    if len(known) < 2:
        raise InputError("all samples have one label; labels can be judged from two on")
    n, n_classes = len(labels), len(known)
    fold = _dealt(np.arange(n), n_folds, seed, "labels")
    expansion = _expanded(sketches, images, seed)
    given = np.zeros((n, n_classes))
    given[np.arange(n), labels] = 1
    likeliest = labels.copy()

    likely = np.empty((n, n_classes))

    def judged(weights: Array) -> Iterator[tuple[Rows, Array, Array]]:
        weighted = expansion * weights[:, None]
        gram, moment = weighted.T @ expansion, weighted.T @ given
        total, ridge = weights @ given, LABEL_RIDGE * np.eye(expansion.shape[1])
        sums = weighted.sum(axis=0)
        for number in range(fold.max() + 1):
            rows = np.flatnonzero(fold == number)
            E, W = expansion[rows], weighted[rows]
            prior = total - weights[rows] @ given[rows]
            prior = prior / prior.sum()
            A = gram - W.T @ E + ridge
            b = moment - W.T @ given[rows] - np.outer(sums - W.sum(axis=0), prior)
            logits = (prior + E @ np.linalg.solve(A, b)) / TEMPERATURE
            logits -= logits.max(axis=1, keepdims=True)
            posterior = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
            likely[rows] = posterior
            other = given[rows] == 0
            likeliest[rows] = posterior.argmax(axis=1)
            yield rows, posterior[~other], posterior[other]

    scores, probability, share = _rounds(judged, fold, N_ROUNDS["labels"])
    return Agreement(
        "labels",
        scores[:n_sketches],
        scores[n_sketches:],
        probability[:n_sketches],
        probability[n_sketches:],
        share,
        known[likeliest[:n_sketches]],
        known[likeliest[n_sketches:]],
        _members(likely, labels, probability, n_sketches),
    )


def _members(
    posterior: Array, labels: Rows, probability: Array, n_sketches: int
) -> tuple[Any, Any]:
    """Probability of each class (n, G) from logarithms of the posterior, of either modality."""
    from scipy import sparse

    rows = np.arange(len(labels))
    others = np.exp(posterior)
    others[rows, labels] = 0
    sums = others.sum(axis=1)
    others *= np.divide(1 - probability, sums, where=sums > 0, out=np.zeros_like(sums))[:, None]
    others[others < LEAST] = 0
    others[rows, labels] = np.maximum(probability, LEAST)
    members = sparse.csr_array(others)
    return members[:n_sketches], members[n_sketches:]


def _rounds(
    judged: Callable[[Array], Iterator[tuple[Rows, Array, Array]]], fold: Rows, n_rounds: int
) -> tuple[Array, Array, float]:
    """Scores of n samples, probabilities that they are right, and the share of right ones."""
    n = len(fold)
    probability, scores, share = np.ones(n), np.empty(n), 1.0
    for _ in range(n_rounds):
        wrong = []
        for rows, own, others in judged(probability):
            scores[rows] = own
            wrong.append(others)
        probability, share = mixture(scores, np.concatenate(wrong))
        # Where none outside a fold is likely right, there is nothing to learn another model from.
        outside = probability.sum() - np.bincount(fold, weights=probability)
        if share == 1 or outside.min() <= NO_WEIGHT:
            break
    return scores, probability, share


def listed_links(of_sketches: Rows, of_images: Rows) -> tuple[Rows, Rows]:
    """Rows of the sketch and of the image of every pair of equal targets.

    Raises
    ------
    InputError
        If there is none.
    """
    order = np.argsort(of_images, kind="stable")
    ordered = of_images[order]
    first, last = (np.searchsorted(ordered, of_sketches, side) for side in ("left", "right"))
    counts = last - first
    left = np.repeat(np.arange(len(of_sketches)), counts)
    within = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
    right = order[np.repeat(first, counts) + within]
    if not len(left):
        raise InputError("sketch_targets and image_targets share no value, so there are no pairs")
    return left, right


def _dealt(values: Rows, n_folds: int | None, seed: int, what: Kind) -> Rows:
    """Fold of every value, indexed by value."""
    if len(values) < LEAST_TO_HOLD_OUT:
        raise InputError(
            f"agreement holds out some of the {what} to judge them, and there are {len(values)}; "
            f"give at least {LEAST_TO_HOLD_OUT}"
        )
    if n_folds is None:
        n_folds = max(2, min(N_FOLDS[what], len(values) // 2))
    if len(values) < 2 * n_folds:
        raise InputError(
            f"n_folds={n_folds}, but there are {len(values)} {what} to hold out; use at most "
            f"{len(values) // 2}, so that each fold has two"
        )
    folds = np.zeros(int(values.max()) + 1, dtype=np.int64)
    shuffled = np.random.default_rng(seed).permutation(values)
    folds[shuffled] = np.arange(len(values)) % n_folds
    return folds


def _rooted(features: Array) -> Array:
    """Signed roots of unit norm about their mean, of unit norm."""
    rooted = _unit(np.sign(features) * np.sqrt(np.abs(features)))
    return _unit(rooted - rooted.mean(axis=0))


def _unit(rows: Array) -> Array:
    return unit_rows(rows).astype(np.float64, copy=False)


def _components(features: Array) -> Array:
    """Leading principal components (n, d) of rooted features."""
    rooted = _rooted(features)
    axes, _ = principal_axes(rooted, largest=MOST_COMPONENTS)
    components: Array = rooted @ axes if axes.size else np.zeros((len(rooted), 1))
    return components


def _canonical_codes(
    sketches: Array, images: Array, weights: Array, new_sketches: Array, new_images: Array
) -> tuple[Array, Array]:
    """Codes of unit norm by canonical directions of weighted pairs."""
    share = weights / weights.sum()

    def whitened(samples: Array) -> tuple[Array, Array]:
        mean = share @ samples
        deviations = samples - mean
        variances, axes = np.linalg.eigh((share[:, None] * deviations).T @ deviations)
        ridged = np.maximum(variances, 0) + CCA_RIDGE * max(variances[-1], 0)
        # Directions in which these samples do not vary tell nothing.
        scale = np.divide(1, np.sqrt(ridged), where=ridged > 0, out=np.zeros_like(ridged))
        return mean, axes * scale

    (mean_s, to_s), (mean_i, to_i) = whitened(sketches), whitened(images)
    cross = ((sketches - mean_s) @ to_s).T @ (share[:, None] * ((images - mean_i) @ to_i))
    left, _, right = np.linalg.svd(cross, full_matrices=False)
    return (
        _unit((new_sketches - mean_s) @ (to_s @ left[:, :N_DIRECTIONS])),
        _unit((new_images - mean_i) @ (to_i @ right[:N_DIRECTIONS].T)),
    )


def _against_others(sketches: Array, images: Array, targets: Rows) -> tuple[Array, Array]:
    """Scores of pairs (n, d) of codes, and scores of wrong pairs put together from them."""
    n = len(sketches)
    own = np.einsum("pd,pd->p", sketches, images)
    mean_s = (sketches @ images.sum(axis=0) - own) / (n - 1)
    mean_i = (images @ sketches.sum(axis=0) - own) / (n - 1)
    wrong = []
    for step in np.unique(np.linspace(1, n - 1, min(n - 1, MOST_WRONG)).astype(np.int64)):
        other = np.roll(np.arange(n), -step)
        cosine = np.einsum("pd,pd->p", sketches, images[other])
        scores = cosine - (mean_s + mean_i[other]) / 2
        wrong.append(scores[targets != targets[other]])
    return own - (mean_s + mean_i) / 2, np.concatenate(wrong)


def _expanded(sketches: list[Array], images: list[Array], seed: int) -> Array:
    """Features (n, d) of all samples whose inner products are their kernel (Nystrom's).

    The kernel is a Gaussian of the mean over spaces of the squared distance; between modalities
    it is smaller. A space whose modalities have other columns ties none of them.
    """
    from scipy.linalg import block_diag as block_diagonal

    n_sketches, n_images = len(sketches[0]), len(images[0])
    n = n_sketches + n_images
    landmarks = np.arange(n)
    if n > MOST_LANDMARKS:
        drawn = np.random.default_rng(seed).choice(n, MOST_LANDMARKS, replace=False)
        landmarks = np.sort(drawn)
    similarity = np.zeros((n, len(landmarks)))
    is_image = np.arange(n) >= n_sketches
    same = is_image[:, None] == is_image[landmarks]
    shared = np.where(same, 1.0, SHARED)
    for parts in zip(sketches, images, strict=True):
        of_sketch, of_image = map(_rooted, parts)
        if of_sketch.shape[1] == of_image.shape[1]:
            stacked = np.concatenate([of_sketch, of_image])
            similarity += stacked @ stacked[landmarks].T
        else:
            shared[~same] = 0
            blocks = block_diagonal([of_sketch, of_image])
            similarity += blocks @ blocks[landmarks].T
    kernel = np.exp((similarity / len(sketches) - 1) / KERNEL_WIDTH) * shared
    values, axes = np.linalg.eigh(kernel[landmarks])
    kept = values > 1e-10 * values[-1]
    expansion: Array = kernel @ (axes[:, kept] / np.sqrt(values[kept]))
    return expansion


def _largest(values: Array, rows: Rows, n: int, empty: float) -> Array:
    """Largest value of each of n samples over its links."""
    largest = np.full(n, -np.inf)
    np.maximum.at(largest, rows, values)
    largest[np.isinf(largest)] = empty
    return largest
