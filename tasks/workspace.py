"""Folders of a workspace: artifacts, data that was fetched, records of runs."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cppcl.errors import InputError
from cppcl.regular_files import read_text
from cppcl.validation import did_you_mean
from storage import Reference, Remote, RemoteURLError, Store, open_remote
from tasks.progress import log

STAMP = "%Y%m%dT%H%M%S%fZ"
"""Of the names of records; it sorts by time."""

REMOTE = "CPPCL_REMOTE"
"""Environment variable: URL of the object store that keeps artifacts too."""


@dataclass(frozen=True)
class Workspace:
    """Where everything that a run makes is kept."""

    root: Path

    def __post_init__(self) -> None:
        if self.root.exists() and not self.root.is_dir():
            raise InputError(f"workspace {str(self.root)!r} is a file; give a folder")

    @property
    def store(self) -> Store:
        """Artifacts, here and in the remote that ``$CPPCL_REMOTE`` names."""
        url = os.environ.get(REMOTE)
        remote = remote_of(url, REMOTE) if url else None
        return Store(self.root / "store", remote=remote, log=log)

    @property
    def data(self) -> Path:
        """Pictures that data sets made or downloaded."""
        return self.root / "data"

    @property
    def published_data(self) -> Path:
        """Published data sets: ``$CPPCL_DATA`` where that is set, perhaps shared and read-only."""
        shared = os.environ.get("CPPCL_DATA")
        return Path(shared) if shared else self.data

    @property
    def runs(self) -> Path:
        """One JSON file a run."""
        return self.root / "runs"

    def record_run(self, name: str, stamp: str, record: dict[str, Any]) -> Path:
        """Write the record of a run atomically and return its path.

        The latest run has the latest stamp also where the clock was set back meanwhile.
        """
        self.runs.mkdir(parents=True, exist_ok=True)
        newest = max(
            (path.stem.rpartition("-")[2] for path in self.runs.glob("*.json")), default=""
        )
        with contextlib.suppress(ValueError):
            following = datetime.strptime(newest, STAMP) + timedelta(microseconds=1)
            stamp = max(stamp, following.strftime(STAMP))
        path = self.runs / f"{name}-{stamp}.json"
        temporary = path.with_suffix(f".tmp{os.getpid()}")
        with temporary.open("w") as stream:
            stream.write(json.dumps(record, indent=1) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        return path

    def run_records(self) -> dict[str, dict[str, Any]]:
        """Records by run name, oldest first."""
        if not self.runs.is_dir():
            return {}
        records = {path.stem: path for path in self.runs.glob("*.json")}
        # The stamp sorts by time; the experiment's name in front of it must not.
        names = sorted(records, key=lambda name: name.rpartition("-")[2])
        return {name: _read_record(records[name]) for name in names}

    def find_run(self, text: str, stage: str | None = None) -> tuple[str, dict[str, Any]]:
        """Return the run of this name, or the latest run of this experiment.

        Parameters
        ----------
        text : str
            Name of a run or of an experiment.
        stage : str, optional
            Look only at runs that came as far as this stage.

        Raises
        ------
        InputError
            If there is no such run; the message lists those there are.
        """
        records = self.run_records()
        named = [name for name in records if text in (name, records[name]["experiment"])]
        for name in reversed(named):
            if stage is None or stage in records[name]["artifacts"]:
                return name, records[name]
        if named:
            raise InputError(
                f"no run of {text!r} in {self.runs} came as far as the stage {stage!r}; make one "
                f"with: cppcl run {source_of(records[named[-1]])} --workspace {self.root}"
            )
        known = sorted({r["experiment"] for r in records.values()})
        if near := did_you_mean(text, known):
            raise InputError(f"no run {text!r} in {self.runs}{near}")
        gallery = (  # has a model, and nothing else that a run has
            f", or a gallery called {text!r} with: cppcl index MODEL FOLDER --name {text} "
            f"--workspace {self.root}"
        )
        raise InputError(
            f"no run {text!r} in {self.runs} (experiments that were run: "
            f"{', '.join(known) or 'none yet'}); make a run with: cppcl run EXPERIMENT "
            f"--workspace {self.root}{gallery if stage == 'encode' else ''}"
        )

    def check_folder(self, name: str, pictures: Path) -> None:
        """Refuse a name whose latest run is of another folder that still exists.

        Parameters
        ----------
        name : str
            Name of an experiment on a folder of the user's.
        pictures : path
            That folder: the pictures that its searches find.

        Raises
        ------
        InputError
            A search by this name would mean the other folder until now.
        """
        runs = [r for r in self.run_records().values() if r["experiment"] == name]
        data_set = runs[-1].get("configuration", {}).get("dataset", {}) if runs else {}
        if "root" not in data_set:
            return
        before = Path(data_set["root"]) / data_set.get("images", "")
        if before.is_dir() and before.resolve() != pictures.resolve():
            raise InputError(
                f"the runs called {name!r} in {self.runs} are of the folder {before}, not of "
                f"{pictures}; give this one a name of its own: --set name=NAME"
            )

    @property
    def promotions(self) -> Path:
        """One JSON file an experiment: see `tasks.promotion`."""
        return self.root / "promotions"

    def promoted(self, experiment: str) -> dict[str, Any] | None:
        """Entry of the promoted model of an experiment: ``run``, ``model`` (a key), scores.

        Raises
        ------
        InputError
            If the file of its promotions is damaged.
        """
        path = self.promotions / f"{experiment}.json"
        if "/" in experiment or not path.is_file():
            return None
        try:
            entry = json.loads(read_text(path))["promoted"][-1]
            return {**entry, "run": str(entry["run"]), "model": str(entry["model"])}
        except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
            raise InputError(
                f"{path} does not say what is promoted; remove it to serve the latest run, or put "
                "it back as it was"
            ) from error

    def find_model(self, text: str) -> Reference:
        """Return the `encode` artifact that a word on the command line means.

        Parameters
        ----------
        text : str
            A key or its beginning; the name of a run; that of an experiment, which means its
            promoted model or, where none is promoted, its latest run; or that of an index, which
            means its latest state. ``NAME:METHOD`` means the model of that method, in the latest
            run of the name.

        Raises
        ------
        InputError
            If nothing matches.
        """
        text, separator, method = text.partition(":")
        if separator:
            return self._model_of_method(text, method)
        names = {record["experiment"] for record in self.run_records().values()}
        if text not in names and re.fullmatch(r"(encode/)?[0-9a-f]{6,64}", text.lower()):
            return self.store.resolve(text, "encode")
        if promoted := self.promoted(text):
            return Reference("encode", promoted["model"])
        _, record = self.find_run(text, "encode")
        return Reference("encode", record["artifacts"]["encode"])

    def _model_of_method(self, text: str, method: str) -> Reference:
        name, record = self.find_run(text, "evaluate")
        known: dict[str, str] = {}
        for methods in record["evaluations"].values():
            for title, evaluations in methods.items():
                known.setdefault(title, evaluations[0])
        if method not in known:
            raise InputError(
                f"run {name!r} has no method {method!r} but {', '.join(known)}"
                f"{did_you_mean(method, known)}"
            )
        return self.store.open(Reference.parse(known[method])).inputs["codes"]

    def metric_of(self, model: Reference) -> str:
        """Similarity by which the experiment that trained a model ranks; cosine if none is known.

        Parameters
        ----------
        model : Reference
            A `train` artifact.
        """
        for record in reversed(self.run_records().values()):
            if "configuration" in record and str(model) in record["all_artifacts"]:
                return self._metric_of(model, record)
        return "cosine"

    def _metric_of(self, model: Reference, record: dict[str, Any]) -> str:
        for methods in record.get("evaluations", {}).values():
            for evaluation in itertools.chain(*methods.values()):
                scored = self.store.find(Reference.parse(evaluation))
                codes = self.store.find(scored.inputs["codes"]) if scored else None
                if scored and codes and codes.inputs["model"] == model:
                    return str(scored.parameters["metric"])
        return str(record["configuration"]["evaluation"]["metric"])


def remote_of(url: str, where: str) -> Remote:
    """Return the remote of a URL; an `InputError` tells ``where`` a wrong one was given."""
    try:
        return open_remote(url)
    except RemoteURLError as error:
        raise InputError(f"{where}: {error}") from error


def source_of(record: dict[str, Any]) -> str:
    """What ``cppcl run`` is given for the experiment of a record."""
    return str(record.get("source") or record["experiment"])


def _read_record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(read_text(path))
        if {"experiment", "artifacts"} <= record.keys():
            return dict(record)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}); mend it, or remove it") from error
    except (ValueError, AttributeError, RecursionError):
        pass
    raise InputError(f"{path} is not the record of a run; remove it, or put it back as it was")
