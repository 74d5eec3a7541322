"""Divide a sample table into training and test rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cppcl.audit.correction import corrected
from cppcl.audit.verdicts import read_verdict_file
from cppcl.datasets.files import file_sha256
from cppcl.datasets.pseudo import real_samples, train_on_contours
from cppcl.datasets.splits import (
    Split,
    category_split,
    counted_split,
    instance_split,
    named_split,
    noisy_targets,
    split_text,
    transfer_split,
    unseen_split,
)
from cppcl.datasets.unfinished import drawn_at_least
from storage import Recipe, Reference, Writer
from tasks.progress import log
from tasks.samples import GIVEN, SPLIT_PARTS, Target, open_pictures
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
    noise: Mapping[str, float] | None = None,
    audit: Path | None = None,
    target: Target = "groups",
    least_drawn: float = 0.0,
    pseudo_share: float = 0.0,
    mode: Mode = "reuse",
) -> StageResult:
    """Publish the split of a sample table by one rule and seed.

    With noise, arguments of `cppcl.datasets.splits.noise.noisy_targets`, what training rows are
    said to be is stored beside it; the truth is in the table.

    What a file of verdicts, ``audit``, calls wrong is left out of training or gets another label,
    see `cppcl.audit.correction.corrected`, where training goes by ``target``. The file takes part
    in the key by its content. Training sketches that show less of their strokes than
    ``least_drawn`` are left out. Contours of a share of the training images, ``pseudo_share``, are
    added to the training sketches; the rule sees no pseudo-sketches, and nothing else does.
    """
    store = workspace.store
    parameters = {"rule": rule, "seed": seed, **options}
    wrong = {name: share for name, share in (noise or {}).items() if share}
    if wrong:
        parameters["noise"] = wrong
    if least_drawn:
        parameters["least_drawn"] = least_drawn
    if pseudo_share:
        parameters["pseudo_share"] = pseudo_share
    if rule == "file":
        # What the file says counts, not where it lies.
        text = split_text(options["path"], seed)
        parameters["path"] = hashlib.sha256(text.encode()).hexdigest()
    verdicts = read_verdict_file(audit) if audit else []
    if audit:
        parameters |= {"audit": file_sha256(audit), "target": target}
    recipe = Recipe("split", VERSION, parameters, {"table": table})

    def create(writer: Writer) -> None:
        samples = open_pictures(store, table).table
        split = RULES[rule](real_samples(samples), seed=seed, **options)
        if least_drawn:
            split = drawn_at_least(samples, split, least_drawn)
        if pseudo_share:
            split = train_on_contours(samples, split, pseudo_share, seed=seed)
        given = noisy_targets(samples, split, seed=seed, **wrong)
        if audit:
            found = corrected(split, samples, verdicts, target=target, given=given)
            split, given = found.split, found.given
            log(
                f"{audit}: {found.n_left_out} training samples are left out, "
                f"{found.n_relabelled} get another label; {found.n_aside} verdicts are on what "
                "training does not have"
            )
        for part in SPLIT_PARTS:
            writer.put_array(part, getattr(split, part))
        for name, rows in given.items():
            writer.put_array(GIVEN + name, rows)

    return produce(store, recipe, create, mode=mode, label=f"{rule}, seed {seed}")


split = stage_task(split_table)
