"""Divide a sample table into training and test rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from cppcl.datasets.splits import (
    Split,
    category_split,
    counted_split,
    instance_split,
    named_split,
    split_text,
    transfer_split,
    unseen_split,
)
from storage import Recipe, Reference, Writer
from tasks.samples import SPLIT_PARTS, open_pictures
from tasks.stages.contract import Mode, StageResult, produce, stage_task
from tasks.workspace import Workspace

VERSION = "1"
RULES: dict[str, Callable[..., Split]] = {
    "instance": instance_split,
    "category": category_split,
    "counted": counted_split,
    "unseen": unseen_split,
    "file": named_split,
    "transfer": transfer_split,
}


def split_table(
    *,
    workspace: Workspace,
    table: Reference,
    rule: str,
    options: dict[str, Any],
    seed: int,
    mode: Mode = "reuse",
) -> StageResult:
    """Publish the split of a sample table by one rule and seed."""
    store = workspace.store
    parameters = {"rule": rule, "seed": seed, **options}
    if rule == "file":
        # What the file says counts, not where it lies.
        text = split_text(options["path"], seed)
        parameters["path"] = hashlib.sha256(text.encode()).hexdigest()
    recipe = Recipe("split", VERSION, parameters, {"table": table})

    def create(writer: Writer) -> None:
        split = RULES[rule](open_pictures(store, table).table, seed=seed, **options)
        for part in SPLIT_PARTS:
            writer.put_array(part, getattr(split, part))

    return produce(store, recipe, create, mode=mode, label=f"{rule}, seed {seed}")


split = stage_task(split_table)
