"""The part of a report on pacing: which samples entered when, and whether easy ones did first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import Picture
from cppcl.report.curricula import PLURAL
from cppcl.report.style import defaults, line, plain, png, tidy, whole_numbers
from cppcl.report.thumbnails import png_uri, thumbnail_uri
from cppcl.report.writing import csv_text, render_page

SELECTED_ABOVE = 0.5
"""A sample has entered when its pacing variable v is above this."""
MOST_STRIPS = 8
"""Strips of pictures of each modality; more rounds than that share some."""
N_SHOWN = 8
"""Pictures of each strip."""


FLAT = 0.01
"""Standard deviation of v, in the round where it is largest, below which samples count alike."""
PICTURE_SIDE = 64
"""Side of a picture of a strip, in pixels."""
QUARTERS = ("easiest quarter", "second", "third", "hardest quarter")


@dataclass(frozen=True)
class Entries:
    """Samples that entered in one round or in several that follow one another.

    Attributes
    ----------
    first, last : int
        The rounds, from 1.
    n_entered, n_so_far : int
        Samples that entered in them, and up to them.
    shown : (k,) int array
        Some of these samples, from the easiest on.
    """

    first: int
    last: int
    n_entered: int
    n_so_far: int
    shown: NDArray[np.int64]

    def __str__(self) -> str:
        one = self.first == self.last
        return f"Round {self.first}" if one else f"Rounds {self.first}–{self.last}"


@dataclass(frozen=True)
class ModalityPacing:
    """Training samples of one modality, and how much each counted in each round.

    Parameters
    ----------
    modality : str
        'sketch' or 'image'.
    v : (rounds, n) array
        Pacing variables after each round, in [0, 1].
    ids, labels : sequences of n str
        Identifier of each sample, and the label of its picture.
    easiness : (n,) array
        Score of each sample, higher meaning easier; NaN where there is none.
    score : str
        Extractor of these scores; empty where there is none.
    pictures : dict of int to ndarray
        Pictures, (h, w, 3) uint8, of the samples that `entries` show; empty where samples are no
        pictures.
    """

    modality: str
    v: NDArray[np.floating]
    ids: Sequence[str]
    labels: Sequence[str]
    easiness: NDArray[np.floating]
    score: str = ""
    pictures: Mapping[int, Picture] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if np.ndim(self.v) != 2 or not np.size(self.v):
            raise InputError(f"v has shape {np.shape(self.v)}; give (rounds, samples), not empty")
        n = self.v.shape[1]
        for name in ("ids", "labels", "easiness"):
            if (found := len(getattr(self, name))) != n:
                raise InputError(f"{name} are {found} and v is of {n} samples; give one a sample")

    @cached_property
    def entry_rounds(self) -> NDArray[np.int64]:
        """Round in which each sample entered, (n,); see `entry_rounds`."""
        return entry_rounds(self.v)

    @cached_property
    def mean_v(self) -> NDArray[np.float64]:
        """Mean pacing variable of each sample over rounds, (n,)."""
        mean: NDArray[np.float64] = self.v.mean(axis=0, dtype=np.float64)
        return mean

    @cached_property
    def entries(self) -> list[Entries]:
        """Samples by the round in which they entered, see `entries_of`."""
        return entries_of(self.entry_rounds, self.easiness, self.mean_v)

    @cached_property
    def widest(self) -> int:
        """Round, from 0, in which v tells samples apart most."""
        return int(self.v.std(axis=1, dtype=np.float64).argmax())

    @property
    def largest_sd(self) -> float:
        """Standard deviation of v over samples, in the round where it is largest."""
        return float(self.v[self.widest].std(dtype=np.float64))

    @property
    def n_scored(self) -> int:
        """Samples with a score."""
        return int(np.isfinite(self.easiness).sum())

    def correlations(self) -> tuple[float, float]:
        """Spearman's correlation of easiness with entry round, and with the mean of v.

        Negative and positive where easier samples enter earlier. A sample that never entered
        comes after all rounds. NaN where either does not vary.
        """
        never = len(self.v) + 1
        rounds = np.where(self.entry_rounds > 0, self.entry_rounds, never)
        return rank_correlation(self.easiness, rounds), rank_correlation(
            self.easiness, self.mean_v
        )


@dataclass(frozen=True)
class MethodPacing:
    """Pacing of one method on one split.

    Parameters
    ----------
    method : str
        Which.
    modalities : sequence of ModalityPacing
        Of both modalities.
    curricula : sequence of str
        Modalities whose curricula took part in its training.
    """

    method: str
    modalities: Sequence[ModalityPacing]
    curricula: Sequence[str] = ()


def entry_rounds(v: NDArray[np.floating]) -> NDArray[np.int64]:
    """Round, from 1, in which each sample entered; 0 for one that never did.

    A sample enters in the first round after which its pacing variable is above one half. By
    itself that is when its loss falls below gamma / E with regulariser A, relaxed or binary, and
    below gamma / 2 with regulariser B.

    Parameters
    ----------
    v : (rounds, n) array
        Pacing variables after each round.
    """
    above = np.asarray(v) > SELECTED_ABOVE
    return np.where(above.any(axis=0), above.argmax(axis=0) + 1, 0).astype(np.int64)


def entries_of(
    rounds: NDArray[np.int64], easiness: NDArray[np.floating], mean_v: NDArray[np.floating]
) -> list[Entries]:
    """Samples by the round in which they entered, with some that stand for them.

    Those shown are evenly spaced in the order of their easiness, those without a score last, by
    their mean v. Rounds in which none entered are left out; more than `MOST_STRIPS` are put
    together with their neighbours.

    Parameters
    ----------
    rounds : (n,) int array
        Of each sample, 0 for one that never entered.
    easiness, mean_v : (n,) arrays
        Scores, NaN where there is none, and mean pacing variables.
    """
    known = np.unique(rounds[rounds > 0])
    # Easiest first; samples without a score, NaN, sort last.
    order = np.lexsort((-mean_v, -np.asarray(easiness, np.float64)))
    found: list[Entries] = []
    so_far = 0
    for group in np.array_split(known, min(len(known), MOST_STRIPS)) if len(known) else ():
        members = order[np.isin(rounds[order], group)]
        so_far += len(members)
        at = np.linspace(0, len(members) - 1, min(N_SHOWN, len(members))).round().astype(np.int64)
        found.append(Entries(int(group[0]), int(group[-1]), len(members), so_far, members[at]))
    return found


def rank_correlation(easiness: NDArray[np.floating], other: NDArray[Any]) -> float:
    """Spearman's correlation over samples with a score; NaN where either does not vary."""
    known = np.isfinite(easiness)
    one, two = easiness[known], other[known]
    if len(one) < 2 or not np.ptp(one) or not np.ptp(two):
        return float("nan")
    return float(np.corrcoef(mean_ranks(one), mean_ranks(two))[0, 1])


def mean_ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Rank of each value from 0; equal values have the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts + 1) / 2)[place]
    return ranks


def render_pacing(
    result: MethodPacing, protocol: str, file_name: str
) -> tuple[str, dict[str, bytes]]:
    """Render pacing: the HTML of a section, and the files beside it.

    Parameters
    ----------
    result : MethodPacing
        Of one method.
    protocol, file_name : str
        Name for the texts of pictures, and its form in names of files.

    Returns
    -------
    str, dict of str to bytes
        The section; and ``pacing_<file_name>.csv`` with every sample, and
        ``pacing_by_easiness_<file_name>.png``.
    """
    table, figure = f"pacing_{file_name}.csv", pacing_png(result.modalities)
    html = render_page(
        "pacing.html",
        result=result,
        protocol=protocol,
        uri=png_uri(figure),
        table=table,
        most=N_SHOWN,
        rows=[(PLURAL[pacing.modality], cells(pacing)) for pacing in result.modalities],
        imposed=" and ".join(PLURAL[modality] for modality in result.curricula),
        shown=[
            {
                "plural": PLURAL[pacing.modality],
                "facts": facts(pacing),
                "strips": strips(pacing) if pacing.pictures else [],
            }
            for pacing in result.modalities
        ],
    )
    return html, {
        table: pacing_csv(result.modalities).encode(),
        f"pacing_by_easiness_{file_name}.png": figure,
    }


def cells(pacing: ModalityPacing) -> list[str]:
    """Texts of a modality's row: score, n, both correlations and the largest deviation of v."""
    numbers = ["–" if value != value else f"{value:+.2f}" for value in pacing.correlations()]
    return [pacing.score or "none", f"{pacing.n_scored:,}", *numbers, f"{pacing.largest_sd:.2g}"]


def facts(pacing: ModalityPacing) -> list[str]:
    """Sentences on when samples of a modality entered."""
    n_rounds, n = pacing.v.shape
    plural, entered = PLURAL[pacing.modality], pacing.entry_rounds > 0
    values = pacing.v[pacing.widest]
    sentences = [
        f"{n:,} training {plural}, {n_rounds} rounds. v varies most in round {pacing.widest + 1}: "
        f"from {values.min():.2f} to {values.max():.2f}, standard deviation "
        f"{pacing.largest_sd:.2g}."
    ]
    if pacing.largest_sd < FLAT:
        sentences.append(
            f"The pacing is flat: all {plural} count nearly alike at any time, and their order "
            "below rests on small differences."
        )
    elif len(pacing.entries) == 1 and entered.all():
        sentences.append("All entered together; v itself, averaged over rounds, orders them.")
    if never := int((~entered).sum()):
        sentences.append(f"{never:,} never entered: their v stays at {SELECTED_ABOVE:g} or below.")
    after = np.arange(1, n_rounds + 1)[:, None] > pacing.entry_rounds
    if left := int(((pacing.v <= SELECTED_ABOVE) & after & entered).any(axis=0).sum()):
        sentences.append(f"{left:,} fell back in a later round.")
    return sentences


def strips(pacing: ModalityPacing) -> list[dict[str, Any]]:
    """Pictures of samples that entered, by round, with their labels and scores."""
    return [
        {
            "title": f"{entries}: {entries.n_entered:,} entered, {entries.n_so_far:,} of "
            f"{pacing.v.shape[1]:,} so far",
            "name": f"{PLURAL[pacing.modality]} that entered in {str(entries).lower()}",
            "alt": f"{pacing.modality} of {str(entries).lower()}",
            "pictures": [
                (
                    pacing.labels[k],
                    f"{pacing.easiness[k]:.3g}" if np.isfinite(pacing.easiness[k]) else "",
                    thumbnail_uri(pacing.pictures[k], PICTURE_SIDE),
                )
                for k in entries.shown.tolist()
            ],
        }
        for entries in pacing.entries
    ]


def pacing_csv(modalities: Sequence[ModalityPacing]) -> str:
    """Every sample: its easiness, the round in which it entered, and v after each round.

    ``entry_round`` is empty for a sample that never entered, ``easiness`` for one without score.
    """
    rounds = [f"v_{k + 1}" for k in range(len(modalities[0].v))]
    rows = [
        (
            *(pacing.ids[k], pacing.modality),
            f"{pacing.easiness[k]:.6g}" if np.isfinite(pacing.easiness[k]) else "",
            pacing.entry_rounds[k] or "",
            *(f"{value:.6g}" for value in pacing.v[:, k].tolist()),
        )
        for pacing in modalities
        for k in range(pacing.v.shape[1])
    ]
    return csv_text(("sample", "modality", "easiness", "entry_round", *rounds), rows)


def mean_v_of_quarters(pacing: ModalityPacing) -> list[NDArray[np.float64]]:
    """Mean pacing variable, (rounds,), of each quarter by easiness; of all where none is known."""
    known = np.flatnonzero(np.isfinite(pacing.easiness))
    if len(known) < len(QUARTERS):
        return [pacing.v.mean(axis=1, dtype=np.float64)]
    order = known[np.argsort(-pacing.easiness[known], kind="stable")]
    return [
        pacing.v[:, rows].mean(axis=1, dtype=np.float64)
        for rows in np.array_split(order, len(QUARTERS))
    ]


def pacing_png(modalities: Sequence[ModalityPacing]) -> bytes:
    """Mean v of each quarter of the samples by easiness over rounds, a panel each modality."""
    from matplotlib.figure import Figure

    with defaults():
        figure = Figure(figsize=(3.2 * len(modalities), 2.6), layout="constrained")
        panels = figure.subplots(1, len(modalities), squeeze=False, sharey=True)[0]
        for axes, pacing in zip(panels, modalities, strict=True):
            tidy(axes)
            curves = mean_v_of_quarters(pacing)
            names = QUARTERS if len(curves) == len(QUARTERS) else ("all",)
            for number, (name, curve) in enumerate(zip(names, curves, strict=True)):
                axes.plot(np.arange(1, len(curve) + 1), curve, marker=".", **line(number, name))
            axes.set_title(plain(PLURAL[pacing.modality]), fontsize=9)
            axes.set(xlabel="round", ylim=(0, 1.02))
            whole_numbers(axes)
        panels[0].set_ylabel("mean v")
        panels[-1].legend(frameon=False, fontsize=8, loc="best")
        return png(figure)
