"""Features, methods and data sets of one's own, without a clone: modules that register them.

A plugin is a Python module that calls `register_features`, `register_method` or
`register_data_set`. It is found as an entry point of the group ``cppcl.plugins`` of an installed
package, by ``cppcl --plugin NAME``, or by the environment variable ``CPPCL_PLUGINS``: names of
modules or paths of ``.py`` files, parted as those of ``PATH``.
"""

from __future__ import annotations

import inspect
from typing import Any

from cppcl.datasets import DATASETS
from cppcl.errors import InputError
from cppcl.features import EXTRACTORS
from cppcl.methods import METHODS
from cppcl.plugin_modules import VARIABLE, closed_by

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


def register_features(*extractors: type) -> None:
    """Add classes with the interface of `cppcl.features.base.Extractor`, by their ``name``.

    Raises
    ------
    InputError
        A class lacks something, or its name is taken.
    """
    for extractor in extractors:
        _register(EXTRACTORS, getattr(extractor, "name", None), extractor, "feature extractor")


def register_method(name: str, method: type) -> None:
    """Add a class with the interface of `cppcl.methods.Method` under a name.

    Raises
    ------
    InputError
        The class lacks something, or the name is taken.
    """
    _register(METHODS, name, method, "method")


def register_data_set(*data_sets: type) -> None:
    """Add classes with the interface of `cppcl.datasets.base.DataSet`, by their ``name``.

    Raises
    ------
    InputError
        A class lacks something, or its name is taken.
    """
    for data_set in data_sets:
        _register(DATASETS, getattr(data_set, "name", None), data_set, "data set")


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
    if who := closed_by():
        raise InputError(
            f"{what} {name!r} is registered after {who} has read what there is; name "
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
