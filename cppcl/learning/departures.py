"""What a CPRL that is called as printed has otherwise than the paper: read from its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cppcl.modality import Modality

if TYPE_CHECKING:
    from cppcl.features import Extractor

PRINTED = "as printed"
"""What a cell says where nothing differs."""


@dataclass(frozen=True)
class TrainedCprl:
    """A CPRL as it was trained.

    Parameters
    ----------
    options : mapping
        Its options as plain data, nested as `cppcl.learning.cprl.CPRL` has them.
    widths : (int, int)
        Columns of the features of sketches and of images.
    scores : mapping
        The extractor whose scores make the curriculum of a modality; none where no curriculum
        was used.
    """

    options: Mapping[str, Any]
    widths: tuple[int, int]
    scores: Mapping[Modality, Extractor] = field(default_factory=dict)

    def has(self, form: str) -> bool:
        """True if a printed form is used."""
        return form in self.options["printed"]

    @property
    def paces(self) -> bool:
        """True if a regulariser weighs the samples."""
        return bool(self.options["pacing"]["regularizer"] != "none")

    @property
    def uses_graph(self) -> bool:
        """True if the graph has any weight."""
        return bool(self.options["beta"])

    @property
    def uses_curricula(self) -> bool:
        """True if curricula have any weight."""
        return bool(self.options["pacing"]["mu"] and self.scores)


def departures(trained: TrainedCprl) -> dict[str, str]:
    """What each aspect of the method is, `PRINTED` where the paper has the same.

    Returns
    -------
    dict of str to str
        A few words by aspect; the same aspects for every method.
    """
    return {aspect: words(trained) or PRINTED for aspect, words in ASPECTS.items()}


def _sign(trained: TrainedCprl) -> str:
    is_b = trained.options["pacing"]["regularizer"] == "B"
    return "corrected" if is_b and not trained.has("sign") else ""


def _graph(trained: TrainedCprl) -> str:
    if not trained.uses_graph or trained.has("dense_graph"):
        return ""
    within = trained.options["graph"]["within"]
    return "no weights within a modality" if within == "none" else "neighbours of a class alone"


def _weights(trained: TrainedCprl) -> str:
    if not trained.uses_graph or trained.has("unscaled_graph"):
        return ""
    mean = trained.options["graph"]["normalize"] == "mean_degree"
    return "over their mean degree" if mean else "over both degrees"


def _coupling(trained: TrainedCprl) -> str:
    if not (trained.uses_graph and trained.paces) or trained.has("coupling"):
        return ""
    return "none" if trained.options["pacing"]["coupling"] == "none" else "that of the code step"


def _l1(trained: TrainedCprl) -> str:
    return "" if not trained.paces or trained.has("l1") else "weighed by pacing"


def _groups(trained: TrainedCprl) -> str:
    is_a = trained.options["pacing"]["regularizer"] == "A"
    return "over their mean" if is_a and not trained.has("group_size") else ""


def _mu(trained: TrainedCprl) -> str:
    if not trained.uses_curricula:
        return ""
    value = f"{trained.options['pacing']['mu']:g}, a value that is not printed"
    return value if trained.has("pair_weight") else "in units of gamma and of pairs a sample"


def _initialisation(trained: TrainedCprl) -> str:
    printed = "joint" if trained.widths[0] == trained.widths[1] else "independent"
    found = trained.options["initialization"]["dictionaries"]
    return "" if found == printed else f"{found} in place of {printed}"


def _preparation(trained: TrainedCprl) -> str:
    given = trained.options["preparation"]
    done = {
        "entries to a power": given["power"] != 1,
        "centred": given["center"],
        "of unit norm": given["unit_norm"],
        "projected": given["n_components"] is not None,
        "whitened": given["whiten"],
    }
    return ", ".join(words for words, true in done.items() if true)


def _curricula(trained: TrainedCprl) -> str:
    if not trained.uses_curricula:
        return ""
    return ", ".join(
        f"{modality}: {extractor.name.replace('_', ' ')}{_easiness(extractor)}"
        for modality, extractor in trained.scores.items()
        if any(getattr(extractor, key, None) != value for key, value in PRINTED_SCORES[modality])
    )


def _easiness(extractor: Extractor) -> str:
    easiness = getattr(extractor, "easiness", "")
    return easiness and f" ({easiness})"


PRINTED_SCORES: dict[Modality, tuple[tuple[str, Any], ...]] = {
    "sketch": (("name", "edgeness"), ("n_windows", 100)),
    "image": (("name", "objectness"), ("n_windows", 1000), ("easiness", "printed")),
}
"""Attributes of the extractors whose scores the paper makes its curricula from."""

ASPECTS: dict[str, Callable[[TrainedCprl], str]] = {
    "sign of B": _sign,
    "graph": _graph,
    "weights of the graph": _weights,
    "coupling of pacing": _coupling,
    "L1 norm": _l1,
    "groups of A": _groups,
    "mu": _mu,
    "first dictionaries": _initialisation,
    "features": _preparation,
    "scores of curricula": _curricula,
}
"""What may differ, by its name for people; each gives words, or nothing where it does not."""
