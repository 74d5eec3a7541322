"""What users give, checked: features, labels, options. Errors name it, its value and a hint."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError

Floating = NDArray[np.floating]
Labels = Sequence[Hashable] | NDArray[Any]

Auto = Literal["auto"]
"""An option that the training data settle."""

LEAST_POSITIVE, LARGEST = 1e-9, 1e9
"""Range of options that are measures: single precision has room for their products."""

Number = TypeVar("Number", int, float)
Option = TypeVar("Option")


def check_matrix(features: Any, name: str) -> Floating:
    """Validate a feature matrix and return it as floating point, rows contiguous.

    Parameters
    ----------
    features : array_like, (n, m)
        float32 and float64 keep their type, and are copied only where rows do not lie one after
        the other. Integers of up to 16 bits, float16 and bool become float32, which holds them
        exactly; other integers become float64.
    name : str
        What errors call it.

    Raises
    ------
    InputError
        If it is not two-dimensional, is empty, is not of real numbers, or holds a masked value or
        one that is not finite.
    """
    matrix = as_array(features, name)
    if matrix.ndim != 2 or 0 in matrix.shape:
        hint = "; a single sample is features.reshape(1, -1)" if matrix.ndim == 1 else ""
        if matrix.ndim == 1 and name == "image_features":
            hint += (
                ". Methods learn from two matrices, fit(sketch_features, image_features, "
                "sketch_labels, image_labels); what gives one matrix and labels, as searches and "
                "pipelines of scikit-learn do, takes cppcl.PairedMethod(method)"
            )
        raise InputError(
            f"{name} must be a non-empty matrix with one sample a row, got shape "
            f"{matrix.shape}{hint}"
        )
    if matrix.dtype.kind not in "biuf":
        hint = {
            "c": "; give their parts, or moduli, as columns",
            "O": "; convert them, for example by astype(numpy.float32)",
        }.get(matrix.dtype.kind, "")
        raise InputError(f"{name} must be real numbers, got {matrix.dtype}{hint}")
    single = np.can_cast(matrix.dtype, np.float32)
    matrix = np.ascontiguousarray(matrix, dtype=np.float32 if single else np.float64)
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        column = int(np.flatnonzero(~np.isfinite(matrix[row]))[0])
        raise InputError(
            f"{name}: {int((~finite).sum())} of {len(matrix)} rows hold NaN or infinite values "
            f"(first: {matrix[row, column]} in row {row}, column {column}); drop those samples"
        )
    return matrix


def as_array(features: Any, name: str) -> NDArray[Any]:
    """Read what a user gave as an array of any shape and type.

    Raises
    ------
    InputError
        For masked values, a sparse matrix, rows of different lengths, and tensors that numpy
        cannot read.
    """
    if isinstance(features, np.ma.MaskedArray) and np.ma.is_masked(features):
        row = int(np.argwhere(np.ma.getmaskarray(features))[0][0])
        raise InputError(
            f"{name} holds masked values (first: row {row}); fill them, or drop those samples"
        )
    if hasattr(features, "toarray"):
        raise InputError(f"{name} is a sparse {type(features).__name__}; give {name}.toarray()")
    try:
        return np.asarray(features)
    except (OverflowError, ValueError) as error:  # rows of different lengths, integers too long
        raise InputError(f"{name} is no matrix: {error}") from error
    except (RuntimeError, TypeError) as error:  # tensors with a gradient, on a GPU, of bfloat16
        raise InputError(
            f"{name}: a {type(features).__name__} that numpy cannot read ({error}); for a torch "
            "tensor, give its .detach().float().cpu().numpy()"
        ) from error


def check_labels(labels: Any, n: int | None, name: str) -> list[Hashable]:
    """Validate the labels of n samples and return them as plain Python objects.

    Parameters
    ----------
    labels : sequence of n hashables
        Of any types, also several; equal ones mean the same. Arrays must be one-dimensional.
    n : int or None
        Number of samples; None where any will do.
    name : str
        What errors call it.

    Raises
    ------
    InputError
        If it is no such list, or a label is masked, None, NaN or not hashable: those stand for a
        label that is not known, and would link samples that have nothing in common, or none.
    """
    if isinstance(labels, np.ma.MaskedArray) and np.ma.is_masked(labels):
        row = int(np.flatnonzero(np.ma.getmaskarray(labels))[0])
        raise InputError(f"{name}: label of row {row} is masked; {_ONE_EACH}")
    many = "labels" if n is None else f"{n} labels"
    shape = getattr(labels, "shape", None)
    if shape is not None and len(shape) != 1:
        raise InputError(
            f"{name} must be one label a sample, {many} in all, got shape {tuple(shape)}"
        )
    if isinstance(labels, str | bytes | Mapping | Set) or not isinstance(labels, Iterable):
        raise InputError(f"{name} must be a list of {many}, got {reprlib.repr(labels)}")
    given = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if n is not None and len(given) != n:
        raise InputError(f"{name} has {len(given)} entries for {n} rows")
    plain = [_plain_label(label) for label in given]
    for row, label in enumerate(plain):
        if label is None or not _equals_itself(label):
            raise InputError(
                f"{name}: label {reprlib.repr(label)} of row {row} says nothing; {_ONE_EACH}"
            )
    return plain


def _plain_label(label: Any) -> Any:
    """Return a tensor of one number as the number: tensors equal nothing but themselves."""
    one = getattr(label, "ndim", None) == 0 and not isinstance(label, np.generic)
    return label.item() if one and not isinstance(label, np.ma.MaskedArray) else label


def _equals_itself(label: Any) -> bool:
    """True unless a label is a NaN, a missing value of pandas, or cannot be looked up."""
    try:
        hash(label)
        return bool(label == label)
    except (TypeError, ValueError):
        return False


_ONE_EACH = (
    "give every sample a number or a string, one of its own if it has no partner, or drop it"
)


def check_links(links: Any, n_sketches: int, n_images: int) -> Any:
    """Validate an affinity (K, L), dense or sparse, and return it as a CSR array of float64.

    Raises
    ------
    InputError
        For another shape, or a weight that is not a real number, negative or not finite.
    """
    from scipy import sparse

    matrix = links if sparse.issparse(links) else as_array(links, "links")
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"links must be real numbers, got {matrix.dtype}")
    if tuple(matrix.shape) != (n_sketches, n_images):
        raise InputError(
            f"links has shape {tuple(matrix.shape)}, but there are {n_sketches} sketches and "
            f"{n_images} images"
        )
    weights = sparse.csr_array(matrix, dtype=np.float64).tocoo()
    wrong = np.flatnonzero(~(np.isfinite(weights.data) & (weights.data >= 0)))
    if len(wrong):
        row, column = (int(axis[wrong[0]]) for axis in weights.coords)
        raise InputError(
            f"links[{row}, {column}]={weights.data[wrong[0]]} must be finite and not negative"
        )
    return weights.tocsr()


def check_rows(rows: Any, n: int, name: str) -> NDArray[np.int64]:
    """Distinct row numbers below n, (r,) int64."""
    listed = as_array(rows, name)
    if listed.size == 0:
        return np.zeros(0, dtype=np.int64)
    whole = listed.ndim == 1 and listed.dtype.kind in "iu"
    if not whole or listed.min() < 0 or listed.max() >= n or len(np.unique(listed)) < len(listed):
        raise InputError(
            f"{name} must be distinct row numbers from 0 to {n - 1}, got {reprlib.repr(rows)}"
        )
    return listed.astype(np.int64)


def check_number(
    name: str,
    value: Number,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    whole: bool = False,
    why: str = "",
) -> Number:
    """Return an option that is a number in its range, as it was given.

    Parameters
    ----------
    name : str
        Name of the option.
    value : int or float
        Its value; neither text nor true and false.
    least, above : float, optional
        Least value, or a bound below all values.
    most : float, optional
        Largest value.
    whole : bool
        Whether it counts something. What does not is at most `LARGEST`, and at least
        `LEAST_POSITIVE` where it is above zero.
    why : str
        What else the error says.
    """
    kind = Integral if whole else Real
    number = isinstance(value, kind) and not isinstance(value, bool | np.bool_)
    # Whole numbers of any size are finite, which numpy says of 64 bits only.
    inside = number and (isinstance(value, Integral) or bool(np.isfinite(value)))
    if least is not None:
        inside = inside and value >= least
    if above is not None:
        inside = inside and value > above
    bound = f"of at least {least}" if least is not None else f"above {above}"
    if most is None and not whole:
        most = LARGEST
    if inside and most is not None and value > most:
        inside, bound = False, f"of at most {most:g}"
    if inside and not whole and above == 0 and value < LEAST_POSITIVE:
        inside, bound = False, f"of at least {LEAST_POSITIVE:g}"
    if not inside:
        noun = "a whole number" if whole else "a number"
        raise InputError(f"{name}={reprlib.repr(value)} must be {noun} {bound}{why}")
    return value


def check_number_or_auto(name: str, value: Number | Auto, **limits: Any) -> None:
    """Refuse what is neither 'auto' nor a number that `check_number` takes."""
    if not (isinstance(value, str) and value == "auto"):
        check_number(name, value, why=", or 'auto'", **limits)


def check_flag(name: str, value: bool) -> bool:
    """Return an option that is true or false, as it was given."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name}={value!r} must be True or False")
    return value


def check_choice(name: str, value: Option, choices: Any) -> Option:
    """Return an option that is one of some values, or of those of a `Literal` type."""
    known = get_args(choices) or tuple(choices)
    if not any(isinstance(value, type(choice)) and value == choice for choice in known):
        raise InputError(
            f"{name}={reprlib.repr(value)} is not one of {known}{did_you_mean(str(value), known)}"
        )
    return value


def counted(number: int, noun: str) -> str:
    """A number and what is counted: 1 file, 2 sketches."""
    plural = f"{noun}es" if noun.endswith(("s", "ch")) else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def suggestion(name: str, known: Iterable[str]) -> str:
    """End of an error about an unknown name: the nearest known one, or all of them."""
    known = list(known)
    return did_you_mean(name, known) or (f"; there is {', '.join(known)}" if known else "")


def check_columns(columns: Sequence[str] | None, where: str) -> list[str]:
    """Columns of a table's head; refuse one that is there twice, of which one would be lost.

    Raises
    ------
    InputError
        The message names the columns, and begins with where the head stands.
    """
    head = list(columns or ())
    doubled = sorted({name for name in head if head.count(name) > 1})
    if doubled:
        raise InputError(f"{where}: the head has the columns {', '.join(doubled)} twice")
    return head


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """End of an error about an unknown name: the nearest known one, or nothing."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
