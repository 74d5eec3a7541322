"""What a batch of sketches and images costs, by comparison of their codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.training.passes import LearnedByPasses
from cppcl.modality import Modality
from cppcl.validation import check_choice, check_number

if TYPE_CHECKING:
    from torch import Tensor

    from cppcl.features.training.lesson import Lesson
    from cppcl.features.training.sampling import Rows

Objective = Literal["infonce", "triplet"]
"""What a batch costs."""


@dataclass(frozen=True, kw_only=True)
class LearnedByComparison(LearnedByPasses):
    """Base of what is tuned a little on top of an encoder that stays as it is.

    Parameters
    ----------
    objective : {'infonce', 'triplet'}
        'infonce': cross-entropy of the similarities within a batch of pairs, over `temperature`;
        those of a class are all right. 'triplet': a sketch is nearer to an image of its class than
        to one of another by `margin`, in squared distances of unit codes.
    temperature, margin : float
        See `objective`.

    Notes
    -----
    Several right answers in a batch: Khosla et al., "Supervised contrastive learning", NeurIPS
    2020.
    """

    objective: Objective = "infonce"
    temperature: float = 0.1
    margin: float = 0.3

    def __post_init__(self) -> None:
        check_choice("option objective", self.objective, Objective)
        check_number("option temperature", self.temperature, above=0)
        check_number("option margin", self.margin, above=0)
        super().__post_init__()

    def check_seen(self, modality: Modality, seen: Sequence[NDArray[Any]]) -> None:
        """Raise `InputError` unless there are pictures that can be told apart."""
        n = len(seen)
        if n < 2:
            raise InputError(
                f"{n} training picture{'' if n == 1 else 's'} of the modality {modality!r}: what "
                "learns by comparison needs at least two; let more of the data train, by the "
                "options of the split"
            )
        if not any((row != seen[0]).any() for row in seen):
            raise InputError(
                f"the {n} training pictures of the modality {modality!r} all look the same to "
                f"{self.name!r}, so nothing can be compared; give pictures that differ"
            )

    def drawn(self, rows: Rows) -> list[tuple[Modality, Rows]]:
        """Samples of a batch of triplets, by modality: without the last one of pairs."""
        found: list[tuple[Modality, Rows]] = [("sketch", rows[:, 0]), ("image", rows[:, 1])]
        if self.objective == "triplet":
            found.append(("image", rows[:, 2]))
        return found

    def compared(self, codes: list[Tensor], lesson: Lesson, rows: Rows) -> Tensor:
        """Mean loss of codes, (n, d) each, of the samples that `drawn` gave."""
        from torch.nn.functional import normalize

        from cppcl.features.training.losses import triplet_loss
        from cppcl.optim.contrastive import contrastive_loss

        units = [normalize(code, dim=1) for code in codes]
        if self.objective == "triplet":
            return triplet_loss(units[0], units[1], units[2], self.margin)
        sketches, images = (lesson.classes(m, chosen) for m, chosen in self.drawn(rows))
        same = (sketches[:, None] == images[None]).to(units[0].dtype)
        return contrastive_loss(units[0], units[1], same, self.temperature)
