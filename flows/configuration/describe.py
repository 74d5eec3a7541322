"""Every option of an experiment in words, taken from the models that read it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from cppcl.learning.estimator import flattened
from flows.configuration.experiment import Experiment
from flows.configuration.options import Options, PairOptions

Row = tuple[str, str, str]
"""Name, value and meaning of an option."""


def all_options() -> dict[str, list[Row]]:
    """Default and meaning of every option that an experiment may have, by where it stands.

    Names that the experiment chooses read NAME.
    """
    places: dict[type[Options], dict[str, None]] = {}

    def walk(model: type[Options], place: str) -> None:
        for part in parts_of(model):
            places.setdefault(part, {})[place] = None
        for name, field in model.model_fields.items():
            below = f"{place}.{name}" if place else name
            for nested in nested_models(field.annotation):
                walk(nested, f"{below}.NAME" if get_origin(field.annotation) is dict else below)

    walk(Experiment, "")
    uses = Counter(place for where in places.values() for place in where)
    sections: dict[str, list[Row]] = {}
    for model, where in places.items():
        text = title(model, ", ".join(where))
        if model.owner and any(uses[place] > 1 for place in where):
            text = f"{text} ({model.owner})"
        sections[text] = [
            (name, default_of(field), meaning_of(field))
            for name, field in model.model_fields.items()
        ]
    return sections


def options_of(experiment: Experiment) -> dict[str, list[Row]]:
    """Value and meaning of every option of one experiment, by where it stands."""
    sections: dict[str, list[Row]] = {}

    def walk(options: Options, place: str) -> None:
        rows = sections[title(type(options), place)] = []
        for name, field in type(options).model_fields.items():
            below = f"{place}.{name}" if place else name
            value = getattr(options, name)
            if isinstance(value, Options):
                walk(value, below)
            elif isinstance(value, dict) and value:
                for key, item in value.items():
                    if isinstance(item, Options):
                        walk(item, f"{below}.{key}")
                    else:
                        rows.extend(
                            (f"{name}.{path}", as_text(leaf), meaning_of(field))
                            for path, leaf in flattened({key: item}).items()
                        )
            else:
                rows.append((name, as_text(value), meaning_of(field)))

    walk(experiment, "")
    return {place: rows for place, rows in sections.items() if rows}


def parts_of(model: type[Options]) -> tuple[type[Options], ...]:
    """Models of the options of an extractor; a score has those of pairs as well."""
    return model.__bases__ if issubclass(model, PairOptions) else (model,)


def nested_models(annotation: Any) -> Iterator[type[Options]]:
    """Models that an annotation names, however deep."""
    if isinstance(annotation, type) and issubclass(annotation, Options):
        yield annotation
    else:
        for part in get_args(annotation):
            yield from nested_models(part)


def title(model: type[Options], place: str) -> str:
    """Title of a section: the path of its options, and the model that it is of."""
    name, field = next(iter(model.model_fields.items()))
    if get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1:
        return f"{place} ({name}: {field.default})"
    return place or "experiment"


def default_of(field: FieldInfo) -> str:
    """Value of an option that is not given."""
    if field.is_required():
        return "required"
    return "below" if isinstance(field.default, Options) else as_text(field.default)


def as_text(value: Any) -> str:
    """Value as YAML takes it."""
    if isinstance(value, str | Path):
        return str(value) or '""'
    return json.dumps(value)


def meaning_of(field: FieldInfo) -> str:
    """Description of an option, with the words that it takes."""
    choices = [
        str(choice)
        for part in (field.annotation, *get_args(field.annotation))
        if get_origin(part) is Literal
        for choice in get_args(part)
    ]
    words = f"one of {', '.join(choices)}" if len(choices) > 1 else ""
    return "; ".join(filter(None, [(field.description or "").rstrip("."), words]))
