"""Principal components of feature vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError

_BLOCK = 1024


def principal_components(
    rows: NDArray[np.floating], n_components: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    r"""Mean and directions of largest variance of feature vectors.

    With :math:`\bar x` the mean of the rows and
    :math:`S = \tfrac1n \sum_i (x_i - \bar x)(x_i - \bar x)^\top`, the directions are the
    eigenvectors of S of the largest eigenvalues, in falling order, of unit length. Where there are
    fewer rows than values in each, they come from the n x n matrix of inner products instead. The
    largest entry by magnitude of each is positive, which settles its sign.

    Parameters
    ----------
    rows : (n, m) array
        Feature vectors.
    n_components : int
        Number k of directions, at most min(n - 1, m).

    Returns
    -------
    mean : (m,) float32 array
    components : (k, m) float32 array
        Orthonormal rows; computed in double precision.

    Raises
    ------
    InputError
        The rows vary in fewer than k directions.
    """
    import scipy.linalg

    n, m = rows.shape
    mean = rows.mean(axis=0, dtype=np.float64) if n else np.zeros(m)
    rank = min(n - 1, m)
    if n_components > rank:
        raise _too_few(n, n_components, max(rank, 0))
    wide = n < m
    if wide:
        centred = rows - mean
        matrix = centred @ centred.T
    else:
        matrix = np.zeros((m, m))
        for first in range(0, n, _BLOCK):
            block = rows[first : first + _BLOCK] - mean
            matrix += block.T @ block
    last = len(matrix) - 1
    values, vectors = scipy.linalg.eigh(
        matrix, subset_by_index=(last - n_components + 1, last), overwrite_a=True, driver="evr"
    )
    values, vectors = values[::-1], vectors[:, ::-1]
    # As much as rounding to float32 can make of directions without variance.
    rounding = np.finfo(np.float32).eps * float(np.abs(rows).max(initial=0))
    least = (n + m) * rounding**2
    if (found := int(np.count_nonzero(values > least))) < n_components:
        raise _too_few(n, n_components, found)
    components = centred.T @ vectors / np.sqrt(values) if wide else vectors
    components = components.T
    strongest = np.take_along_axis(
        components, np.abs(components).argmax(axis=1, keepdims=True), axis=1
    )
    components = components * np.sign(strongest)
    return mean.astype(np.float32), np.ascontiguousarray(components, dtype=np.float32)


def _too_few(n: int, n_components: int, rank: int) -> InputError:
    return InputError(
        f"features of {n} training pictures vary in {rank} directions, which cannot make "
        f"n_components={n_components}: give more training pictures, or lower n_components"
    )
