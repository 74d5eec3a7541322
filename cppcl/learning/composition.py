"""What a method's codes become: spaces side by side, soft links, correction for hubs."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cppcl.errors import InputError
from cppcl.learning.estimator import Estimator, check_option_names
from cppcl.retrieval.hubness import Hubness
from cppcl.validation import check_choice, check_number

COMPOSITION = "composition"
"""Name of these options beside those of a method."""
Posterior = Literal["auto", "groups", "regression"]
"""How likely a new sample is of each training class."""
Spaces = Literal["joined", "separate"]
"""Whether features of several extractors are one space, or each a space of its own."""


@dataclass(kw_only=True, repr=False)
class Composition(Estimator):
    r"""On which spaces a method learns, and how its cosines become a ranking.

    With ``s_k`` the cosine of the codes of space k, a sketch and an image have the similarity
    ``s = (1 - c) sum_k w_k s_k / sum_k w_k + c s_0``, where ``s_0`` is the centred cosine of the
    features and c is `centred_share`. It is the cosine of scaled codes side by side. Soft links
    then move these codes, of unit norm, towards what the classes of training expect, and the
    correction for hubs is last.

    Parameters
    ----------
    spaces : {'joined', 'separate'}, default 'joined'
        The features of several extractors (``cnn+hog``) are one space, or each is a space of its
        own on which the method learns alone.
    space_weights : sequence of float, optional
        Weight of each space's cosine, with 'separate'; all alike if None. Features of one
        extractor need none.
    centred_share : float, default 0
        Share of the centred cosine of the features, from 0 to 1. With few training samples a
        learned space may know less than the features themselves. Both modalities need the same
        features then.
    soft_links : float, default 0
        Weight of the mean codes of the training classes to which a sample may belong, against
        its own code: what `cppcl.CPRL` does in coding, here by all spaces together. For data whose
        classes have several samples.
    posterior : {'groups', 'regression', 'auto'}, default 'groups'
        What says how likely the classes are: the cosines to their mean codes, or a multinomial
        logistic regression on the codes of all spaces and the features. 'auto' is 'regression'
        with at most 1,000 classes in both modalities, which is as many as that takes, and 'groups'
        with more, or with a single one.
    link_temperature : float, default 0.1
        The smaller, the more the nearest class counts, of 'groups'; in units of the cosine.
    hubness : {'none', 'csls', 'inverted_softmax'}, default 'none'
        Correction for images that are near to all sketches; see `cppcl.retrieval.hubness`.
    n_neighbors : int, default 10
        Training sketches that are nearest to an image, of 'csls'.
    hub_temperature : float, default 0.1
        Of 'inverted_softmax', in units of the cosine.
    """

    spaces: Spaces = "joined"
    space_weights: tuple[float, ...] | None = None
    centred_share: float = 0.0
    soft_links: float = 0.0
    posterior: Posterior = "groups"
    link_temperature: float = 0.1
    hubness: Hubness = "none"
    n_neighbors: int = 10
    hub_temperature: float = 0.1

    def __post_init__(self) -> None:
        check_choice("spaces", self.spaces, Spaces)
        if self.space_weights is not None:
            if not isinstance(self.space_weights, list | tuple):
                raise InputError(
                    f"space_weights={reprlib.repr(self.space_weights)} must be a list of numbers"
                )
            self.space_weights = tuple(self.space_weights)
            for number, weight in enumerate(self.space_weights):
                check_number(f"space_weights[{number}]", weight, least=0)
            if not any(self.space_weights):
                raise InputError(
                    f"space_weights={self.space_weights} are all 0; make one positive"
                )
            if self.spaces == "joined":
                raise InputError(
                    f"space_weights={self.space_weights} are those of separate spaces; use "
                    "spaces='separate'"
                )
        check_number("centred_share", self.centred_share, least=0)
        if self.centred_share > 1:
            raise InputError(f"centred_share={self.centred_share} is a share; use at most 1")
        check_number("soft_links", self.soft_links, least=0)
        check_choice("posterior", self.posterior, Posterior)
        check_number("link_temperature", self.link_temperature, above=0)
        check_choice("hubness", self.hubness, Hubness)
        check_number("n_neighbors", self.n_neighbors, least=1, whole=True)
        check_number("hub_temperature", self.hub_temperature, above=0)

    @property
    def is_plain(self) -> bool:
        """True if the method's codes are left as they are."""
        return (
            self.spaces == "joined"
            and not self.centred_share
            and not self.soft_links
            and self.hubness == "none"
        )

    def shares(self, n_spaces: int) -> list[float]:
        """Share of every space's cosine in the similarity.

        Raises
        ------
        InputError
            If there are not as many weights as spaces.
        """
        weights = self.space_weights or (1.0,) * n_spaces
        if n_spaces == 1:
            weights = (1.0,)
        if len(weights) != n_spaces:
            raise InputError(
                f"space_weights={weights} are {len(weights)}, but the features have {n_spaces} "
                "spaces, one an extractor; give one weight for each"
            )
        return [(1 - self.centred_share) * w / sum(weights) for w in weights]


def read_composition(given: Composition | Mapping[str, Any] | None) -> Composition:
    """Composition that was given as an object, as a mapping of its options, or not at all."""
    if isinstance(given, Composition):
        return given
    if not isinstance(given, Mapping | None):
        raise InputError(
            f"{COMPOSITION}={reprlib.repr(given)} must be a Composition, or a mapping of its "
            "options"
        )
    check_option_names(COMPOSITION, given or {}, Composition.option_names())
    return Composition(**(given or {}))


POST = tuple(name for name in Composition.option_names() if name != "spaces")
"""Options that change nothing that is learned."""
