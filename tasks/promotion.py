"""Which model of an experiment is served: promoted while its score holds, and taken back.

The record of an experiment is one small file in the workspace, ``promotions/EXPERIMENT.json``:
``promoted``, the models promoted so far, the last of which is served, and ``withdrawn``, those
that were taken back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cppcl.errors import InputError
from cppcl.report.tables import score_name
from storage import Artifact, Reference
from storage.files import locked, pretty_json, write_atomically
from tasks.workspace import Workspace

TOLERANCE = 0.01
"""How far a score may fall, as a share: one point of a per cent."""

Entry = dict[str, Any]
_OF_ENTRIES = frozenset(
    ("run", "model", "protocol", "method", "score_name", "score", "test", "promoted", "bar")
)


@dataclass(frozen=True)
class Decision:
    """Outcome of a promotion.

    Attributes
    ----------
    promoted : bool
        True if the model of the run is served now.
    reason : str
        A sentence that says why.
    entry : dict
        ``run``, ``model``, ``score`` and what it is of, ``bar``.
    """

    promoted: bool
    reason: str
    entry: Entry


def promote(
    workspace: Workspace,
    experiment: str,
    *,
    run: str | None = None,
    method: str | None = None,
    score: str = "auto",
    tolerance: float = TOLERANCE,
    force: bool = False,
) -> Decision:
    """Promote the model of a run if its score is at most `tolerance` below the bar.

    The bar is the best score of what was promoted, so that many small losses cannot add up.

    Parameters
    ----------
    workspace : Workspace
        Where runs are recorded.
    experiment : str
        Name of the experiment.
    run : str, optional
        Name of one of its runs; the latest that was evaluated by default.
    method : str, optional
        Method whose model it is; the one that answers in that run by default.
    score : str
        ``map`` or ``rank_k`` of the evaluation; ``validation``, what the search of options
        reached on training pictures alone; or ``auto``, the latter where there was a search, and
        else rank-1 of instances or ``map`` of classes. Means over splits.
    tolerance : float
        How far it may be below the bar, as a share.
    force : bool
        Promote whatever the score is; it is the bar from then on.

    Raises
    ------
    InputError
        If there is no such run, or it has no such score.
    """
    if not tolerance >= 0:
        raise InputError(f"tolerance is {tolerance}; give a share from 0 on, such as 0.01")
    name, record = workspace.find_run(run or experiment, "evaluate")
    if record["experiment"] != experiment:
        raise InputError(
            f"run {name!r} is one of experiment {record['experiment']!r}, not of {experiment!r}"
        )
    with _changing(workspace, experiment) as state:
        before: Entry | None = state["promoted"][-1] if state["promoted"] else None
        entry = score_of(workspace, name, record, _asked(score, before), method)
        entry["promoted"] = datetime.now(UTC).isoformat(timespec="seconds")
        refusal = None if force else _refusal(entry, before, state["withdrawn"], tolerance)
        if refusal:
            return Decision(False, refusal, entry)
        if before and before["model"] == entry["model"] and not force:
            return Decision(True, f"{name} has the model that is promoted already", before)
        # A model that cannot be opened must not be served.
        workspace.store.open(Reference("encode", entry["model"]))
        entry["bar"] = entry["score"]
        if before and not force:
            entry["bar"] = max(entry["score"], before["bar"])
        state["promoted"].append(entry)
        state["withdrawn"] = [w for w in state["withdrawn"] if w["model"] != entry["model"]]
    return Decision(True, f"promoted {name}: {_words(entry)}", entry)


def take_back(workspace: Workspace, experiment: str) -> tuple[Entry, Entry]:
    """Serve again the model that was promoted before the present one.

    Returns
    -------
    (dict, dict)
        The entry that was withdrawn, and the one that is served now.

    Raises
    ------
    InputError
        If none was promoted before.
    """
    with _changing(workspace, experiment) as state:
        if len(state["promoted"]) < 2:
            label = f"only {state['promoted'][0]['run']}" if state["promoted"] else "nothing"
            raise InputError(
                f"{label} was promoted for {experiment!r}, so there is nothing to go back to; any "
                f"run is promoted by: cppcl promote {experiment} --run RUN --force"
            )
        workspace.store.open(Reference("encode", state["promoted"][-2]["model"]))
        withdrawn = state["promoted"].pop()
        state["withdrawn"].append(withdrawn)
    return withdrawn, state["promoted"][-1]


def promoted_runs(workspace: Workspace) -> Iterator[str]:
    """Names of the runs whose models are served, or would be after one step back."""
    if workspace.promotions.is_dir():
        for path in sorted(workspace.promotions.glob("*.json")):
            workspace.promoted(path.stem)  # complains of a damaged file
            yield from (entry["run"] for entry in _read(workspace, path.stem)["promoted"][-2:])


def history(workspace: Workspace, experiment: str) -> list[Entry]:
    """Entries, oldest first, each with ``state``: ``before``, ``served`` or ``withdrawn``."""
    state = _read(workspace, experiment)
    kept = [entry | {"state": "before"} for entry in state["promoted"]]
    if kept:
        kept[-1]["state"] = "served"
    withdrawn = [entry | {"state": "withdrawn"} for entry in state["withdrawn"]]
    return sorted(kept + withdrawn, key=lambda entry: str(entry["promoted"]))


def score_of(
    workspace: Workspace,
    name: str,
    record: dict[str, Any],
    score: str,
    method: str | None = None,
) -> Entry:
    """Score of a method of a run, over all splits: that which answers if none is named.

    Raises
    ------
    InputError
        If the run has no such score.
    """
    model = Reference("encode", record["artifacts"]["encode"])
    if method is not None:
        model = workspace.find_model(f"{name}:{method}")
    protocol, method, first = _served(workspace, name, record, model)
    searches = record.get("tuned", {}).get(protocol, {}).get(method, [])
    if score == "auto":
        by_group = first.parameters["target"] == "groups"
        score = "validation" if searches else "rank_1" if by_group else "map"
    entry = {
        "run": name,
        "model": model.key,
        "protocol": protocol,
        "method": method,
        "score_name": score,
        "test": str(first.inputs["split"]),
    }
    if score == "validation":
        if not searches:
            raise InputError(
                f"run {name!r} searched no options for {method!r}, so it has no validation score; "
                "give --score map, or rank_1"
            )
        best = [row["mean"] for search in searches for row in search["table"] if row["best"]]
        return {**entry, "score": sum(best) / len(best)}
    scores = record["metrics"][protocol][method]
    if score not in scores or score.endswith("_std"):
        known = ", ".join(key for key in scores if not key.endswith("_std"))
        raise InputError(f"--score {score!r} is not one of run {name!r}: {known}, validation")
    return {**entry, "score": scores[score]}


def _served(
    workspace: Workspace, name: str, record: dict[str, Any], model: Reference
) -> tuple[str, str, Artifact]:
    """Protocol and method of a model of a run, and its evaluation."""
    for protocol, methods in record["evaluations"].items():
        for method, references in methods.items():
            first = workspace.store.open(Reference.parse(references[0]))
            if first.inputs["codes"] == model:
                return protocol, method, first
    raise InputError(f"run {name!r} has no evaluation of the model that it serves, {model}")


def _asked(score: str, before: Entry | None) -> str:
    """What was asked for, or what the promoted model was judged by."""
    return str(before["score_name"]) if score == "auto" and before else score


def _refusal(
    entry: Entry, before: Entry | None, withdrawn: list[Entry], tolerance: float
) -> str | None:
    """Why a run is not promoted, or None."""
    if any(entry["model"] == other["model"] for other in withdrawn):
        return f"the model of {entry['run']} was taken back; --force promotes it again"
    if before is None or before["model"] == entry["model"]:
        return None
    kind = [(e["protocol"], e["method"], e["score_name"]) for e in (entry, before)]
    if kind[0] != kind[1]:
        return (
            f"{entry['run']} has {_words(entry)}, the promoted {before['run']} {_words(before)}, "
            "which do not compare; --force promotes it"
        )
    if entry["score"] < before["bar"] - tolerance:
        other = "" if entry["test"] == before["test"] else ", on other test pictures"
        return (
            f"{entry['run']} has {_words(entry)}{other}; what was promoted had "
            f"{100 * before['bar']:.1f}, more than the {100 * tolerance:.1f} points above it that "
            f"are tolerated, so {before['run']} stays; --force promotes it"
        )
    return None


def _words(entry: Entry) -> str:
    reached = f"{score_name(entry['score_name'])} {100 * entry['score']:.1f} per cent"
    return f"{reached} of {entry['method']} ({entry['protocol']})"


def _read(workspace: Workspace, experiment: str) -> dict[str, list[Entry]]:
    path = workspace.promotions / f"{experiment}.json"
    if "/" in experiment or not path.is_file():
        return {"promoted": [], "withdrawn": []}
    workspace.promoted(experiment)
    state = json.loads(path.read_text())
    kept = {"promoted": state["promoted"], "withdrawn": state.get("withdrawn", [])}
    for kind, entries in kept.items():
        if not isinstance(entries, list):
            raise InputError(f"{path}: {kind} is no list of entries; put it back as it was")
        for number, entry in enumerate(entries):
            missing = _OF_ENTRIES.difference(entry if isinstance(entry, dict) else ())
            if missing:
                raise InputError(
                    f"{path}: {kind}[{number}] has no {min(missing)}; remove the file to serve "
                    "the latest run, or put it back as it was"
                )
    return kept


@contextmanager
def _changing(workspace: Workspace, experiment: str) -> Iterator[dict[str, list[Entry]]]:
    """State to be changed in place, alone; written at the end if it has changed."""
    path = workspace.promotions / f"{experiment}.json"
    with locked(workspace.root / "store" / "locks" / f"promotion-{experiment}.lock"):
        state = _read(workspace, experiment)
        before = json.dumps(state)
        yield state
        if json.dumps(state) == before:
            return
        document = {"experiment": experiment, **state}
        write_atomically(path, pretty_json(document, str(path)))
