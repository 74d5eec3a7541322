"""Ordered pairs from people's answers to which of two samples is easier."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.errors import InputError

COLUMNS = ("sample_a", "sample_b", "easier")
CHOICES = ("a", "b", "skip")


@dataclass(frozen=True)
class Answer:
    """Which of two samples, by their ids, someone found easier; 'skip' where undecided."""

    sample_a: str
    sample_b: str
    easier: Literal["a", "b", "skip"]


@dataclass(frozen=True)
class AnsweredPairs:
    """What answers say about the samples of one modality.

    Attributes
    ----------
    pairs : ExplicitPairs
        (harder, easier) in the order of the answers; a pair counts as often as it was answered.
    n_answers : int
        Answers in the table.
    n_skipped : int
        Answers that decide nothing.
    n_foreign : int
        Answers about a sample that is not among these.
    n_contradicted : int
        Pairs of samples that were answered both ways.
    n_in_cycles : int
        Listed pairs that close a cycle with others (a contradiction is the shortest one). They
        are kept: the slack of the pacing step bears them.
    """

    pairs: ExplicitPairs
    n_answers: int
    n_skipped: int
    n_foreign: int
    n_contradicted: int
    n_in_cycles: int

    def counts(self) -> dict[str, int]:
        """Return the counts, with the number of pairs, by name."""
        return {
            "pairs": len(self.pairs),
            "answers": self.n_answers,
            "skipped": self.n_skipped,
            "of other samples": self.n_foreign,
            "contradicted": self.n_contradicted,
            "in cycles": self.n_in_cycles,
        }


def read_answers(path: Path) -> list[Answer]:
    """Read a table of answers.

    Parameters
    ----------
    path : Path
        ``.csv`` with a head, or ``.jsonl`` with one JSON object a line. Columns are ``sample_a``
        and ``sample_b``, ids of samples, and ``easier``: ``a``, ``b``, or ``skip`` or nothing
        where undecided. Other columns, such as who answered, are passed over.

    Raises
    ------
    InputError
        The file is missing or of another kind, or a line of it is; the line is named.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"answers {path}: cannot be read ({error})") from error
    if path.suffix == ".csv":
        return _answers(path, _csv_rows(path, text))
    if path.suffix == ".jsonl":
        return _answers(path, _json_lines(path, text))
    raise InputError(f"answers {path}: give a .csv or .jsonl file with the columns {COLUMNS}")


def pairs_from_answers(
    answers: Sequence[Answer], ids: Sequence[str], *, share: float = 1.0, seed: int = 0
) -> AnsweredPairs:
    """Ordered pairs of the samples of one modality that people decided.

    Parameters
    ----------
    answers : sequence of Answer
        In the order in which pairs are listed.
    ids : sequence of str
        Id of each of the n samples; answers about others are counted and left out.
    share : float
        Share of the decided pairs to keep, drawn at random, in [0, 1].
    seed : int
        Of the draw.

    Raises
    ------
    InputError
        For a share out of range.
    """
    if not 0 <= share <= 1:
        raise InputError(f"answer_share={share} must be a share in [0, 1]")
    row_of = {name: row for row, name in enumerate(ids)}
    decided = [answer for answer in answers if answer.easier != "skip"]
    found = []
    for answer in decided:
        a, b = row_of.get(answer.sample_a), row_of.get(answer.sample_b)
        if a is not None and b is not None:
            found.append((b, a) if answer.easier == "a" else (a, b))
    listed = np.array(found, dtype=np.int64).reshape(-1, 2)
    draw = np.random.default_rng(seed).choice(
        len(listed), round(share * len(listed)), replace=False, shuffle=False
    )
    pairs = listed[np.sort(draw)]
    directions = {(int(harder), int(easier)) for harder, easier in pairs}
    return AnsweredPairs(
        ExplicitPairs(pairs, len(ids)),
        n_answers=len(answers),
        n_skipped=len(answers) - len(decided),
        n_foreign=len(decided) - len(listed),
        n_contradicted=sum((e, h) in directions for h, e in directions) // 2,
        n_in_cycles=count_in_cycles(pairs, len(ids)),
    )


def count_in_cycles(pairs: NDArray[np.int64], n_samples: int) -> int:
    """Count the pairs (harder, easier) that lie on a cycle: none can keep all of these."""
    from scipy import sparse

    if not len(pairs):
        return 0
    links = (np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1]))
    graph = sparse.coo_array(links, shape=(n_samples, n_samples)).tocsr()
    # Two samples lie on a cycle if and only if each is reached from the other.
    _, component = sparse.csgraph.connected_components(graph, connection="strong")
    return int((component[pairs[:, 0]] == component[pairs[:, 1]]).sum())


def _csv_rows(path: Path, text: str) -> Iterable[tuple[int, Any]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise InputError(
            f"answers {path}, line {reader.line_num + 1}: no CSV ({error})"
        ) from error


def _json_lines(path: Path, text: str) -> Iterable[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"answers {path}, line {number}: no JSON ({error})") from error


def _answers(path: Path, rows: Iterable[tuple[int, Any]]) -> list[Answer]:
    answers = []
    for number, row in rows:
        where = f"answers {path}, line {number}"
        if not isinstance(row, Mapping) or any(row.get(name) is None for name in COLUMNS[:2]):
            raise InputError(f"{where}: columns must be {', '.join(COLUMNS)}; got {row}")
        easier: Any = row.get("easier") or "skip"
        if easier not in CHOICES:
            raise InputError(f"{where}: easier={easier!r} must be one of {', '.join(CHOICES)}")
        a, b = str(row["sample_a"]), str(row["sample_b"])
        if a == b:
            raise InputError(f"{where}: sample_a and sample_b are both {a!r}; give two samples")
        answers.append(Answer(a, b, easier))
    return answers
