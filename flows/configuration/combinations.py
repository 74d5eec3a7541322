"""Values of options, combined and checked before any of them is run."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cppcl.errors import InputError
from cppcl.report.sweep import Axis, value_text
from flows.configuration.experiment import Experiment
from flows.configuration.load import load_experiment, option_paths
from flows.configuration.yaml_text import read_yaml

MOST_OPTIONS = 2
"""Options that a plot can show: one along x, one by panels."""


@dataclass(frozen=True)
class Combination:
    """One value of each option, and the experiment that they make.

    Attributes
    ----------
    values : dict
        Value by option, as the experiment reads it.
    overrides : tuple of str
        ``key=value`` changes that make the experiment.
    experiment : Experiment
        With these changes.
    """

    values: dict[str, Any]
    overrides: tuple[str, ...]
    experiment: Experiment

    def __str__(self) -> str:
        return in_words(self.values)


@dataclass(frozen=True)
class Sweep:
    """What is to be run and shown.

    Attributes
    ----------
    experiment : str
        Name of the experiment.
    name : str
        Name under which every combination is run and recorded: neither `cppcl search` nor
        `cppcl report` of the experiment itself should find the last combination instead.
    axes : tuple of Axis
        Options and their values.
    score : str
        What is shown of every method.
    combinations : tuple of Combination
        The last option fastest.
    """

    experiment: str
    name: str
    axes: tuple[Axis, ...]
    score: str
    combinations: tuple[Combination, ...]


def read_sweep(
    source: str, options: Sequence[str], overrides: Sequence[str] = (), score: str = "rank_1"
) -> Sweep:
    """Read the values of one or two options, and check every combination of them.

    Parameters
    ----------
    source : str
        Packaged name or YAML file of the experiment.
    options : sequence of str
        ``OPTION=VALUES``; OPTION is a key as `flows.configuration.load.load_experiment` takes it,
        VALUES a YAML list.
    overrides : sequence of str
        ``key=value`` changes to every combination.
    score : str
        ``map``, or ``rank_k`` with k among ``evaluation.ranks``.

    Raises
    ------
    InputError
        If an option, a value, a combination or the score cannot be; the message names it.
    """
    base = load_experiment(source, overrides)
    given = dict(map(read_values, options))
    if len(given) < len(options):
        raise InputError(
            f"sweep {' '.join(options)}: an option is given twice; put its values into one list"
        )
    if not 1 <= len(given) <= MOST_OPTIONS:
        raise InputError(
            f"sweep over {len(given)} options ({', '.join(given)}): a plot shows 1 or "
            f"{MOST_OPTIONS}; fix the others with --set OPTION=VALUE"
        )
    slug = re.sub(r"[^A-Za-z0-9_]+", "-", "-".join(given)).strip("-")
    name = f"{base.name[:40]}-sweep-{slug}"[:80]
    found: list[Combination] = []
    products = [
        dict(zip(given, values, strict=True)) for values in itertools.product(*given.values())
    ]
    for named in products:
        changes = (*overrides, *itertools.starmap(override, named.items()), f"name={name}")
        try:
            experiment = load_experiment(source, changes)
        except InputError as error:
            reason = str(error).removeprefix("--set ")
            raise InputError(f"sweep {in_words(named)}: {reason}") from error
        check_score(score, experiment)
        chosen = {option: value_for(experiment, option, value) for option, value in named.items()}
        for other, before in zip(products, found, strict=False):
            if before.experiment == experiment:
                raise InputError(
                    f"sweep {in_words(named)}: the same experiment as {in_words(other)}; leave "
                    "one out"
                )
        found.append(Combination(chosen, changes, experiment))
    axes = tuple(Axis(option, distinct([c.values[option] for c in found])) for option in given)
    return Sweep(base.name, name, axes, score, tuple(found))


def read_values(text: str) -> tuple[str, list[Any]]:
    """Option and values of ``OPTION=VALUES``."""
    option, separator, listed = text.partition("=")
    option = option.strip()
    if not separator or not option:
        raise InputError(
            f"sweep {text!r} must read OPTION=VALUES, such as n_atoms='[25, 50, 100]'"
        )
    try:
        values = read_yaml(listed, "the text")
        json.dumps(values, allow_nan=False)
    except (InputError, RecursionError, TypeError, ValueError) as error:
        raise InputError(
            f"sweep {text!r}: the values are not plain YAML ({error}); give a list in quotes, "
            f"such as {option}='[25, 50, 100]'"
        ) from error
    if not isinstance(values, list) or not values:
        raise InputError(
            f"sweep {text!r}: the values must be a list of at least one, such as "
            f"{option}='[25, 50, 100]'"
        )
    return option, values


def override(option: str, value: Any) -> str:
    """The change that sets an option to a value; JSON is YAML, and quotes keep texts texts."""
    return f"{option}={json.dumps(value, ensure_ascii=False)}"


def value_for(experiment: Experiment, option: str, value: Any) -> Any:
    """Value of an option as the experiment reads it: 0.001 for a YAML text such as 1e-3.

    Lists and groups of options stay as they were given.
    """
    wanted = tuple(option.split("."))
    # An exact path, which alone is set then, is the shortest that ends so.
    path = min((p for p in option_paths(experiment) if p[-len(wanted) :] == wanted), key=len)
    found: Any = experiment.model_dump(mode="json")
    for name in path:
        found = found[name]
    return value if isinstance(found, dict | list) else found


def check_score(score: str, experiment: Experiment) -> None:
    """Refuse a score that the evaluation will not have."""
    known = [*(f"rank_{k}" for k in experiment.evaluation.ranks), "map"]
    if score not in known:
        raise InputError(
            f"--score {score} is not one of {', '.join(known)}; other ranks are set with "
            "--set 'ranks=[1, 5, 10]'"
        )


def in_words(values: Mapping[str, Any]) -> str:
    """Options with their values, as a person would set them."""
    return ", ".join(f"{option}={value_text(value)}" for option, value in values.items())


def distinct(values: Sequence[Any]) -> tuple[Any, ...]:
    """Each value once, in order of appearance."""
    return tuple(v for number, v in enumerate(values) if v not in values[:number])
