"""Features, methods and data sets of one's own, without a clone: modules that register them.

A plugin is a Python module that calls `register_features`, `register_method` or
`register_data_set`. It is found as an entry point of the group ``cppcl.plugins`` of an installed
package, by ``cppcl --plugin NAME``, or by the environment variable ``CPPCL_PLUGINS``: names of
modules or paths of ``.py`` files, parted as those of ``PATH``.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from cppcl.errors import InputError

GROUP = "cppcl.plugins"
VARIABLE = "CPPCL_PLUGINS"
SUFFIX = ".py"

NEEDED = {
    "feature extractor": ("name", "version", "device", "dimension", "parameters", "transform"),
    "method": ("version", "fit", "encode_sketches", "encode_images", "to_arrays", "from_arrays"),
    "data set": ("name", "version", "has_pictures", "licence", "fetch", "table", "findings"),
}
"""What a class must have to be registered, beside a constructor of options."""
BASES = {
    "feature extractor": "cppcl.features.stateless.StatelessExtractor",
    "method": "cppcl.baselines.base.LinearBaseline",
    "data set": "cppcl.datasets.base.DataSet",
}

_loaded: set[str] = set()
_closed_by: list[str] = []


def register_features(*extractors: type) -> None:
    """Add classes with the interface of `cppcl.features.base.Extractor`, by their ``name``.

    Raises
    ------
    InputError
        A class lacks something, or its name is taken.
    """
    from cppcl.features import EXTRACTORS

    for extractor in extractors:
        _register(EXTRACTORS, getattr(extractor, "name", None), extractor, "feature extractor")


def register_method(name: str, method: type) -> None:
    """Add a class with the interface of `cppcl.methods.Method` under a name.

    Raises
    ------
    InputError
        The class lacks something, or the name is taken.
    """
    from cppcl.methods import METHODS

    _register(METHODS, name, method, "method")


def register_data_set(*data_sets: type) -> None:
    """Add classes with the interface of `cppcl.datasets.base.DataSet`, by their ``name``.

    Raises
    ------
    InputError
        A class lacks something, or its name is taken.
    """
    from cppcl.datasets import DATASETS

    for data_set in data_sets:
        _register(DATASETS, getattr(data_set, "name", None), data_set, "data set")


def load_plugins() -> None:
    """Import the plugins that are installed or named, each once.

    Raises
    ------
    InputError
        One of them cannot be imported, or registers what cannot be; it is named.
    """
    for point in entry_points(group=GROUP):
        owner = f"{point.name!r} of {point.dist.name}" if point.dist else repr(point.name)
        _load(f"entry point {point.value}", f"{owner} ({point.value})", point.load)
    for name in named_plugins():
        _load(name, repr(name), lambda name=name: _import(name))


def close_registries(who: str) -> None:
    """Let nothing be registered from now on: `who` has read what there is."""
    _closed_by[:] = [who]


def named_plugins() -> tuple[str, ...]:
    """Names in ``$CPPCL_PLUGINS``, in their order."""
    given = os.environ.get(VARIABLE, "").split(os.pathsep)
    return tuple(dict.fromkeys(name for name in given if name))


def name_plugins(names: Sequence[str]) -> None:
    """Add names to ``$CPPCL_PLUGINS``, which child processes inherit.

    Parameters
    ----------
    names : sequence of str
        Modules that can be imported, or files: ``my_module`` is ``my_module.py`` of the current
        folder where that is there.

    Raises
    ------
    InputError
        There is no such module and no such file.
    """
    found = [*named_plugins(), *map(_place_of, names)]
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys(found))


def _place_of(name: str) -> str:
    """A module's name, or the absolute path of its file."""
    file = Path(name if name.endswith(SUFFIX) else name.replace(".", "/") + SUFFIX)
    if file.is_file():
        return str(file.absolute())
    if not name.endswith(SUFFIX):
        try:
            if importlib.util.find_spec(name) is not None:
                return name
        except (ImportError, ValueError):
            pass
    raise InputError(
        f"plugin {name!r} is neither a module that can be imported nor a file; give the path of "
        "a .py file, or install the package that has it"
    )


def _import(name: str) -> None:
    if not name.endswith(SUFFIX):
        importlib.import_module(name)
        return
    file = Path(name)
    if not file.is_file():
        raise InputError("there is no such file on this machine")
    known = sys.modules.get(file.stem)
    if known is not None:
        if Path(getattr(known, "__file__", None) or "").absolute() == file:
            return
        raise InputError(f"another module is called {file.stem!r}; give the file another name")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[file.stem]
        raise


def _load(key: str, shown: str, load: Any) -> None:
    if key in _loaded:
        return
    _loaded.add(key)  # before, as it may ask for what is registered itself
    try:
        load()
    except Exception as error:
        _loaded.discard(key)
        if isinstance(error, InputError):
            raise InputError(f"plugin {shown}: {error}") from error
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise InputError(
            f"plugin {shown} cannot be loaded ({Path(last.filename).name}, line {last.lineno}): "
            f"{type(error).__name__}: {error}"
        ) from error


def _register(registry: dict[str, Any], name: Any, kind: Any, what: str) -> None:
    if not isinstance(kind, type):
        raise InputError(f"{kind!r:.200} is no class, so it cannot be a {what}")
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(
            f"the {what} {kind.__name__} has the name {name!r:.100}; give it one of letters, "
            "digits and '_'"
        )
    known = registry.get(name)
    if known is kind:
        return
    if known is not None and (known.__module__, known.__qualname__) != (
        kind.__module__,
        kind.__qualname__,
    ):
        raise InputError(
            f"there is a {what} {name!r} already, {known.__module__}.{known.__qualname__}; choose "
            "another name"
        )
    if _closed_by:
        raise InputError(
            f"{what} {name!r} is registered after {_closed_by[0]} has read what there is; name "
            f"its module by --plugin or ${VARIABLE}, or register it first, in a new process"
        )
    lacking = [attribute for attribute in NEEDED[what] if not hasattr(kind, attribute)]
    if lacking:
        raise InputError(
            f"the {what} {kind.__name__} has no {', '.join(lacking)}; see {BASES[what]}"
        )
    for option in inspect.signature(kind).parameters.values():
        if option.kind is not option.KEYWORD_ONLY or option.annotation is option.empty:
            raise InputError(
                f"option {option.name!r} of the {what} {kind.__name__} must be keyword only and "
                f"have a type, as in a class that is a dataclass(kw_only=True)"
            )
    registry[name] = kind
