"""Checks of the options that extractors take."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any

from cppcl.errors import InputError


def nearest_names(name: str, known: Iterable[str]) -> str:
    """Words for an error message: the known names most like a wrong one, or all of them.

    Examples
    --------
    >>> nearest_names("pixel", ["pixels", "hog"])
    "did you mean 'pixels'?"
    >>> nearest_names("zzz", ["pixels", "hog"])
    'known are: hog, pixels'
    """
    names = sorted(known)
    close = get_close_matches(str(name), names, n=3)
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    return f"known are: {', '.join(names) or 'none'}"


def check_choice(option: str, value: Any, choices: Collection[str]) -> None:
    """Raise `InputError` unless `value` is one of `choices`."""
    if value not in choices:
        raise InputError(f"option {option}={value!r}: {nearest_names(value, choices)}")


def check_flag(option: str, value: Any) -> None:
    """Raise `InputError` unless `value` is a bool."""
    if not isinstance(value, bool):
        raise InputError(f"option {option}={value!r} must be true or false")


def check_integer(option: str, value: Any, minimum: int) -> None:
    """Raise `InputError` unless `value` is an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise InputError(f"option {option}={value!r} must be an integer of at least {minimum}")


def integers(option: str, value: Any, names: tuple[str, ...], minimum: int) -> tuple[int, ...]:
    """Return a list or tuple of integers as a tuple, one for each of `names`.

    Raises
    ------
    InputError
        `value` is anything else, or an entry is smaller than `minimum`.
    """
    if (
        not isinstance(value, list | tuple)
        or len(value) != len(names)
        or not all(isinstance(item, int) and not isinstance(item, bool) for item in value)
        or min(value) < minimum
    ):
        raise InputError(
            f"option {option}={value!r} must be {len(names)} integers ({', '.join(names)}), "
            f"each at least {minimum}"
        )
    return tuple(value)
