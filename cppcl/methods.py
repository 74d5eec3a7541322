"""Every method that learns a common space of sketches and images, by name."""

from __future__ import annotations

from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast

from numpy.typing import NDArray

from cppcl.baselines import BASELINES
from cppcl.curriculum.base import Curriculum
from cppcl.errors import InputError
from cppcl.hashing.dsh import DSH
from cppcl.learning.composed_method import ComposedMethod
from cppcl.learning.composition import COMPOSITION, read_composition
from cppcl.learning.cprl import CPRL
from cppcl.learning.estimator import check_option_names
from cppcl.learning.paced_heads import PacedHeads
from cppcl.modality import Modality
from cppcl.plugin_modules import load_plugins
from cppcl.validation import Labels, suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cppcl.features import Extractor


class Method(Protocol):
    """Learns from linked sketches and images, then codes either modality for comparison.

    The constructor takes keyword arguments only, typed, with defaults that JSON can hold: they
    are the options that a user sets, and all of them take part in the key of what is learned.
    Codes of both modalities have one length and are compared by the cosine. A class that derives
    from `cppcl.learning.learner.BaseMethod` has the usual answers to what a method is asked
    about itself.

    Attributes
    ----------
    version : int
        Raised whenever the numbers it returns change.
    learns : bool
        False for one that compares features as they are: `fit` then needs no training samples
        beyond one, which tells the length of a row.
    warm_start_option : str or None
        Option along which a fitted method is a good start for the next, smaller value; `fit` then
        takes ``start``, a fitted one. None where there is no such option.
    zero_codes_hint : str
        What leaves fewer codes of zero; empty where nothing is known.
    history_ : dict of str to ndarray
        One value a round of training; empty for closed forms.
    """

    version: ClassVar[int]
    learns: ClassVar[bool]
    warm_start_option: ClassVar[str | None]
    zero_codes_hint: ClassVar[str]
    history_: dict[str, NDArray[Any]]

    @property
    def uses_curricula(self) -> bool:
        """True if `fit` with these options goes by the curricula that it is given."""
        ...

    @property
    def curriculum_modalities(self) -> tuple[str, ...]:
        """Modalities, 'sketch' and 'image', whose curricula `fit` with these options goes by."""
        ...

    @property
    def uses_agreement(self) -> bool:
        """True if `fit` with these options weighs samples by how well they agree.

        It then takes ``agreement``, a `cppcl.learning.agreement.Agreement`, or finds its own.
        """
        ...

    @property
    def paces(self) -> bool:
        """True if `fit` with these options takes up some samples before others.

        What `to_arrays` returns then holds ``sketch_pacing_rounds`` and ``image_pacing_rounds``,
        (rounds, n): how much each training sample counted after each round, in [0, 1].
        """
        ...

    @property
    def code_bits(self) -> int | None:
        """Bits of a code where codes are binary, -1 and 1, with these options; else None."""
        ...

    @property
    def uses_gpu(self) -> bool:
        """True if these options ask for a GPU."""
        ...

    def departures(
        self, dimensions: tuple[int, int], scores: Mapping[Modality, Extractor]
    ) -> dict[str, str]:
        """What it has otherwise than the publication that it is of, in a few words by aspect.

        Parameters
        ----------
        dimensions : (int, int)
            Columns of the features of sketches and of images.
        scores : mapping
            The extractor whose scores make the curriculum of a modality, where one is used.

        Returns
        -------
        dict of str to str
            `cppcl.learning.departures.PRINTED` where the publication has the same; empty where
            nothing is said.
        """
        ...

    def memory(self, n_sketches: int, n_images: int, dimensions: tuple[int, int]) -> int:
        """Bytes that `fit` needs at most, with so many samples of so many features.

        Parameters
        ----------
        n_sketches, n_images : int
            Training samples.
        dimensions : tuple of int
            Features of a sketch and of an image.
        """
        ...

    def fit(
        self,
        sketch_features: NDArray[Any],
        image_features: NDArray[Any],
        sketch_labels: Labels,
        image_labels: Labels,
        sketch_curriculum: Curriculum | None = None,
        image_curriculum: Curriculum | None = None,
        links: Any = None,
    ) -> Self:
        """Learn from K sketches and L images.

        Parameters
        ----------
        sketch_features, image_features : ndarray, (K, m_s) and (L, m_i)
            One sample a row, finite.
        sketch_labels, image_labels : array_like, (K,) and (L,)
            Equal labels link a sketch with an image.
        sketch_curriculum, image_curriculum : Curriculum, optional
            Which samples to take up before which; ignored by a method that does
            not use them.
        links : array_like or sparse matrix, (K, L), optional
            Non-negative affinity that replaces the labels.

        Notes
        -----
        A method that learns in rounds may also take ``callback``, which is given a
        `cppcl.learning.resuming.Round` after each, and ``resume_from``, the arrays of such a
        round. Then a training that is killed goes on from there.
        """
        ...

    def encode_sketches(self, features: NDArray[Any]) -> NDArray[Any]:
        """Codes (n, d) of sketch features (n, m_s), floating point."""
        ...

    def encode_images(self, features: NDArray[Any]) -> NDArray[Any]:
        """Codes (n, d) of image features (n, m_i), floating point."""
        ...

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `fit` learned, by name."""
        ...

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_arrays` returned, on an object with the same options."""
        ...


METHODS: dict[str, type[Method]] = {
    "cprl": CPRL,
    **BASELINES,
    "dsh": DSH,
    "paced_heads": PacedHeads,
}
"""Classes with the interface of `Method`; what is registered is under its contract tests."""


def method_class(name: str) -> type[Method]:
    """Class registered under a name.

    Raises
    ------
    InputError
        For a name that is not registered; the message offers the nearest.
    """
    if isinstance(name, str) and name not in METHODS:
        load_plugins()
    if not isinstance(name, str) or name not in METHODS:
        raise InputError(f"method name={name!r} is not known{suggestion(str(name), METHODS)}")
    return METHODS[name]


def make_method(name: str, **options: Any) -> Method:
    """Construct a registered method.

    Parameters
    ----------
    name : str
        Registered name.
    **options
        Those of its constructor; and `composition`, a `cppcl.learning.composition.Composition` or
        a mapping of its options, for a method on several spaces or with a correction for hubs.

    Raises
    ------
    InputError
        For an unknown name or option (the message offers the nearest), or a value out of range.
    """
    chosen = method_class(name)
    known = [*signature(chosen).parameters, COMPOSITION]
    check_option_names(name, options, known)
    return cast(Method, constructed(chosen, **options))


def constructed(chosen: type, *, composition: Any = None, **options: Any) -> Any:
    """Construct a class, composed if a composition is given that is not plain."""
    made = chosen(**options)
    composed = read_composition(composition)
    return made if composed.is_plain else ComposedMethod(partial(chosen, **options), composed)
