"""Wait until Prefect's server says that it is well, two minutes at most."""

from __future__ import annotations

import os
import sys
import time
import urllib.request

LIMIT_S = 120


def main() -> int:
    """Exit code 0 when it answers."""
    address = f"{os.environ['PREFECT_API_URL']}/health"
    limit = time.monotonic() + LIMIT_S
    while time.monotonic() < limit:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                if answer.status == 200:
                    return 0
        except OSError:
            time.sleep(0.5)
    print(f"nothing answers at {address} within {LIMIT_S} s", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
