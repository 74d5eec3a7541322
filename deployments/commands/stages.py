"""``cppcl stages``: the chain, in words."""

from __future__ import annotations

import sys
from argparse import Namespace

from deployments.terminal import Terminal
from tasks.stages.names import DESCRIPTIONS


def main(options: Namespace) -> int:
    """Print the stages, what each makes and from what."""
    Terminal(sys.stdout).table(
        "stages, in order",
        ["stage", "makes", "from"],
        [[stage, makes, source] for stage, (makes, source) in DESCRIPTIONS.items()],
    )
    return 0
