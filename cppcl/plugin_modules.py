"""Which plugins there are, and how they are imported; `cppcl.plugins` is what they call."""

from __future__ import annotations

import importlib
import importlib.util
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

_loaded: set[str] = set()
_closed_by: list[str] = []


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


def closed_by() -> str | None:
    """Who has read what there is, if anyone."""
    return _closed_by[0] if _closed_by else None


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
    if os.path.isfile(file):  # noqa: PTH113 - a name too long for a file is none
        place = str(file.absolute())
        if os.pathsep in place:
            raise InputError(
                f"plugin {place!r} has {os.pathsep!r} in its path, which parts the names in "
                f"${VARIABLE}; move it to another folder"
            )
        return place
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
    if _is_of_another(file):
        raise InputError(
            f"an installed module is called {file.stem!r}, and what imports it later would get "
            "the plugin instead; give the file another name"
        )
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[file.stem]
        raise


def _is_of_another(file: Path) -> bool:
    """Whether a module of this name that is not the file could be imported."""
    if not file.stem.isidentifier():
        return False
    if file.stem in sys.stdlib_module_names:
        return True
    spec = importlib.util.find_spec(file.stem)
    if spec is None or spec.origin is None:  # none, or a folder of that name
        return False
    return Path(spec.origin).resolve() != file.resolve()


def _load(key: str, shown: str, load: Any) -> None:
    if key in _loaded:
        return
    _loaded.add(key)  # before, as it may ask for what is registered itself
    try:
        load()
    except (Exception, SystemExit) as error:
        _loaded.discard(key)
        if isinstance(error, InputError):
            raise InputError(f"plugin {shown}: {error}") from error
        last = traceback.extract_tb(error.__traceback__)[-1]
        where, line = last.filename, last.lineno
        if isinstance(error, SyntaxError) and error.filename:
            where, line = error.filename, error.lineno
        raise InputError(
            f"plugin {shown} cannot be loaded ({Path(where).name}, line {line}): "
            f"{type(error).__name__}: {error}"
        ) from error
