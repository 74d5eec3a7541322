"""A split without the training samples that people judged wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cppcl.audit.verdicts import Verdict, wrong_items
from cppcl.datasets.splits import Split
from cppcl.datasets.table import SampleTable
from cppcl.modality import MODALITIES, Modality


def without_wrong(split: Split, table: SampleTable, verdicts: Sequence[Verdict]) -> Split:
    """Leave out of training what more people call wrong than right; the test stays as it is.

    Of a wrong label its sample. Of a wrong pair both samples; but of a group with several
    sketches, or several images, that one of the several alone.

    Parameters
    ----------
    split : Split
        Rows of the table.
    table : SampleTable
        Samples; verdicts on others are left aside.
    verdicts : sequence of Verdict
        Of any number of people.
    """
    ids = {m: table.column("ids", m) for m in MODALITIES}
    groups = {m: dict(zip(ids[m], table.column("groups", m), strict=True)) for m in MODALITIES}
    sizes = {m: Counter(groups[m].values()) for m in MODALITIES}

    def several(modality: Modality, name: str) -> bool:
        return sizes[modality][groups[modality].get(name, "")] > 1

    left_out: set[str] = set()
    for sketch, image, _ in wrong_items(verdicts):
        if sketch and image and several("sketch", sketch):
            left_out.add(sketch)
        elif sketch and image and several("image", image):
            left_out.add(image)
        else:
            left_out |= {sketch, image}
    sketches, images = (
        np.array([row for row in rows.tolist() if ids[m][row] not in left_out], dtype=np.int64)
        for m, rows in zip(MODALITIES, (split.train_sketches, split.train_images), strict=True)
    )
    return replace(split, train_sketches=sketches, train_images=images)
