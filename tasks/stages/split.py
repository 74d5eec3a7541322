"""Divide a sample table into training and test rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cppcl.audit.leaving_out import without_wrong
from cppcl.audit.verdicts import read_verdict_file
from cppcl.datasets.files import file_sha256
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
from tasks.progress import log
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
    audit: Path | None = None,
    mode: Mode = "reuse",
) -> StageResult:
    """Publish the split of a sample table by one rule and seed.

    Training samples that a file of verdicts, ``audit``, calls wrong are left out. It takes part in
    the key by its content.
    """
    store = workspace.store
    parameters = {"rule": rule, "seed": seed, **options}
    if rule == "file":
        # What the file says counts, not where it lies.
        text = split_text(options["path"], seed)
        parameters["path"] = hashlib.sha256(text.encode()).hexdigest()
    verdicts = read_verdict_file(audit) if audit else []
    if audit:
        parameters["audit"] = file_sha256(audit)
    recipe = Recipe("split", VERSION, parameters, {"table": table})

    def create(writer: Writer) -> None:
        samples = open_pictures(store, table).table
        split = RULES[rule](samples, seed=seed, **options)
        if audit:
            whole, split = split, without_wrong(split, samples, verdicts)
            before, after = (s.train_sketches.size + s.train_images.size for s in (whole, split))
            log(f"{audit}: {before - after} of {before} training samples are left out as wrong")
        for part in SPLIT_PARTS:
            writer.put_array(part, getattr(split, part))

    return produce(store, recipe, create, mode=mode, label=f"{rule}, seed {seed}")


split = stage_task(split_table)
