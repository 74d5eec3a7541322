"""Extract features, or scores, of one modality in blocks on Dask workers."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.table import SampleTable
from cppcl.errors import InputError, TooManyBadPicturesError
from cppcl.features import CombinedExtractor, Extractor, make_extractor
from cppcl.modality import Modality
from cppcl.pictures.decoding import read_sample
from storage import Artifact, Recipe, Reference, Store, Writer, write_block
from tasks.cluster.scheduling import run_blocks
from tasks.cluster.session import available_cluster
from tasks.cluster.throughput import Throughput
from tasks.prefect_progress import prefect_progress
from tasks.progress import Progress, log, tell
from tasks.samples import PARTS, open_pictures, usable_rows
from tasks.stages.contract import Mode, StageResult, produce, stage_task
from tasks.workers.blocks import NOTE, ONE_COLOUR, Block, Copy
from tasks.workers.extractors import LEARNED, ExtractorSpec
from tasks.workers.memory import extraction_budget
from tasks.workspace import Workspace

VERSION = "5"
FAILURES = "failures.json"
ZERO_ROWS = "zero_rows.json"
PART = "part."
"""Begins the role of an input that is a part of the features."""
N_NAMED = 20
"""Pictures that a remark names."""
LEAST_SIDE = 8


def extract_features(
    *,
    workspace: Workspace,
    table: Reference,
    modality: Modality,
    extractor: str,
    options: dict[str, Any],
    longest_side: int,
    block_rows: int,
    learned: Reference | None = None,
    max_bad_share: float = 0.1,
    mode: Mode = "reuse",
) -> StageResult:
    """Publish the features of every sample of a modality, one row a sample.

    A picture that cannot be used keeps its row with ``ok`` false. Rows of pictures that an
    earlier artifact of the same extractor has are copied from it. `learned` is the `learn`
    artifact that an extractor which learns describes pictures by. Each part of a combination
    that does not learn is an artifact of its own, which other experiments share.

    Raises
    ------
    InputError
        If an extractor learns and is not given what it learned, or that of other options.
    TooManyBadPicturesError
        If more than ``max_bad_share`` of the pictures fail; what was extracted is kept.
    """
    store = workspace.store
    made = make_extractor(extractor, options)
    if not made.takes_pictures and (row := first_row(store, table, modality)) is not None:
        options = {**options, **made.options_from_row(row)}
        made = make_extractor(extractor, options)
    if made.learns and learned is None:
        raise InputError(
            f"feature extractor {extractor!r} learns from training pictures and was given nothing "
            "that it learned; run the stage 'learn' first, or set learned to one of its keys"
        )
    made = made.branch(modality)
    extraction = Extraction(
        store, table, modality, extractor, options, made, longest_side, block_rows, learned
    )
    if isinstance(made, CombinedExtractor) and len(made.learning) <= 1:
        result = extract_parts(extraction, made, mode)
    else:
        result = extract_pictures(extraction, mode)
    artifact = store.open(result.reference)
    check_failures(artifact, max_bad_share)
    for remark in (one_colour_remark(artifact), zero_rows_remark(artifact)):
        if remark:
            log(remark)
    return result


extract = stage_task(extract_features)


@dataclass(frozen=True)
class Extraction:
    """What is extracted, from what, and how.

    Attributes
    ----------
    store : Store
        Where artifacts are.
    table : Reference
        Sample table.
    modality : {'sketch', 'image'}
        Whose pictures.
    extractor : str
        Registered name, or several joined by '+'.
    options : dict
        Of the extractor, as given.
    made : Extractor
        The extractor with these options.
    longest_side, block_rows : int
        Longest side of a picture in pixels, and rows of a block.
    learned : Reference or None
        A `learn` artifact, of an extractor that learns.
    """

    store: Store
    table: Reference
    modality: Modality
    extractor: str
    options: dict[str, Any]
    made: Extractor
    longest_side: int
    block_rows: int
    learned: Reference | None = None

    @property
    def label(self) -> str:
        """Which piece of the stage this is."""
        learned = f", learned {self.learned.key[:8]}" if self.learned else ""
        return f"{self.modality} {self.extractor}{learned}"

    def recipe(self, **parts: Reference) -> Recipe:
        """What the features are made from; `parts` are artifacts of a combination's extractors."""
        parameters = {
            "modality": self.modality,
            "extractor": self.extractor,
            "options": self.made.parameters(),
            "longest_side": self.longest_side,
            "block_rows": self.block_rows,
        }
        inputs = {"table": self.table} | {PART + name: part for name, part in parts.items()}
        if self.learned is not None:
            inputs["learned"] = self.learned
        return Recipe("extract", f"{VERSION}.{self.made.version}", parameters, inputs)

    def parts(self, combined: CombinedExtractor) -> dict[str, Extraction]:
        """Extraction of each part of a combination, by its name."""
        return {
            part.name: replace(
                self,
                extractor=part.name,
                options=dict(self.options.get(part.name) or {}),
                made=part,
                learned=self.learned if part.learns else None,
            )
            for part in combined.parts
        }


def extract_pictures(extraction: Extraction, mode: Mode) -> StageResult:
    """Describe pictures in blocks on the cluster, and publish their features."""
    store, made, learned = extraction.store, extraction.made, extraction.learned
    block_rows, label = extraction.block_rows, extraction.label
    recipe = extraction.recipe()
    spec = ExtractorSpec(
        extraction.extractor,
        json.dumps(extraction.options, sort_keys=True),
        extraction.longest_side,
        learned,
        extraction.modality,
    )

    def create(writer: Writer) -> None:
        if learned is not None:
            spec.make(str(store.root))  # refused here, before the cluster starts
        pictures = open_pictures(store, extraction.table)
        paths = pictures.table.column("paths", extraction.modality)
        n_blocks = -(-len(paths) // block_rows)
        writer.array(
            "features",
            shape=(len(paths), made.dimension),
            dtype="float32",
            rows_per_block=block_rows,
        )
        pending = writer.pending_blocks("features", notes=(NOTE,))
        if len(pending) < n_blocks:
            log(f"{label}: {n_blocks - len(pending)} of {n_blocks} blocks were done")
        copies = {} if mode == "force" else known_rows(store, recipe, made.cross_modal)
        blocks = make_blocks(pictures.table, extraction.modality, pending, block_rows, copies)
        budget = extraction_budget(
            made,
            block_rows=block_rows,
            longest_side=extraction.longest_side,
            learned_bytes=0 if learned is None else stored_bytes(store.open(learned)),
        )
        if blocks and (workers := available_cluster()):
            budget.check(workers.memory_of_a_worker())
        copied = sum(len(copy.rows) for block in blocks for copy in block.copies)
        throughput = Throughput(sum(len(block.paths) for block in blocks))
        deaths = 0
        with prefect_progress(label) as show:
            for finished in run_blocks(
                blocks, str(writer.path), str(pictures.root), spec, made.device, str(store.root)
            ):
                throughput.add(finished.report)
                deaths += finished.report.deaths
                done = n_blocks - len(pending) + finished.number_done
                tell(Progress("extract", label, done, n_blocks, detail=str(throughput)))
                show(done / n_blocks, str(throughput))
        ok, failures = np.ones(len(paths), dtype=bool), {}
        zeros: list[str] = []
        blank: list[int] = []
        for block, note in writer.block_notes(NOTE).items():
            here = block * block_rows
            for row, reason in note["failures"].items():
                ok[here + int(row)], failures[paths[here + int(row)]] = False, reason
            zeros += [paths[here + row] for row in note["zero_rows"]]
            blank += [here + row for row in note["one_colour"]]
        put_particulars(writer, made, ok, failures, zeros, paths, blank)
        # Options may name a local file; what takes part in the key is that file's content.
        writer.note(
            **throughput.notes(),
            worker_deaths=deaths,
            memory_budget_bytes=budget.total,
            copied_rows=copied,
            options=extraction.options,
        )

    return produce(store, recipe, create, mode=mode, label=label)


def extract_parts(extraction: Extraction, combined: CombinedExtractor, mode: Mode) -> StageResult:
    """Extract each part of a combination, unless it is stored, and publish them side by side.

    A row is ok if it is in every part.
    """
    started = time.perf_counter()
    store, block_rows = extraction.store, extraction.block_rows
    parts = extraction.parts(combined)
    references = {name: part.recipe().reference for name, part in parts.items()}
    recipe = extraction.recipe(**references)
    made_now: list[Reference] = []
    if mode == "force" or (mode == "reuse" and store.find(recipe.reference) is None):
        results = [extract_pictures(part, mode) for part in parts.values()]
        made_now = [result.reference for result in results if not result.cached]

    def create(writer: Writer) -> None:
        extracted = [store.open(reference) for reference in references.values()]
        paths = open_pictures(store, extraction.table).table.column("paths", extraction.modality)
        ok = np.logical_and.reduce([usable_rows(part) for part in extracted])
        failures = {p: why for part in extracted[::-1] for p, why in part.json(FAILURES).items()}
        blank = sorted({row for part in extracted for row in part.json(ONE_COLOUR)["rows"]})
        zeros: list[str] = []
        writer.array(
            "features",
            shape=(len(paths), combined.dimension),
            dtype="float32",
            rows_per_block=block_rows,
        )
        for block, first in enumerate(range(0, len(paths), block_rows)):
            rows = np.arange(first, min(first + block_rows, len(paths)))
            values = combined.join([part.rows("features", rows) for part in extracted])
            values[~ok[rows]] = 0
            zeros += [paths[row] for row in rows[ok[rows] & ~values.any(axis=1)]]
            write_block(writer.path, "features", block, values)
        put_particulars(writer, combined, ok, failures, zeros, paths, blank)
        notes = [part.run["notes"] for part in extracted if part.reference in made_now]
        writer.note(
            worker_seconds=sum(note["worker_seconds"] for note in notes),
            copied_rows=min((note["copied_rows"] for note in notes), default=len(paths)),
            options=extraction.options,
        )

    result = produce(store, recipe, create, mode=mode, label=extraction.label)
    return replace(result, seconds=time.perf_counter() - started)


def put_particulars(
    writer: Writer,
    made: Extractor,
    ok: NDArray[np.bool_],
    failures: dict[str, str],
    zeros: list[str],
    paths: Sequence[str],
    blank: list[int],
) -> None:
    """Write what belongs to features: which rows are ok, why others are not, and the spaces.

    `blank` are the rows of pictures of one colour.
    """
    writer.put_array("ok", ok)
    writer.put_json(FAILURES, dict(sorted(failures.items())))
    writer.put_json(ZERO_ROWS, {"paths": sorted(zeros), "hint": made.zero_rows_hint})
    named = [paths[row] for row in blank[:N_NAMED]]
    writer.put_json(ONE_COLOUR, {"rows": sorted(blank), "paths": named})
    spaces = [{"name": name, "width": width} for name, width in made.spaces.items()]
    writer.put_json(PARTS, spaces)


def first_row(store: Store, table: Reference, modality: Modality) -> NDArray[Any] | None:
    """First sample of a modality of a data set whose samples are rows of numbers."""
    pictures = open_pictures(store, table)
    for path in pictures.table.column("paths", modality)[:1]:
        row: NDArray[Any] = read_sample(pictures.root, path, longest_side=LEAST_SIDE)
        return row
    return None


def zero_rows_remark(artifact: Artifact) -> str | None:
    """Words about the pictures of an `extract` artifact whose features are all zero, if any.

    A score may be zero; an artifact of before they were noted says nothing.
    """
    if ZERO_ROWS not in artifact.names or artifact.shape("features")[1] == 1:
        return None
    found, given = artifact.json(ZERO_ROWS), artifact.parameters
    if not (paths := found["paths"]):
        return None
    hint = f"; {found['hint']}" if found["hint"] else ""
    more = f" and {len(paths) - N_NAMED} more" if len(paths) > N_NAMED else ""
    return (
        f"{len(paths)} of {artifact.shape('ok')[0]} {given['modality']} pictures have features of "
        f"{given['extractor']} that are all zero, so they are similar to nothing: "
        f"{', '.join(paths[:N_NAMED])}{more}{hint}"
    )


def one_colour_remark(artifact: Artifact) -> str | None:
    """Words about the pictures of an `extract` artifact that are of one colour, if any.

    An artifact of before they were noted says nothing.
    """
    if ONE_COLOUR not in artifact.names:
        return None
    found = artifact.json(ONE_COLOUR)
    rows, paths = found["rows"], found["paths"]
    if not rows:
        return None
    more = f" and {len(rows) - len(paths)} more" if len(rows) > len(paths) else ""
    return (
        f"{len(rows)} of {artifact.shape('ok')[0]} {artifact.parameters['modality']} pictures are "
        f"of one colour, so nothing can be seen in them: {', '.join(paths)}{more}; look at them, "
        "and remove or repair them"
    )


def check_failures(artifact: Artifact, max_bad_share: float) -> None:
    """Name the pictures that failed, and refuse an artifact with too many of them."""
    failures = artifact.json(FAILURES)
    n = artifact.shape("ok")[0]
    if not failures:
        return
    shown = "\n".join(f"  {reason}" for reason in list(failures.values())[:N_NAMED])
    more = f"\n  and {len(failures) - N_NAMED} more" if len(failures) > N_NAMED else ""
    text = f"{len(failures)} of {n} {artifact.parameters['modality']} pictures "
    if len(failures) > max_bad_share * n:
        raise TooManyBadPicturesError(
            f"{text}cannot be used, more than compute.max_bad_share={max_bad_share}:\n"
            f"{shown}{more}\nRepair or remove them, or raise max_bad_share"
        )
    log(f"{text}were skipped:\n{shown}{more}")


def known_rows(
    store: Store, recipe: Recipe, cross_modal: bool = False
) -> dict[str, tuple[Reference, int]]:
    """Rows that stored artifacts of the same extractor have, by sha256 of the picture.

    One that is ``cross_modal`` describes a picture differently in each modality.
    """
    other = {"block_rows"} if cross_modal else {"modality", "block_rows"}
    wanted = {k: v for k, v in recipe.parameters.items() if k not in other}
    known: dict[str, tuple[Reference, int]] = {}
    for artifact in store.artifacts("extract"):
        if artifact.reference == recipe.reference or artifact.version != recipe.version:
            continue
        if any(artifact.parameters.get(name) != value for name, value in wanted.items()):
            continue
        if artifact.inputs.get("learned") != recipe.inputs.get("learned"):
            continue
        table = open_pictures(store, artifact.inputs["table"]).table
        ok = artifact.array("ok")
        digests = table.column("sha256", artifact.parameters["modality"])
        for row, digest in enumerate(digests):
            if ok[row]:
                known.setdefault(digest, (artifact.reference, row))
    return known


def make_blocks(
    table: SampleTable,
    modality: Modality,
    numbers: Sequence[int],
    block_rows: int,
    known: dict[str, tuple[Reference, int]],
) -> list[Block]:
    """Divide the rows of a modality into blocks."""
    rows = table.rows(modality).tolist()
    return [
        make_block(table, rows[number * block_rows : (number + 1) * block_rows], number, known)
        for number in numbers
    ]


def make_block(
    table: SampleTable, rows: Sequence[int], number: int, known: dict[str, tuple[Reference, int]]
) -> Block:
    """Make one block of these rows of the table."""
    sources: dict[Reference, list[tuple[int, int]]] = {}
    for here, row in enumerate(rows):
        if found := known.get(table.sha256[row]):
            sources.setdefault(found[0], []).append((here, found[1]))
    copies = tuple(
        Copy(source, tuple(here for here, _ in pairs), tuple(there for _, there in pairs))
        for source, pairs in sources.items()
    )
    return Block(
        number,
        tuple(table.paths[row] for row in rows),
        tuple(table.sha256[row] for row in rows),
        copies,
    )


def stored_bytes(artifact: Artifact) -> int:
    """Bytes of the arrays of an artifact, in memory."""
    shapes = (artifact.shape(name) for name in artifact.names if name.startswith(LEARNED))
    return 8 * sum(math.prod(shape) for shape in shapes)
