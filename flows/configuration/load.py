"""Read an experiment, or an extractor, with overrides and errors a person can act on."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from cppcl.errors import InputError
from cppcl.features import make_extractor
from cppcl.validation import did_you_mean
from flows.configuration.experiment import Experiment
from flows.configuration.extractors import read_extractor
from flows.configuration.options import Options, RegisteredOptions
from flows.configuration.splits import SPLIT_RULES, FileSplit
from flows.configuration.yaml_text import SHORT, read_yaml

Read = TypeVar("Read", bound=Options)

YAML_SUFFIXES = (".yaml", ".yml")
"""Endings of files that experiments and reproductions are read from."""

SHOWN_ERRORS = 20
"""Wrong options that are told at once."""

NAMED = {"missing", "value_error"}
"""Kinds of errors whose message leaves no value to be shown."""

WANTED = {
    "model_type": "Input should be a group of options, each with its value",
    "tuple_type": "Input should be a list, such as [A, B]",
}
"""What is wanted, by kind of error, where the words of pydantic are those of Python."""

OF_ONE_FOLDER = ("folder", "pairs")
"""Packaged experiments on pictures of the user's own."""

CHOOSING = {"name", "sketch", "image"}
"""Last parts of the paths of options that choose an extractor."""


def expanded(data: Any) -> Any:
    """Write keys that are paths as nested mappings: ``pacing.eta: 2.0`` changes that alone.

    Beside a merge key (``<<``) it changes one option of what is merged.
    """
    if isinstance(data, list):
        return [expanded(item) for item in data]
    if not isinstance(data, dict):
        return data
    paths = {key: key.partition(".") for key in data if isinstance(key, str) and "." in key}
    paths = {key: parts for key, parts in paths.items() if parts[0] and parts[2]}
    # Whole groups first, so that it does not matter which of the two stands before the other.
    result = {key: expanded(item) for key, item in data.items() if key not in paths}
    for key, (first, _, rest) in paths.items():
        group = result.get(first)
        if not isinstance(group, dict | None):
            raise InputError(f"{key}: {first} is {group!r}, which holds no options; leave one out")
        result[first] = expanded({**(group or {}), rest: data[key]})
    return result


def packaged_experiments() -> dict[str, str]:
    """YAML text of every experiment that comes with the package, by name."""
    folder = resources.files("flows") / "experiments"
    return {
        item.name.removesuffix(".yaml"): item.read_text(encoding="utf-8")
        for item in sorted(folder.iterdir(), key=lambda item: item.name)
        if item.name.endswith(".yaml")
    }


def load_experiment(source: str, overrides: Sequence[str] = ()) -> Experiment:
    """Experiment named by a packaged name or a YAML file, with ``key=value`` overrides.

    Parameters
    ----------
    source : str
        ``emoji``, ... or the path of a YAML file. Paths inside a file are relative to it.
    overrides : sequence of str
        ``key=value``. A key is a dotted path or any ending of one (``alpha``, ``cprl.alpha``):
        every option of the configuration that ends so is set. What extracts from a modality and
        what scores it are never chosen by one override: ``features.sketch.name`` says which.

    Raises
    ------
    InputError
        If the experiment, an option or a value does not exist; the message names it.
    """
    packaged = packaged_experiments()
    path = Path(source)
    if path.suffix in YAML_SUFFIXES:
        if not path.is_file():
            raise InputError(f"experiment file {source!r} does not exist")
        text, folder = _read(path), path.parent
    elif source in packaged:
        text, folder = packaged[source], None
    else:
        raise InputError(
            f"experiment {source!r} is neither one of {', '.join(packaged)} nor a .yaml file"
            + did_you_mean(source, packaged)
        )
    try:
        data = expanded(read_yaml(text, source))
    except RecursionError as error:
        raise InputError(f"{source} is not valid YAML: {error}") from error
    if not isinstance(data, dict):
        raise InputError(f"{source} must hold a mapping of options, not {type(data).__name__}")
    experiment = _validate(source, data)
    if folder is not None:
        data = _absolute_paths(data, experiment, folder)
    for override in overrides:
        if _apply(data, experiment, override):
            experiment = _validate(source, data)
    if is_named_by_folder(source, overrides):
        name = folder_name(_validate(source, data).dataset.root)
        data["name"] = f"{source}-{name}" if name in packaged else name or source
    return _validate(source, data) if overrides or folder is not None else experiment


def is_named_by_folder(source: str, overrides: Sequence[str]) -> bool:
    """True if a packaged experiment is run on a folder of the user's, and given no name.

    It has the name of the folder: two folders have two names, and a search asks the one that was
    meant.
    """
    keys = [override.partition("=")[0].strip() for override in overrides]
    return (
        source in OF_ONE_FOLDER and "name" not in keys and bool({"root", "dataset.root"} & {*keys})
    )


def folder_name(folder: Path) -> str:
    """Name of a folder as that of an experiment; empty where nothing of it can be kept."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", folder.absolute().name).strip("-_")[:60]


def load_extractor(name: str, overrides: Sequence[str] = ()) -> RegisteredOptions:
    """Options of an extractor of a name, or of a combination, with ``key=value`` overrides.

    Raises
    ------
    InputError
        If the extractor, an option or a value does not exist; the message names it.
    """
    make_extractor(name)
    label, data = f"feature extractor {name!r}", {"name": name}
    options = _checked(label, data, read_extractor)
    for override in overrides:
        _apply(data, options, override, "the extractor")
    return _checked(label, data, read_extractor) if overrides else options


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error}); save it as UTF-8") from error
    except PermissionError as error:
        raise InputError(f"{path}: not allowed to read it; change its permissions") from error


def _validate(source: str, data: dict[str, Any]) -> Experiment:
    return _checked(f"experiment {source!r}", data, Experiment.model_validate)


def _checked(label: str, data: dict[str, Any], read: Callable[[Any], Read]) -> Read:
    try:
        return read(data)
    except ValidationError as error:
        lines = []
        for item in one_a_value(error.errors(include_url=False)):
            place = ".".join(str(part) for part in item["loc"])
            message = WANTED.get(item["type"]) or item["msg"].removeprefix("Value error, ")
            if item["type"] not in NAMED:  # else a class refuses a value and names it itself
                message += f" (got {SHORT.repr(item['input'])})"
            # An unknown option is named by a message that goes on with its path.
            line = place + message if message.startswith(".") else f"{place}: {message}"
            lines.append(f"  {line.removeprefix('.')}")
        raise InputError(f"{label} is not valid:\n{some(lines)}") from error


def some(lines: Sequence[str]) -> str:
    """Lines of errors as a text, the first of many."""
    more = len(lines) - SHOWN_ERRORS
    return "\n".join([*lines[:SHOWN_ERRORS], *([f"  and {more} more"] if more > 0 else [])])


def one_a_value(errors: Sequence[Any]) -> Iterator[Any]:
    """Errors with one each for a value that may also be a word: the word is named in it."""

    def is_word(item: Any) -> bool:
        return bool(item["loc"]) and str(item["loc"][-1]).startswith("literal[")

    words = {item["loc"][:-1]: item["ctx"]["expected"] for item in errors if is_word(item)}
    for item in errors:
        place = item["loc"][:-1]
        if place not in words:
            yield item
        elif not is_word(item):
            yield {**item, "loc": place, "msg": f"{item['msg']}, or {words[place]}"}


def _absolute_paths(data: dict[str, Any], experiment: Experiment, folder: Path) -> dict[str, Any]:
    """Make relative paths of data set, answers and split files relative to the YAML's folder."""
    options = _absolute_places(data["dataset"], experiment.dataset, folder)
    protocols = dict(data["protocols"])
    for name, protocol in experiment.protocols.items():
        split, places = protocol.split, {}
        if isinstance(split, FileSplit) and split.path.endswith(".json"):
            places["path"] = str((folder / split.path).absolute())
        if split.audit:
            places["audit"] = str((folder / split.audit).absolute())
        if places:
            own = {**protocols[name]["split"], **places}
            protocols[name] = {**protocols[name], "split": own}
    data = {**data, "dataset": options, "protocols": protocols}
    if experiment.curriculum:
        files = experiment.curriculum.answers().items()
        answers = {
            f"{modality}_answers": str((folder / path).absolute()) for modality, path in files
        }
        data["curriculum"] = {**data["curriculum"], **answers}
    return data


def _absolute_places(
    given: dict[str, Any], data_set: RegisteredOptions, folder: Path
) -> dict[str, Any]:
    """Make relative paths of a data set, or of both, relative to a folder."""
    options = dict(given)
    for name in options:
        value = getattr(data_set, name)
        if isinstance(value, RegisteredOptions):
            options[name] = _absolute_places(options[name], value, folder)
        elif isinstance(value, Path) and not value.is_absolute():
            options[name] = str((folder / value).absolute())
    return options


def option_paths(options: Options) -> Iterator[tuple[str, ...]]:
    """Path of every option and group of options, as tuples of names."""

    def walk(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if path:
            yield path
        if isinstance(value, dict):
            for key, item in value.items():
                yield from walk(item, (*path, key))

    yield from walk(options.model_dump(mode="json"), ())


def _apply(
    data: dict[str, Any], options: Options, override: str, owner: str = "the experiment"
) -> bool:
    """Change an option; returns True if others can be set from then on."""
    key, separator, text = override.partition("=")
    wanted = tuple(key.strip().split("."))
    if not separator or not all(wanted):
        raise InputError(f"--set {override!r} must read key=value")
    paths = list(option_paths(options))
    matches = [wanted] if wanted in paths else [p for p in paths if p[-len(wanted) :] == wanted]
    if not matches:
        endings = {".".join(path[-n:]) for path in paths for n in range(1, len(path) + 1)}
        near = difflib.get_close_matches(key, sorted(endings), n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise InputError(f"--set {key}: {owner} has no such option{hint}")
    _refuse_two_roles(key, matches)
    changed = False
    for path in matches:
        part = data
        for name in path[:-1]:
            # A copy: what an alias of YAML repeats elsewhere stays as it is there.
            found = part.get(name)
            part[name] = dict(found) if isinstance(found, dict) else {}
            part = part[name]
        part[path[-1]] = _value(override, text.strip(), _takes_text(options, path))
        if path[-2:] == ("split", "rule") and part["rule"] in SPLIT_RULES:
            # Another rule has other options: those of the old one that it lacks are left out.
            known = SPLIT_RULES[part["rule"]].model_fields
            for name in [name for name in part if name not in known]:
                del part[name]
            changed = True
    return changed


def _refuse_two_roles(key: str, matches: Sequence[tuple[str, ...]]) -> None:
    """Refuse to choose one extractor as the feature and as the score of a modality.

    A score is one value a picture, so that hardly any extractor is meant as both, and the run
    would say so only after extraction.
    """
    chosen = [path for path in matches if path[-1] in CHOOSING]
    if len({path[0] == "curriculum" for path in chosen}) == 2:
        names = [".".join(path) for path in chosen]
        raise InputError(
            f"--set {key}: it could mean {', '.join(names[:-1])} or {names[-1]}; features "
            "describe pictures, a curriculum scores them; write the one that you mean in full"
        )


def _value(override: str, text: str, is_text: bool) -> Any:
    """Value of an override: as typed for names and paths ('#' included), else YAML."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"--set {override!r}: the value is not valid Unicode") from error
    if is_text and text not in {"", "~", "null"} and text[0] not in "\"'":
        return text
    return read_yaml(text, f"--set {SHORT.repr(override)}: the value")


def _takes_text(options: Options, path: tuple[str, ...]) -> bool:
    """True if an option is a name or a path, never a number."""
    owner: Any = options
    for name in path[:-1]:
        owner = owner[name] if isinstance(owner, dict) else getattr(owner, name)
    if not isinstance(owner, BaseModel):
        return False
    annotation = type(owner).model_fields[path[-1]].annotation
    either = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else ()
    return bool({str, Path} & {annotation, *either})
