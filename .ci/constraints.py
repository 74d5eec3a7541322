"""Write constraints.txt: the versions of this environment that cppcl was tested with.

    python .ci/constraints.py [FILE]

It names what cppcl and its extras need, directly or not, as far as it is installed here, and
nothing else of the environment. `pip install --constraint constraints.txt '.[demo]'` then installs
the same versions.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
HEAD = "# Versions that the tests were run with, on Python {}.{}: written by make constraints.\n"


def asked() -> list[Requirement]:
    """What cppcl and all its extras ask for, as pyproject.toml has it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    return [need for need in map(Requirement, lines) if need.name != project["name"]]


def installed(needs: Iterable[Requirement]) -> dict[str, str]:
    """Versions of what is needed, directly or not, by name, as far as it is installed."""
    found: dict[str, str] = {}
    waiting = [(need.name, extra) for need in needs for extra in ("", *need.extras)]
    seen = set(waiting)
    while waiting:
        name, extra = waiting.pop()
        try:
            dist = distribution(name)
        except PackageNotFoundError:  # of an extra that is not installed
            continue
        # What follows + tells how a wheel was built, and is not on PyPI.
        found[canonicalize_name(name)] = dist.version.partition("+")[0]
        for need in map(Requirement, dist.requires or ()):
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                more = {(need.name, inner) for inner in ("", *need.extras)} - seen
                seen |= more
                waiting += more
    return found


def main() -> int:
    """Write the file."""
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "constraints.txt")
    lines = [f"{name}=={version}\n" for name, version in sorted(installed(asked()).items())]
    file.write_text(HEAD.format(*sys.version_info[:2]) + "".join(lines))
    print(f"{file}: {len(lines)} versions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
