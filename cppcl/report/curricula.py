"""The part of a report on curricula: easy and hard pictures, and the number of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.scores import n_kept
from cppcl.curriculum.semiorder import order_by_scores
from cppcl.errors import InputError
from cppcl.features.base import Picture
from cppcl.report.style import COLOURS, defaults, plain, png, tidy
from cppcl.report.thumbnails import png_uri, thumbnail_uri
from cppcl.report.writing import render_page

DELTAS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0)
"""Thresholds at which pairs are counted, in standard deviations of the scores."""
RHOS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
"""Shares of the admissible pairs."""
ANSWERS = {
    "simulated": "Answers of a simulated annotator",
    "drawn": "Pairs of unfinished drawings of the same thing",
}
PLURAL = {"sketch": "sketches", "image": "images"}


@dataclass(frozen=True)
class ScoredPicture:
    """A training picture, (h, w, 3) uint8, its label and its score."""

    picture: Picture
    label: str
    score: float


@dataclass(frozen=True)
class CurriculumResult:
    """The curriculum of one modality on one split.

    Parameters
    ----------
    modality : str
        'sketch' or 'image'.
    score : str
        What scored its pictures.
    scores : (n,) array
        Of the training pictures, NaN where there is none.
    counts : dict
        As ``counts.json`` of the stage holds them: ``hinges``, ``admissible``, and ``answers``
        and ``agreement`` where people answered, or an ``annotator`` that is no person.
    pairs : (len(DELTAS), len(RHOS)) int array
        Pairs at each threshold and share, see `count_pairs`.
    easiest, hardest : sequence of ScoredPicture
        From the easiest, and from the hardest on; empty where samples are no pictures.
    options : dict
        Of its pairs, as `cppcl.curriculum.build.build_curriculum` takes them: ``delta``, ``rho``
        and others; those that are missing are not shown.
    """

    modality: str
    score: str
    scores: NDArray[np.floating]
    counts: Mapping[str, Any]
    pairs: NDArray[np.integer]
    easiest: Sequence[ScoredPicture] = field(default=())
    hardest: Sequence[ScoredPicture] = field(default=())
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        expected = (len(DELTAS), len(RHOS))
        if np.shape(self.pairs) != expected:
            raise InputError(f"pairs have shape {np.shape(self.pairs)}; give {expected} numbers")


def count_pairs(
    scores: NDArray[np.floating], labels: Any, scope: Any, maximum_pairs: int | None
) -> NDArray[np.int64]:
    """Pairs that a sample would keep at each of `DELTAS` and `RHOS`, (6, 6).

    Parameters
    ----------
    scores, labels, scope
        As in `cppcl.curriculum.semiorder.order_by_scores`.
    maximum_pairs : int or None
        As in `cppcl.curriculum.scores.draw_pairs`.
    """
    admissible = [order_by_scores(scores, labels, delta=d, scope=scope).n_pairs for d in DELTAS]
    return np.array([[n_kept(n, rho, maximum_pairs) for rho in RHOS] for n in admissible])


def render_curricula(results: Sequence[CurriculumResult], protocol: str) -> tuple[str, bytes]:
    """Render curricula: the HTML of a section, and the PNG of its histograms.

    Parameters
    ----------
    results : sequence of CurriculumResult
        Of the modalities of one split, at least one.
    protocol : str
        Name for the text of the figure.
    """
    histogram = histograms_png(results)
    shown = [
        {
            "result": result,
            "title": f"{PLURAL[result.modality]} by {result.score}",
            "facts": facts(result),
            "plural": PLURAL[result.modality],
            "strips": [
                (name, [(p.label, f"{p.score:.3g}", thumbnail_uri(p.picture)) for p in strip])
                for name, strip in (("easiest", result.easiest), ("hardest", result.hardest))
                if strip
            ],
            "rows": [
                (f"{delta:g}", [f"{n:,}" for n in row])
                for delta, row in zip(DELTAS, result.pairs, strict=True)
            ],
        }
        for result in results
    ]
    html = render_page(
        "curricula.html",
        shown=shown,
        rhos=[f"{rho:g}" for rho in RHOS],
        uri=png_uri(histogram),
        protocol=protocol,
    )
    return html, histogram


def facts(result: CurriculumResult) -> list[str]:
    """Sentences on the size of a curriculum and on its agreement with people."""
    counts = result.counts
    n_scored = int(np.isfinite(result.scores).sum())
    found = [
        f"{n_scored:,} of {len(result.scores):,} training pictures have a score; scores admit "
        f"{counts['admissible']:,} pairs, and {counts['hinges']:,} hinges are trained with."
    ]
    sentences = [
        f"{name}: {result.options[option]}"
        for option, name in (
            ("pair_form", "form"),
            ("delta", "δ"),
            ("delta_unit", "in"),
            ("rho", "ρ"),
            ("scope", "scope"),
        )
        if option in result.options
    ]
    if sentences:
        found.append(f"Options of these pairs: {', '.join(sentences)}.")
    if answers := counts.get("answers"):
        whose = ANSWERS.get(counts.get("annotator", ""), "People's answers")
        found.append(
            f"{whose}: {answers['answers']:,}, of which {answers['skipped']:,} skip and "
            f"{answers['of other samples']:,} are of other samples; {answers['pairs']:,} pairs, "
            f"{answers['contradicted']:,} answered both ways, {answers['in cycles']:,} in cycles."
        )
    if agreement := counts.get("agreement"):
        kendall, spearman = (_number(agreement[name]) for name in ("kendall", "spearman"))
        found.append(
            f"Agreement of scores and answers over {agreement['n_pairs']:,} pairs of "
            f"{agreement['n_samples']:,} samples: Kendall's tau {kendall}, Spearman's correlation "
            f"{spearman} (with the share of answers in which a sample was the easier one)."
        )
    return found


def histograms_png(results: Sequence[CurriculumResult]) -> bytes:
    """Histogram of the scores of every modality, a panel each."""
    from matplotlib.figure import Figure

    with defaults():
        figure = Figure(figsize=(3.2 * len(results), 2.4), layout="constrained")
        panels = figure.subplots(1, len(results), squeeze=False)[0]
        for number, (axes, result) in enumerate(zip(panels, results, strict=True)):
            tidy(axes)
            known = result.scores[np.isfinite(result.scores)]
            axes.hist(known, bins=min(30, max(5, len(known) // 5)), color=COLOURS[number])
            axes.set_xlabel(plain(f"{result.score}, {PLURAL[result.modality]}"))
            axes.set_ylabel("pictures")
        return png(figure)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
