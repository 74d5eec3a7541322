"""A round of training as a callback sees it, and the state to go on from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError, ResumeError
from cppcl.optim.alternation import Alternation

FINGERPRINT = "fingerprint"


@dataclass(frozen=True)
class Round:
    """What `cppcl.learning.cprl.CPRL.fit` reports after each round; only valid in the callback.

    Attributes
    ----------
    number, n_rounds : int
        Which round, from 1, and how many at most.
    values : dict of str to float
        Entry of the history: `objective`, `gamma`, `sketch_mean_v` and so on.
    mean_v : float
        Mean pacing variable of all samples.
    """

    number: int
    n_rounds: int
    values: Mapping[str, float]
    mean_v: float
    state: Callable[[], dict[str, NDArray[Any]]]

    @property
    def objective(self) -> float:
        """Objective at the gamma of this round."""
        return self.values["objective"]

    @property
    def gamma(self) -> float:
        """Age of the learner; NaN without pacing."""
        return self.values["gamma"]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All that training needs to go on from here, for ``fit(..., resume_from=...)``.

        Arrays of numbers only, to be stored in any way; they are not copied.
        """
        return self.state()


def pass_rounds(
    callback: Callable[[Round], object], fingerprint: Callable[[], bytes]
) -> Callable[[Alternation], None]:
    """Return a callback for `Alternation.run` that hands each round to `callback`."""

    def pass_on(training: Alternation) -> None:
        def state() -> dict[str, NDArray[Any]]:
            identity = np.frombuffer(fingerprint(), dtype=np.uint8)
            return {**training.to_arrays(), FINGERPRINT: identity}

        mean_v = float(training.v.mean(dtype=np.float64))
        values = dict(training.history[-1])
        callback(Round(training.round_number, training.n_rounds, values, mean_v, state))

    return pass_on


def resume(training: Alternation, arrays: Mapping[str, Any], fingerprint: bytes) -> None:
    """Restore what `Round.to_arrays` returned.

    Raises
    ------
    ResumeError
        If it is the state of another training, or none.
    """
    if not isinstance(arrays, Mapping):
        raise ResumeError(
            f"resume_from is a {type(arrays).__name__}; give what the to_arrays of a round "
            "returned"
        )
    state = {name: np.asarray(array) for name, array in arrays.items()}
    if FINGERPRINT not in state:
        raise ResumeError(
            f"resume_from holds {', '.join(state) or 'nothing'}, but no {FINGERPRINT}: give what "
            "the to_arrays of a round returned"
        )
    if state.pop(FINGERPRINT).tobytes() != fingerprint:
        raise ResumeError(
            "resume_from is of a training with other samples, labels, curricula or options; give "
            "the same ones, or start anew"
        )
    try:
        training.from_arrays(state)
    except (InputError, LookupError, TypeError, ValueError) as error:
        raise ResumeError(f"resume_from cannot be read: {error}; start anew") from error


def digest_of(*parts: bytes) -> bytes:
    """Digest of 32 bytes of several digests or texts."""
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()
