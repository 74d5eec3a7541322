"""No core dependency has a licence that would bind users of this BSD-3-Clause package."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
COPYLEFT = re.compile(r"\b[AL]?GPL|General Public License", re.IGNORECASE)
"""GPL, AGPL and LGPL. The MPL binds only the files that are under it, and is no concern here."""
ALLOWED = {
    "text-unidecode": "the Artistic License or the GPL, as the user likes; comes with prefect",
}
"""Distributions that mention one of these licences nevertheless, and why they may be used."""


def copyleft(metadata: Message) -> str:
    """Licence in a distribution's metadata that is refused; empty if there is none."""
    expression = metadata.get("License-Expression")
    if expression:
        # Without brackets, one alternative that is not refused is enough.
        choices = [expression] if "(" in expression else re.split(r"\bOR\b", expression)
        return expression if all(map(COPYLEFT.search, choices)) else ""
    # The text of a whole licence may name the licences of bundled files: its first line counts.
    said = (metadata.get("License") or "").strip().partition("\n")[0]
    classifiers = [c for c in metadata.get_all("Classifier") or [] if c.startswith("License ::")]
    return "; ".join(filter(COPYLEFT.search, [said, *classifiers]))


def core_distributions() -> dict[str, importlib.metadata.Distribution]:
    """Installed distributions that the package needs, without extras, directly or not."""
    needed = tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]
    waiting, found = [Requirement(text) for text in needed], {}
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if name in found or not applies:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:  # for another system or Python
            continue
        waiting += map(Requirement, found[name].requires or [])
    return found


def test_core_dependencies_are_not_copyleft() -> None:
    found = core_distributions()
    assert {"numpy", "torch", "prefect", "starlette"} <= found.keys()
    refused = {name: copyleft(found[name].metadata) for name in found if name not in ALLOWED}
    assert {name: licence for name, licence in refused.items() if licence} == {}


@pytest.mark.parametrize(
    ("fields", "is_refused"),
    [
        ({"License-Expression": "GPL-3.0-or-later"}, True),
        ({"License-Expression": "BSD-3-Clause AND (MIT OR LGPL-2.1-only)"}, True),
        ({"License-Expression": "MIT OR AGPL-3.0-only"}, False),
        ({"License-Expression": "BSD-3-Clause", "License": "GPL"}, False),
        ({"License": "GNU General Public License v3 or later"}, True),
        ({"License": "GPLv3"}, True),
        ({"License": "BSD\n\nBundled: libgfortran, GPL-3.0 with exception"}, False),
        ({"Classifier": "License :: OSI Approved :: GNU Affero General Public License v3"}, True),
        ({"Classifier": "License :: OSI Approved :: BSD License"}, False),
        ({"Classifier": "Topic :: GPL"}, False),
        ({}, False),
    ],
)
def test_which_licences_are_refused(fields: dict[str, str], is_refused: bool) -> None:
    metadata = Message()
    for name, value in fields.items():
        metadata[name] = value
    assert bool(copyleft(metadata)) is is_refused
