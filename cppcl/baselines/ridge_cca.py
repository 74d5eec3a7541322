"""Ridge canonical correlation analysis of sketch-image pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from cppcl.baselines.canonical import CanonicalBaseline
from cppcl.baselines.links import Labels, Links
from cppcl.errors import InputError


class RidgeCCA(CanonicalBaseline):
    """Canonical correlation analysis of pairs: one sketch and one image a label.

    Options are those of `cppcl.baselines.canonical.CanonicalBaseline`.

    Raises
    ------
    InputError
        By `fit`, if a sample has more than one partner: `ClassCCA` is for classes.

    Notes
    -----
    Hotelling, "Relations between two sets of variates", Biometrika 1936; solved in closed form,
    see `cppcl.baselines.cca.canonical_correlation`.
    """

    def _links(self, sketch_labels: Labels, image_labels: Labels, links: Any) -> Links:
        pairs = super()._links(sketch_labels, image_labels, links)
        partners = Links(pairs.left.sign(), pairs.right.sign()).degrees()
        for name, counts, labels in zip(
            ("sketch", "image"), partners, (sketch_labels, image_labels), strict=True
        ):
            if counts.max() > 1:
                row = int(np.argmax(counts))
                raise InputError(
                    f"{name} {row} (label {labels[row]!r}) has {int(counts[row])} partners; "
                    "ridge_cca needs pairs, one sketch and one image a label: use class_cca, or "
                    "labels that name instances"
                )
        return pairs
