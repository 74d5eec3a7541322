"""The forms that the paper prints, where ours differs from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from cppcl.errors import InputError
from cppcl.validation import did_you_mean

Printed = Literal[
    "sign",
    "group_size",
    "pair_weight",
    "l1",
    "shadow_loss",
    "coupling",
    "unscaled_graph",
    "dense_graph",
    "dual",
]
"""Names of the forms; `cppcl.learning.cprl.CPRL` says what each one is."""


def read_printed(names: Any) -> tuple[Printed, ...]:
    """Check the names of printed forms.

    Raises
    ------
    InputError
        For a name that is unknown or given twice.
    """
    known = get_args(Printed)
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InputError(f"printed={names!r} must be a list of names among {', '.join(known)}")
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise InputError(
                f"printed: {name!r} is not one of {', '.join(known)}"
                f"{did_you_mean(str(name), known)}"
            )
    if len(set(names)) < len(names):
        raise InputError(f"printed={names!r} holds a name twice; give each once")
    return tuple(names)
