"""``cppcl search``: the pictures that a sketch means."""

from __future__ import annotations

import json
import sys
from argparse import Namespace

from deployments.terminal import Terminal
from tasks.model import Model
from tasks.workspace import Workspace


def main(options: Namespace) -> int:
    """Print the nearest pictures of the model's gallery."""
    workspace = Workspace(options.workspace)
    model = Model(workspace, workspace.find_model(options.model))
    matches = model.search(options.picture, options.k, photograph=options.photo)
    if options.json:
        print(json.dumps([vars(match) | {"path": str(match.path)} for match in matches]))
        return 0
    Terminal(sys.stdout).table(
        f"nearest to {options.picture}",
        ["rank", "similarity", "label", "picture"],
        [[str(m.rank), f"{m.similarity:.4f}", m.label, str(m.path)] for m in matches],
        last_whole=True,
    )
    return 0
