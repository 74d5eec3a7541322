"""Ordered pairs drawn from easiness scores."""

from __future__ import annotations

import hashlib
import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.curriculum.semiorder import DeltaUnit, Scope, Semiorder, order_by_scores
from cppcl.errors import InputError
from cppcl.validation import check_number


def pairs_from_scores(
    scores: NDArray[Any],
    labels: NDArray[Any] | Sequence[Any],
    *,
    delta: float = 0.5,
    delta_unit: DeltaUnit = "deviation",
    rho: float = 0.3,
    scope: Scope = "auto",
    maximum_pairs: int | None = 100_000,
    seed: int = 0,
) -> ExplicitPairs:
    """Draw pairs (harder, easier) whose scores differ clearly.

    Parameters
    ----------
    scores, labels, delta, delta_unit, scope
        Which pairs are admissible, as in `cppcl.curriculum.semiorder.order_by_scores`.
    rho, maximum_pairs, seed
        How many are kept, as in `draw_pairs`.

    Returns
    -------
    ExplicitPairs
        Ordered by class, then by the harder sample's score, then by the easier one's.

    Raises
    ------
    InputError
        For an option out of range, infinite scores, or scores and labels of different length.
    """
    admissible = order_by_scores(scores, labels, delta=delta, delta_unit=delta_unit, scope=scope)
    return draw_pairs(admissible, rho=rho, maximum_pairs=maximum_pairs, seed=seed)


def draw_pairs(
    admissible: Semiorder, *, rho: float = 0.3, maximum_pairs: int | None = 100_000, seed: int = 0
) -> ExplicitPairs:
    """Draw a uniform sample without replacement of the admissible pairs, which are not listed.

    O(n) memory besides the pairs that are kept.

    Parameters
    ----------
    admissible : Semiorder
        Of n samples.
    rho : float
        Share of the admissible pairs to keep, in [0, 1].
    maximum_pairs : int, optional
        Upper bound on the pairs kept, whatever `rho` says; None for none.
    seed : int
        Of the draw.

    Raises
    ------
    InputError
        For an option out of range.
    """
    _check(rho, maximum_pairs, seed)
    n_pairs, order = admissible.n_pairs, admissible.order
    kept = n_kept(n_pairs, rho, maximum_pairs)
    draw = np.random.default_rng(seed).choice(n_pairs, kept, replace=False, shuffle=False)
    draw.sort()
    cumulative = np.cumsum(admissible.last - admissible.first)
    harder = np.searchsorted(cumulative, draw, side="right")
    easier = admissible.last[harder] - (cumulative[harder] - draw)
    pairs = np.stack([order[harder], order[easier]], axis=1)
    return ExplicitPairs(pairs, admissible.n_samples)


def hash_pairs(
    admissible: Semiorder,
    ids: Sequence[str],
    *,
    rho: float = 0.3,
    maximum_pairs: int | None = 100_000,
    seed: int = 0,
) -> ExplicitPairs:
    """Draw admissible pairs by the ids of their samples, so that they last as samples are added.

    A pair is kept iff a hash of its two ids and of the seed, uniform on [0, 1], is below `rho`:
    a random sample whose size is `rho` of the admissible pairs on average. Whether a pair is kept
    depends on nothing else; so with an absolute threshold, adding samples adds pairs and removes
    none. Where `maximum_pairs` is binding, rho shrinks to what it allows, and pairs of higher
    hash go. Time is linear in the admissible pairs, about two nanoseconds each, memory in those
    kept.

    Parameters
    ----------
    admissible : Semiorder
        Of n samples.
    ids : sequence of str
        Names of the samples that last.
    rho : float
        Share of the admissible pairs to keep, in [0, 1].
    maximum_pairs : int, optional
        Bound on the expected number of pairs; None for none.
    seed : int
        Of the hash.

    Raises
    ------
    InputError
        For an option out of range, or another number of ids than samples.
    """
    from cppcl.curriculum.order_kernels import hashed_pairs

    _check(rho, maximum_pairs, seed)
    named = isinstance(ids, Sequence) or getattr(ids, "ndim", None) == 1
    named = named and not isinstance(ids, str | bytes)
    if not named or not all(isinstance(i, str) for i in ids):
        raise InputError(f"ids={reprlib.repr(ids)} must be a list of strings")
    if len(ids) != admissible.n_samples:
        raise InputError(f"{len(ids)} ids for {admissible.n_samples} samples; give one each")
    n_pairs, order = admissible.n_pairs, admissible.order
    if n_pairs and maximum_pairs is not None:
        rho = min(rho, maximum_pairs / n_pairs)
    # Hashes are below 2^64: at rho = 1 all but one in 2^64 pairs is kept.
    limit = np.uint64(min(int(rho * 2.0**64), 2**64 - 1))
    key = str(seed).encode()
    digests = (hashlib.blake2b(i.encode(), digest_size=8, key=key).digest() for i in ids)
    hashes = np.frombuffer(b"".join(digests), dtype=np.uint64)
    # Six standard deviations above the mean.
    most = min(n_pairs, round(rho * n_pairs + 6 * (rho * n_pairs) ** 0.5) + 10)
    found = hashed_pairs(admissible.first, admissible.last, hashes[order], limit, most)
    return ExplicitPairs(order[found], admissible.n_samples)


def n_kept(n_pairs: int, rho: float, maximum_pairs: int | None) -> int:
    """Return how many of so many admissible pairs `draw_pairs` keeps."""
    kept = round(rho * n_pairs)
    return kept if maximum_pairs is None else min(kept, maximum_pairs)


def _check(rho: float, maximum_pairs: int | None, seed: int) -> None:
    check_number("rho", rho, least=0, most=1)
    if maximum_pairs is not None:
        check_number("maximum_pairs", maximum_pairs, least=0, whole=True)
    check_number("seed", seed, least=0, whole=True)
