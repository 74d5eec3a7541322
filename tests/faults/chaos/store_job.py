"""A small job that does to a store all that the stages do; faults are put into it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from storage import (
    Recipe,
    Reference,
    Store,
    StoreInUseError,
    Writer,
    write_block,
    write_block_note,
)

ROWS, COLUMNS, ROWS_PER_BLOCK, ROUNDS = 22, 5, 4, 3
N_BLOCKS = -(-ROWS // ROWS_PER_BLOCK)

TABLE = Recipe("table", "1", {"n": ROWS})
FEATURES = Recipe("features", "1", {"columns": COLUMNS}, {"table": TABLE.reference})
MODEL = Recipe("model", "1", {"rounds": ROUNDS}, {"features": FEATURES.reference})
CODES = Recipe("codes", "1", {}, {"features": FEATURES.reference, "model": MODEL.reference})
GARBAGE = Recipe("codes", "0", {}, {"features": FEATURES.reference})
KEPT = [recipe.reference for recipe in (TABLE, FEATURES, MODEL, CODES)]


class Job:
    """Makes four artifacts, replaces one, and collects a fifth.

    Parameters
    ----------
    root : Path
        Folder of the store.
    enter : callable
        Told the name of each phase before it begins.
    """

    def __init__(self, root: Path, enter: Callable[[str], None]) -> None:
        self.store = Store(root)
        self.enter = enter
        self.made: list[str] = []
        """Names of the stages, blocks and rounds that were computed; 13 from nothing."""

    def run(self, *, backwards: bool = False) -> list[str]:
        """Make everything that is not stored yet; returns what was computed.

        Parameters
        ----------
        backwards : bool
            Ask for the last artifact first, so that two jobs are at different stages.
        """
        with self.store.in_use():
            steps: list[Callable[[], Any]] = [self.table, self.features, self.model, self.codes]
            for step in reversed(steps) if backwards else steps:
                step()
            made = list(self.made)
            self.enter("replacing")
            self.get(FEATURES, self.create_features, force=True)
            self.enter("making")
            self.get(GARBAGE, lambda writer: writer.put_text("old.txt", "old"))
        self.enter("collecting")
        with contextlib.suppress(StoreInUseError):  # by the other of two jobs
            self.store.gc([CODES.reference])
        return made

    def get(
        self, recipe: Recipe, create: Callable[[Writer], None], *, force: bool = False
    ) -> None:
        def noted(writer: Writer) -> None:
            self.made.append(recipe.stage)
            create(writer)
            self.enter("publishing" if not force else "replacing")

        self.store.get_or_create(recipe, noted, force=force)
        self.enter("making")

    def table(self) -> None:
        def create(writer: Writer) -> None:
            writer.put_text("samples.csv", "id,label\n" + "\n".join(map(str, range(ROWS))))
            writer.put_bytes("pictures/first.png", bytes(range(200)))
            writer.note(root="somewhere")

        self.enter("making")
        self.get(TABLE, create)

    def features(self) -> None:
        self.table()
        self.get(FEATURES, self.create_features)

    def create_features(self, writer: Writer) -> None:
        writer.array("features", shape=(ROWS, COLUMNS), dtype="float32", rows_per_block=4)
        writer.array("ok", shape=(ROWS,), dtype="bool", rows_per_block=ROWS_PER_BLOCK)
        for block in writer.pending_blocks("features", "ok", notes=["failures"]):
            rows = min(ROWS_PER_BLOCK, ROWS - block * ROWS_PER_BLOCK)
            values = np.random.default_rng(block).standard_normal((rows, COLUMNS))
            write_block_note(writer.path, "failures", block, {f"{block}.png": "no picture"})
            write_block(writer.path, "features", block, values.astype(np.float32))
            write_block(writer.path, "ok", block, values[:, 0] > 0)
            self.made.append(f"features {block}")
        notes = writer.block_notes("failures")
        writer.put_json("failures.json", {str(block): note for block, note in notes.items()})

    def model(self) -> None:
        self.features()

        def create(writer: Writer) -> None:
            features = self.read(FEATURES.reference, "features")
            state = writer.load_checkpoint("rounds") or {"n": np.array(0), "w": features[0]}
            for n in range(int(state["n"]), ROUNDS):
                state = {"n": np.array(n + 1), "w": np.tanh(features.T @ (features @ state["w"]))}
                writer.save_checkpoint("rounds", state)
                self.made.append(f"round {n}")
            writer.put_array("weights", state["w"])
            writer.put_json("history.json", {"rounds": ROUNDS})

        self.get(MODEL, create)

    def codes(self) -> None:
        self.model()

        def create(writer: Writer) -> None:
            codes = self.read(FEATURES.reference, "features") * self.read(
                MODEL.reference, "weights"
            )
            writer.put_array("codes", codes, rows_per_block=10)

        self.get(CODES, create)

    def read(self, reference: Reference, name: str) -> np.ndarray:
        return self.store.open(reference).array(name)
