"""Ridge canonical correlation analysis of class links."""

from __future__ import annotations

from cppcl.baselines.base import CanonicalBaseline


class ClassCCA(CanonicalBaseline):
    """Canonical correlation analysis of every sketch with every image of its class.

    A class with k sketches and l images weighs k * l, its number of links; samples of a class
    that the other modality lacks weigh nothing. With one pair a class it is `RidgeCCA`. G
    classes give at most G - 1 directions.

    Options are those of `cppcl.baselines.base.CanonicalBaseline`.

    Notes
    -----
    Rasiwasia, Mahajan, Mahadevan, Aggarwal, "Cluster canonical correlation analysis",
    AISTATS 2014, with a ridge.
    """
