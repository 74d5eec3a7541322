"""Write constraints.txt: the versions of this environment that cppcl was tested with.

    python .ci/constraints.py [FILE]

It names what cppcl and its extras need, directly or not, as far as it is installed here, and
nothing else of the environment. `pip install --constraint constraints.txt '.[demo]'` then installs
the same versions.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HEAD = "# Versions that the tests were run with, on Python {}.{}: written by make constraints.\n"


def installed(root: str) -> dict[str, str]:
    """Versions of what a distribution and all its extras need, by name; not its own."""
    found: dict[str, str] = {}
    asked: set[tuple[str, str]] = set()
    waiting = [
        (root, extra) for extra in ("", *distribution(root).metadata.get_all("Provides-Extra", []))
    ]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in asked:
            continue
        asked.add((name, extra))
        try:
            dist = distribution(name)
        except PackageNotFoundError:  # of an extra that is not installed
            continue
        # What follows + tells how a wheel was built, and is not on PyPI.
        found[canonicalize_name(name)] = dist.version.partition("+")[0]
        for line in dist.requires or ():
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                waiting += [(need.name, inner) for inner in ("", *need.extras)]
    del found[canonicalize_name(root)]
    return found


def main() -> int:
    """Write the file."""
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "constraints.txt")
    lines = [f"{name}=={version}\n" for name, version in sorted(installed("cppcl").items())]
    file.write_text(HEAD.format(*sys.version_info[:2]) + "".join(lines))
    print(f"{file}: {len(lines)} versions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
