"""Score one method's codes on the test rows of a split."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.unfinished import drawn_shares
from cppcl.methods import method_class
from cppcl.modality import MODALITIES
from cppcl.retrieval.cutoffs import Denominator
from cppcl.retrieval.metrics import RankingScores
from cppcl.retrieval.metrics import evaluate as evaluate_codes
from cppcl.retrieval.on_the_fly import CONVENTION as ON_THE_FLY
from cppcl.retrieval.on_the_fly import chance as chance_on_the_fly
from cppcl.retrieval.on_the_fly import course
from storage import Recipe, Reference, Store, Writer
from tasks.lineage import Lineage, by_modality
from tasks.progress import log
from tasks.samples import Target, open_pictures, open_split, targets, test_rows, usable_rows
from tasks.stages.contract import Mode, StageResult, produce, stage_task
from tasks.workspace import Workspace

VERSION = "1"
DRAWN_SHARES = "drawn_shares"
"""Array of an evaluation on the fly: share of the ink that is there in each query."""


@dataclass(frozen=True)
class TestSet:
    """Codes and classes of the test rows whose pictures could be used."""

    query_rows: NDArray[np.int64]
    gallery_rows: NDArray[np.int64]
    query_codes: NDArray[np.floating]
    gallery_codes: NDArray[np.floating]
    query_labels: NDArray[np.str_]
    gallery_labels: NDArray[np.str_]
    query_classes: NDArray[np.str_]
    gallery_classes: NDArray[np.str_]


def open_test_set(
    store: Store, codes: Reference, split: Reference, table: Reference, target: Target
) -> TestSet:
    """Gather what is ranked: test sketches are queries, test images the gallery."""
    artifact = store.open(codes)
    features = by_modality(artifact, "features")
    samples = open_pictures(store, table).table
    rows_of = open_split(store, split)
    parts: list[Any] = []
    for modality in MODALITIES:
        rows = test_rows(rows_of, modality)
        rows = rows[usable_rows(store.open(features[modality]))[rows]]
        parts.append(
            (
                rows,
                artifact.rows(f"{modality}_codes", rows),
                targets(samples, modality, target, rows),
                targets(samples, modality, "labels", rows),
            )
        )
    return TestSet(*(of_modality[n] for n in range(4) for of_modality in parts))


def evaluate_method(
    *,
    workspace: Workspace,
    table: Reference,
    split: Reference,
    codes: Reference,
    target: Target,
    metric: str,
    ranks: tuple[int, ...],
    seed: int,
    radius: int | None = None,
    precisions: tuple[int, ...] | None = None,
    map_at: tuple[int, ...] = (),
    denominators: tuple[Denominator, ...] = ("R",),
    in_class: bool = False,
    on_the_fly: bool = False,
    label: str = "",
    mode: Mode = "reuse",
) -> StageResult:
    """Publish the scores of a method on a split, with chance and the convention.

    A Hamming radius is for binary codes alone, and in their key alone. What else is asked for
    beyond rank-k and the mean average precision is in the key where it is.
    """
    store = workspace.store
    asked: dict[str, Any] = {} if radius is None else {"radius": radius}
    if precisions is not None:
        asked["precisions"] = list(precisions)
    if map_at:
        asked |= {"map_at": list(map_at), "denominators": list(denominators)}
    if in_class := in_class and target == "groups":
        asked["in_class"] = True
    if on_the_fly:
        asked["on_the_fly"] = True
    recipe = Recipe(
        "evaluate",
        VERSION,
        {"target": target, "metric": metric, "ranks": list(ranks), "seed": seed, **asked},
        {"table": table, "split": split, "codes": codes},
    )

    def create(writer: Writer) -> None:
        test = open_test_set(store, codes, split, table, target)
        result = evaluate_codes(
            test.query_codes,
            test.gallery_codes,
            test.query_labels,
            test.gallery_labels,
            metric=metric,  # type: ignore[arg-type]
            ranks=ranks,
            radius=radius,
            precisions=precisions,
            map_at=map_at,
            denominators=denominators,
            query_classes=test.query_classes if in_class else None,
            gallery_classes=test.gallery_classes if in_class else None,
            seed=seed,
        )
        writer.put_array("query_rows", test.query_rows)
        if on_the_fly:
            samples = open_pictures(store, table).table
            shares = drawn_shares(samples.column("ids", "sketch"))[test.query_rows]
            writer.put_array(DRAWN_SHARES, shares)
            result = with_course(result, test, shares)
        publish_evaluation(writer, result)

    result = produce(store, recipe, create, mode=mode, label=label or "scores")
    log_zero_codes(store, result.reference, label or "scores")
    return result


evaluate = stage_task(evaluate_method)


def with_course(
    result: RankingScores, test: TestSet, shares: NDArray[np.float64]
) -> RankingScores:
    """Add the scores over the course of drawing, their chance and convention."""
    n = result.n_gallery
    names, counts = np.unique(test.gallery_labels, return_counts=True)
    number = dict(zip(names.tolist(), counts.tolist(), strict=True))
    n_relevant = np.array([number.get(label, 0) for label in test.query_labels.tolist()])
    drawn = course(result.first_relevant_rank, shares, n)
    return replace(
        result,
        scores=result.scores | drawn.scores(),
        chance=result.chance | chance_on_the_fly(n_relevant[n_relevant > 0], n),
        convention=result.convention + ON_THE_FLY,
    )


def log_zero_codes(store: Store, evaluation: Reference, label: str) -> None:
    """Log that all-zero codes were ranked; their order is chance."""
    counts = store.open(evaluation).json("scores.json")["counts"]
    zero, n = counts["n_zero_queries"], counts["n_queries"]
    zero_gallery, n_gallery = counts["n_zero_gallery"], counts["n_gallery"]
    if zero or zero_gallery:
        trained = Lineage.of_evaluation(store, evaluation).training.parameters
        hint = method_class(str(trained["method"])).zero_codes_hint
        log(
            f"{label}: {zero} of {n} sketches and {zero_gallery} of {n_gallery} images have an "
            f"all-zero code and are ranked by chance{hint and f'; {hint}'}"
        )


COUNTS = ("n_queries", "n_gallery", "n_zero_queries", "n_zero_gallery", "n_without_relevant")
OF_QUERIES = "of_queries."
ARRAYS = ("average_precision", "first_relevant_rank", "precision_recall")


def publish_evaluation(writer: Writer, result: RankingScores) -> None:
    """Write scores and counts as JSON, values per query and curves as arrays."""
    counts = {name: getattr(result, name) for name in COUNTS}
    if result.n_bits is not None:
        counts["n_bits"] = result.n_bits
    writer.put_json(
        "scores.json",
        {
            "scores": result.scores,
            "chance": result.chance,
            "counts": counts,
            "convention": result.convention,
            **({"of_queries": list(result.of_queries)} if result.of_queries else {}),
        },
    )
    for name in ARRAYS:
        writer.put_array(name, getattr(result, name))
    for name, values in result.of_queries.items():
        writer.put_array(OF_QUERIES + name, values)


def open_evaluation(store: Store, reference: Reference) -> RankingScores:
    """Read what `evaluate` stored."""
    artifact = store.open(reference)
    document = artifact.json("scores.json")
    return RankingScores(
        scores=document["scores"],
        chance=document["chance"],
        convention=document["convention"],
        of_queries={n: artifact.array(OF_QUERIES + n) for n in document.get("of_queries", ())},
        **document["counts"],
        **{name: artifact.array(name) for name in ARRAYS},
    )
