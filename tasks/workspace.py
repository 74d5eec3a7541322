"""Folders of a workspace: artifacts, data that was fetched, records of runs."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cppcl.errors import InputError
from storage import Reference, Store


@dataclass(frozen=True)
class Workspace:
    """Where everything that a run makes is kept."""

    root: Path

    @property
    def store(self) -> Store:
        """Artifacts."""
        return Store(self.root / "store")

    @property
    def data(self) -> Path:
        """Pictures that data sets made or downloaded."""
        return self.root / "data"

    @property
    def runs(self) -> Path:
        """One JSON file a run."""
        return self.root / "runs"

    def record_run(self, name: str, stamp: str, record: dict[str, Any]) -> Path:
        """Write the record of a run atomically and return its path."""
        self.runs.mkdir(parents=True, exist_ok=True)
        path = self.runs / f"{name}-{stamp}.json"
        temporary = path.with_suffix(f".tmp{os.getpid()}")
        temporary.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
        temporary.replace(path)
        return path

    def run_records(self) -> dict[str, dict[str, Any]]:
        """Records by run name, oldest first."""
        if not self.runs.is_dir():
            return {}
        records = {path.stem: path for path in self.runs.glob("*.json")}
        # The stamp sorts by time; the experiment's name in front of it must not.
        names = sorted(records, key=lambda name: name.rpartition("-")[2])
        return {name: json.loads(records[name].read_text()) for name in names}

    def find_run(self, text: str) -> tuple[str, dict[str, Any]]:
        """Return the run of this name, or the latest run of this experiment.

        Raises
        ------
        InputError
            If there is no such run; the message lists those there are.
        """
        records = self.run_records()
        if text in records:
            return text, records[text]
        for name in reversed(records):
            if records[name]["experiment"] == text:
                return name, records[name]
        known = ", ".join(sorted({r["experiment"] for r in records.values()})) or "none yet"
        raise InputError(
            f"no run {text!r} in {self.runs} (experiments that were run: {known}); "
            f"make one with: cppcl run {text} --workspace {self.root}"
        )

    def find_model(self, text: str) -> Reference:
        """Return the `encode` artifact of a key, a key's beginning or an experiment's latest run.

        Raises
        ------
        InputError
            If nothing matches.
        """
        if re.fullmatch(r"(encode/)?[0-9a-f]{6,64}", text):
            return self.store.resolve(text, "encode")
        _, record = self.find_run(text)
        return Reference("encode", record["artifacts"]["encode"])
