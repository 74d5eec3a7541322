"""What CPRL learns, and its form as named arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import NotFittedError
from cppcl.learning.preparation import Preparation
from cppcl.learning.training_data import SIDES


@dataclass(frozen=True)
class Learned:
    """State of a fitted model; empty where it is not fitted.

    Attributes
    ----------
    arrays : dict of str to ndarray
        For each modality ``*_dictionary`` (N, m_k), ``*_pacing`` (n_k,) and ``*_pacing_rounds``
        (rounds, n_k) float32, ``*_group_codes`` (G, N) with soft links to groups, and
        ``*_code_mean`` (N,) where codes are centred; ``code_prediction`` (N, N) with linear soft
        links.
    preparations : dict of str to Preparation
        Fitted preparation of either modality.
    history : dict of str to (rounds,) arrays
        See `cppcl.learning.cprl.CPRL`.
    """

    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    preparations: Mapping[str, Preparation] = field(default_factory=dict)
    history: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Array of this name (`NotFittedError` if there is none)."""
        try:
            return self.arrays[name]
        except KeyError:
            raise NotFittedError(
                f"the model holds no {name}: call fit, or from_arrays with all of its arrays"
            ) from None

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All of it, by name."""
        _ = self["sketch_dictionary"]
        arrays = dict(self.arrays)
        for side, preparation in self.preparations.items():
            for name, array in preparation.to_arrays().items():
                arrays[f"{side}_preparation_{name}"] = array
        return arrays | {f"history_{name}": array for name, array in self.history.items()}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, Any], make_preparation: Callable[[], Preparation]
    ) -> Self:
        """Restore what `to_arrays` returned."""
        learned: dict[str, NDArray[Any]] = {}
        history: dict[str, NDArray[np.float64]] = {}
        prepared: dict[str, dict[str, NDArray[Any]]] = {side: {} for side in SIDES}
        for name, array in arrays.items():
            side, _, rest = name.partition("_")
            if side == "history":
                history[rest] = np.asarray(array)
            elif rest.startswith("preparation_"):
                prepared[side][rest.removeprefix("preparation_")] = np.asarray(array)
            else:
                learned[name] = np.asarray(array)
        restored = cls(learned, {}, history)
        _ = restored["sketch_dictionary"], restored["image_dictionary"]
        preparations = {side: make_preparation().from_arrays(prepared[side]) for side in SIDES}
        return cls(learned, preparations, history)
