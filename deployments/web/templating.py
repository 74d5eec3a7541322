"""Templates of a page's package, and those that pages share."""

from __future__ import annotations

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def environment(package: str) -> Environment:
    """Templates of a package, then the common ones; all values are escaped.

    Parameters
    ----------
    package : str
        Package with a folder ``templates``, among them a ``base.html``.
    """
    return Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("deployments.web")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
