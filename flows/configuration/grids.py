"""Grids of option values, as an experiment names them for a method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from cppcl.learning.estimator import flattened, merged
from cppcl.methods import constructed
from cppcl.selection.grid_search import combinations
from cppcl.validation import suggestion

Grid = dict[str, Any]
"""Values to try, by option; those of a group of options are a grid of their own."""


def grid_reader(owner: str, hints: Mapping[str, Any]) -> Callable[[Any], Grid | None]:
    """Validator of a grid over the options of a class, whose types are given.

    A single value stands for a list of one, so that ``--set alpha=0.1`` also settles a grid.

    Parameters
    ----------
    owner : str
        Registered name of the class, for errors.
    hints : dict
        Type of each option by path, such as ``pacing.eta``.
    """

    def read(given: Any) -> Grid | None:
        if given is None:
            return None
        if not isinstance(given, Mapping) or not given:
            raise ValueError(f"{given!r} must name options with the values to try of each")
        named = flattened({str(name): values for name, values in given.items()})
        return merged({}, {name: values_of(name, values) for name, values in named.items()})

    def values_of(name: str, values: Any) -> tuple[Any, ...]:
        if name not in hints:
            raise ValueError(f"{owner} has no option {name!r}{unknown_option(name, hints)}")
        listed = values if isinstance(values, list | tuple) else [values]
        kinds = set(get_args(hints[name])) or {hints[name]}
        for value in listed:
            if isinstance(value, bool) and kinds & {int, float} and bool not in kinds:
                raise ValueError(f"{name}={value} must be a number")
        try:
            read = tuple(TypeAdapter(hints[name]).validate_python(value) for value in listed)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ValueError(f"{name}: {first['msg']} (got {first['input']!r})") from error
        combinations({name: read})  # refuses an empty list, and a value given twice
        return read

    return read


def unknown_option(name: str, known: Mapping[str, Any]) -> str:
    """End of an error about an unknown option: its path if that ends so, or the nearest."""
    if group := [path for path in known if path.startswith(f"{name}.")]:
        return f", but a group of options: {', '.join(group)}"
    ending = [path for path in known if path.rpartition(".")[2] == name.rpartition(".")[2]]
    return f"; did you mean {ending[0]!r}?" if ending else suggestion(name, known)


def check_grid(registered: type, options: dict[str, Any], grid: Grid | None) -> None:
    """Construct every combination, so that a wrong one is refused before any runs."""
    for chosen in combinations(grid or {}):
        constructed(registered, **merged(options, chosen))
