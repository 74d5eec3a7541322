"""Code of others on workers: what it raises comes back as an error of ours."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from cppcl.errors import CppclError
from storage import StoreError

Returned = TypeVar("Returned")


class WrongResultError(CppclError):
    """What an extractor returned is not what its contract promises."""


def call_named(what: str, function: Callable[..., Returned], *arguments: Any) -> Returned:
    """Call code of others, and tell what it raises by mistake by a `CppclError` that says where.

    Its own exception may be of a class that cannot be pickled, or that this worker alone has.
    Errors on purpose, and those of the machine, pass as they are.

    Parameters
    ----------
    what : str
        What is done, such as ``block 3 (a.png, b.png): features 'mine'``.
    function : callable
        Called with the arguments; what it returns is returned.

    Raises
    ------
    CppclError
        Naming it, the exception, and the line that raised it.
    """
    try:
        return function(*arguments)
    except WrongResultError as error:
        message = f"{what}: {error}"
    except (CppclError, StoreError, OSError, MemoryError, ImportError):
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        # Its text by way of a function that survives one whose __str__ fails, too.
        text = "".join(traceback.format_exception_only(error)).strip()
        message = (
            f"{what} failed by an error in the code ({Path(last.filename).name}, line "
            f"{last.lineno}): {text}"
        )
    # Here, where the exception is not the context of the new one: Dask would send it along.
    raise CppclError(message)


def first_names(names: tuple[str, ...], most: int = 3) -> str:
    """Some names, and how many there are more."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
