"""Templates of a page's package, and those that pages share."""

from __future__ import annotations

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from deployments.web.prefix import root


def environment(package: str, style_sheet: str) -> Environment:
    """Templates of a package, then the common ones; all values are escaped.

    In them, ``root()`` is what addresses begin with (`deployments.web.prefix`).

    Parameters
    ----------
    package : str
        Package with a folder ``templates``.
    style_sheet : str
        File of the pages' style.
    """
    found = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("deployments.web")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals |= {"root": root, "style_sheet": style_sheet}
    return found
