"""Render a report: one page that opens anywhere, with tables and figures beside it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from cppcl.report import comparisons, figures, tables
from cppcl.report.curricula import render_curricula
from cppcl.report.data import LearnedFeatures, ProtocolResult, ReportData, ResultGrid
from cppcl.report.noise import noise_curves
from cppcl.report.on_the_fly import on_the_fly_csv, on_the_fly_png
from cppcl.report.pacing import render_pacing
from cppcl.report.thumbnails import png_uri, smaller_png, thumbnail_uri
from cppcl.report.writing import render_page


def render_report(data: ReportData) -> dict[str, bytes]:
    """Render a report into files.

    Parameters
    ----------
    data : ReportData
        What it shows.

    Returns
    -------
    dict of str to bytes
        ``report.html``, one page that refers to nothing outside itself; ``scores.csv`` (every
        split), ``summary.csv`` (means, deviations, chance), ``precision_recall.csv``, and
        ``differences.csv`` and ``published.csv`` where there are any (``comparisons.json`` holds
        both); and for each protocol ``precision_recall_<protocol>.png``, and
        ``rank_k_<protocol>.png``, ``pacing_<protocol>.png``, ``grid_<protocol>.png`` and
        ``easiness_<protocol>.png`` where there is something to show, and
        ``pacing_<protocol>.csv`` and ``pacing_by_easiness_<protocol>.png`` where the pacing of
        every round is known; and ``learned_<key>.png`` of each `learn` artifact that has a
        picture; and ``noise_<kind>.png`` where protocols differ in how much of their training is
        wrong; and ``on_the_fly.csv`` and ``on_the_fly_<protocol>.png`` where sketches were asked
        over the course of their drawing. The same data give the same bytes with the same library
        versions.
    """
    import yaml

    written: dict[str, bytes] = {}
    names = _file_names([protocol.name for protocol in data.protocols])
    sections = []
    for name, protocol in zip(names, data.protocols, strict=True):
        pictures = _figures(protocol)
        written |= {f"{kind}_{name}.png": png for kind, png in pictures.items()}
        sections.append(_section(name, protocol, pictures))
        if protocol.curricula:
            html, histogram = render_curricula(protocol.curricula, protocol.name)
            sections[-1]["curricula"] = html
            written[f"easiness_{name}.png"] = histogram
        if protocol.pacing:
            sections[-1]["pacing"], beside = render_pacing(protocol.pacing, protocol.name, name)
            written |= beside
    noise = []
    for number, curve in enumerate(noise_curves(data.protocols)):
        kind = curve.kind.replace("_", "-") + (f"-{number}" if number else "")
        written[f"noise_{kind}.png"] = drawing = curve.picture()
        noise.append((curve, png_uri(drawing)))
    drawn = [(learned, learned.picture) for learned in data.learned if learned.picture]
    written |= {f"learned_{_key(learned)}.png": picture for learned, picture in drawn}
    configuration = yaml.safe_dump(
        dict(data.configuration), sort_keys=False, allow_unicode=True, width=88
    )
    page = render_page(
        "report.html",
        data=data,
        sections=sections,
        noise=noise,
        configuration=configuration,
        # One stands for those of the other splits, which are files beside the page.
        drawings=[(learned, png_uri(smaller_png(picture))) for learned, picture in drawn[:1]],
        other_drawings=[f"learned_{_key(learned)}.png" for learned, _ in drawn[1:]],
        seconds=sum(stage.seconds for stage in data.stages),
        asked=figures.QUERY,
        right=figures.RIGHT,
        wrong=figures.WRONG,
    )
    texts = {
        "report.html": page,
        "scores.csv": tables.scores_csv(data),
        "summary.csv": tables.summary_csv(data),
        "precision_recall.csv": tables.precision_recall_csv(data),
        "differences.csv": comparisons.differences_csv(data),
        "published.csv": comparisons.published_csv(data),
        "on_the_fly.csv": on_the_fly_csv(data),
        comparisons.COMPARISONS: comparisons.comparisons_json(data),
    }
    return {**{name: text.encode() for name, text in texts.items() if text}, **written}


def _figures(protocol: ProtocolResult) -> dict[str, bytes]:
    drawn = {
        "precision_recall": figures.precision_recall_png(protocol),
        "rank_k": figures.cumulative_match_png(protocol),
        "pacing": figures.history_png(protocol),
        "grid": figures.grid_png(protocol.grid) if protocol.grid else None,
        "on_the_fly": on_the_fly_png(protocol),
    }
    return {kind: png for kind, png in drawn.items() if png is not None}


def _section(name: str, protocol: ProtocolResult, pictures: dict[str, bytes]) -> dict[str, Any]:
    curves = [np.asarray(method.precision_recall) for method in protocol.methods.values()]
    return {
        "anchor": name,
        "protocol": protocol,
        "headline": tables.headline(protocol),
        "n_splits": sorted({len(method.scores) for method in protocol.methods.values()}),
        "scores": tables.score_table(protocol),
        "first": next(iter(protocol.methods)),
        "score": tables.score_caption(protocol.main_score).replace(" (%)", ""),
        "conventions": tables.conventions(protocol),
        "published": comparisons.published_table(protocol),
        "published_title": comparisons.published_title(protocol),
        "differences": comparisons.difference_table(protocol),
        "sentence": comparisons.difference_sentence(protocol),
        "matches": tables.match_table(protocol),
        "counts": tables.count_table(protocol),
        "training": tables.training_table(protocol),
        "flat": all(np.ptp(curve) < 1e-9 for curve in curves),
        "uris": {kind: png_uri(png) for kind, png in pictures.items() if kind != "grid"},
        "grid": _grid(protocol.grid) if protocol.grid else None,
        "curricula": "",
        "pacing": "",
    }


def _grid(grid: ResultGrid) -> list[dict[str, Any]]:
    return [
        {
            "label": query.label,
            "uri": thumbnail_uri(query.picture),
            "nearest": [
                {
                    "label": found.label,
                    "uri": thumbnail_uri(found.picture),
                    "correct": found.correct,
                    "similarity": f"{found.similarity:.2f}"
                    if np.isfinite(found.similarity)
                    else "no code",
                }
                for found in query.nearest
            ],
        }
        for query in grid.queries
    ]


def _key(learned: LearnedFeatures) -> str:
    return learned.artifact.rpartition("/")[2][:12]


def _file_names(names: list[str]) -> list[str]:
    """Names safe in a file system and an anchor, different where the given ones are."""
    safe: list[str] = []
    for number, name in enumerate(names):
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "protocol"
        safe.append(plain if plain not in safe else f"{plain}-{number}")
    return safe
