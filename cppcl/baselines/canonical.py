"""Ridge canonical correlation analysis, of pairs and of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.base import LinearBaseline, SampleWeights, linear_codes
from cppcl.baselines.links import ClassWeight, Labels, Links
from cppcl.baselines.moments import cross_moment, linked_samples, positive_signs
from cppcl.errors import InputError
from cppcl.learning.graph import number_labels
from cppcl.learning.preparation import Floating
from cppcl.learning.soft_links import group_codes, soft_targets
from cppcl.modality import MODALITIES, Modality
from cppcl.validation import check_choice, check_number


@dataclass(kw_only=True, eq=False, repr=False)
class CanonicalBaseline(LinearBaseline):
    """Ridge canonical correlation analysis of samples linked by label, or by given links.

    The analysis always takes covariances about the mean.

    Parameters
    ----------
    n_directions : int
        Length of the codes, at most the number of directions that correlate.
    ridge : float
        Added to each covariance, relative to its largest eigenvalue.
    correlation_power : float
        Directions are scaled by their canonical correlation to this power, so that the cosine
        trusts them accordingly; 0 weighs all alike, the textbook's form.
    sample_weights : {'none', 'agreement'}
        What training samples weigh: all the same, or the probability that they are right, as
        `cppcl.learning.agreement` judges their partner or their label.
    """

    version: ClassVar[int] = 2

    n_directions: int = 64
    ridge: float = 0.03
    correlation_power: float = 0.0
    sample_weights: SampleWeights = "none"

    def __post_init__(self) -> None:
        check_number("n_directions", self.n_directions, least=1, whole=True)
        check_number("ridge", self.ridge, least=0)
        check_number("correlation_power", self.correlation_power, least=0)
        check_choice("sample_weights", self.sample_weights, SampleWeights)
        super().__post_init__()

    @property
    def uses_agreement(self) -> bool:
        """True if samples are weighed by agreement."""
        return self.sample_weights == "agreement"

    @property
    def correlations_(self) -> NDArray[np.float64]:
        """Canonical correlations of the directions, largest first, (d,)."""
        return self._fitted("correlations")

    def _maps(self, sketches: Floating, images: Floating, links: Links) -> dict[str, NDArray[Any]]:
        arrays = canonical_correlation(
            sketches, images, links, n_directions=self.n_directions, ridge=self.ridge
        )
        scale = arrays["correlations"] ** self.correlation_power
        return arrays | {
            f"{modality}_projection": arrays[f"{modality}_projection"] * scale
            for modality in MODALITIES
        }


class RidgeCCA(CanonicalBaseline):
    """Canonical correlation analysis of the list of all linked pairs, each of the same weight.

    Pairs are a sketch and an image of one label, or those of given `links`, weighted by them. A
    photo with three sketches occurs in three pairs, so that it counts three times: `ClassCCA`
    with ``class_weight='links'``. Where every sample has one partner both are the same whatever
    the weights of classes.

    Options are those of `cppcl.baselines.canonical.CanonicalBaseline`.

    Notes
    -----
    Hotelling, "Relations between two sets of variates", Biometrika 1936; solved in closed form,
    see `canonical_correlation`.
    """


@dataclass(kw_only=True, eq=False, repr=False)
class ClassCCA(CanonicalBaseline):
    """Canonical correlation analysis of every sketch with every image of its class.

    Samples of a class that the other modality lacks weigh nothing. Beside `RidgeCCA` it weighs
    classes and has soft links; with one pair a class, and without them, it is the same. G classes
    give at most G - 1 directions.

    Parameters
    ----------
    class_weight : {'samples', 'links', 'equal'}
        What a class with k sketches and l images weighs: ``sqrt(k * l)``, the number of links
        ``k * l`` (the plain analysis of all linked pairs, which large classes dominate), or the
        same for all. Given `links` are taken as they are.
    soft_links : float
        Weight of the mean codes of the classes of training that a new sample's code resembles,
        against that code's own: what `cppcl.CPRL` does in coding, for comparison. 0 for none.
    link_temperature : float
        The smaller, the more the nearest class counts; in units of the cosine.

    The other options are those of `cppcl.baselines.canonical.CanonicalBaseline`.

    Notes
    -----
    Rasiwasia, Mahajan, Mahadevan, Aggarwal, "Cluster canonical correlation analysis",
    AISTATS 2014 (there with ``links``), with a ridge.
    """

    class_weight: ClassWeight = "samples"
    soft_links: float = 0.0
    link_temperature: float = 0.1

    def __post_init__(self) -> None:
        check_choice("class_weight", self.class_weight, ClassWeight)
        check_number("soft_links", self.soft_links, least=0)
        check_number("link_temperature", self.link_temperature, above=0)
        super().__post_init__()

    def _learn(
        self,
        sketches: Floating,
        images: Floating,
        sketch_labels: Labels,
        image_labels: Labels,
        links: Any,
    ) -> dict[str, NDArray[Any]]:
        if self.soft_links and links is not None:
            raise InputError(
                f"soft_links={self.soft_links} is for classes, not for given links; use 0"
            )
        learned = super()._learn(sketches, images, sketch_labels, image_labels, links)
        if self.soft_links:
            codes = [
                linear_codes(F, learned[f"{modality}_offset"], learned[f"{modality}_projection"])
                for modality, F in zip(MODALITIES, (sketches, images), strict=True)
            ]
            numbers = number_labels(sketch_labels, image_labels)
            means = group_codes((codes[0], codes[1]), (numbers[0], numbers[1]), self._weights)
            learned |= {
                f"{modality}_group_codes": m for modality, m in zip(MODALITIES, means, strict=True)
            }
        return learned

    def _code(self, modality: Modality, prepared: Floating) -> Floating:
        codes = super()._code(modality, prepared)
        if not self.soft_links:
            return codes
        other = MODALITIES[1 - MODALITIES.index(modality)]
        own, partner = (self._fitted(f"{name}_group_codes") for name in (modality, other))
        target = soft_targets(codes, own, partner, self.link_temperature)
        linked: Floating = (codes + self.soft_links * target) / (1 + self.soft_links)
        return linked


def canonical_correlation(
    sketches: Floating, images: Floating, links: Links, *, n_directions: int, ridge: float
) -> dict[str, NDArray[Any]]:
    """Directions of largest correlation between linked samples.

    It is the analysis of the list of all linked (sketch, image) pairs, each pair weighted by its
    link, without writing that list down: means and covariances within a modality weigh a sample
    by the sum of its links. The ridge ``r`` adds ``r * (largest eigenvalue)`` to each within-
    modality covariance. The singular vectors of the whitened cross-covariance are the
    directions, its singular values the (ridged) correlations.

    Parameters
    ----------
    sketches : ndarray, (K, m_s)
    images : ndarray, (L, m_i)
    links : Links
        Between K sketches and L images.
    n_directions : int
        Most directions to return; those without correlation are left out.
    ridge : float
        Relative to the largest eigenvalue, so that it means the same at any scale.

    Returns
    -------
    dict
        ``sketch_offset`` (m_s,), ``sketch_projection`` (m_s, d), ``image_offset`` (m_i,),
        ``image_projection`` (m_i, d) and ``correlations`` (d,), float64.

    Raises
    ------
    InputError
        If the linked samples of a modality do not vary, or nothing correlates.

    Notes
    -----
    Vinod, "Canonical ridge and econometrics of joint production", J. Econometrics 1976.
    """
    modalities = linked_samples(sketches, images, links)
    whiteners = [m.axes / np.sqrt(m.variances + ridge * m.variances[0]) for m in modalities]
    left, correlations, right = np.linalg.svd(
        cross_moment(
            links, *(m.deviations @ w for m, w in zip(modalities, whiteners, strict=True))
        ),
        full_matrices=False,
    )
    # Singular vectors of zero are arbitrary: G classes give G - 1 directions.
    d = min(n_directions, int((correlations > 1e-9).sum()))
    if d == 0:
        raise InputError("no direction of the linked sketches and images correlates")
    sketch_projection = whiteners[0] @ left[:, :d]
    signs = positive_signs(sketch_projection)
    return {
        "sketch_offset": modalities[0].offset,
        "sketch_projection": sketch_projection * signs,
        "image_offset": modalities[1].offset,
        "image_projection": whiteners[1] @ right[:d].T * signs,
        "correlations": correlations[:d],
    }
