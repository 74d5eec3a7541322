"""What a publication reports of the methods of a protocol."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from typing import Annotated

from pydantic import AfterValidator, Field

from flows.configuration.options import Options, check_name


def _check_fraction(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{value} must be a fraction from 0 to 1: 0.986 where 98.6 % is printed")
    return value


def _check_score(score: str) -> str:
    if score != "map" and not re.fullmatch("rank_[1-9][0-9]*", score):
        raise ValueError(f"score {score!r} must be map, or rank_k with k among evaluation.ranks")
    return score


Method = Annotated[str, AfterValidator(check_name)]
Fraction = Annotated[float, Field(strict=True), AfterValidator(_check_fraction)]
Score = Annotated[str, AfterValidator(_check_score)]


class PublishedOptions(Options):
    """Scores that a publication reports, shown beside ours."""

    source: str = Field(min_length=1, description="Where they are printed, a line for people")
    score: Score = Field(description="Which score: map, or rank_k with k among evaluation.ranks")
    trials: int | None = Field(None, ge=1, description="Splits that the publication averages")
    values: dict[Method, Fraction] = Field(
        min_length=1, description="Score as a fraction, by method of the protocol"
    )
    titles: dict[Method, Annotated[str, Field(min_length=1)]] = Field(
        {}, description="Name of a row for people, by method of the protocol"
    )

    def check_methods(self, methods: Collection[str]) -> None:
        """Refuse names of methods that the protocol does not have."""
        for part in ("values", "titles"):
            for name in getattr(self, part):
                if name not in methods:
                    near = difflib.get_close_matches(name, methods, n=1)
                    hint = f"; did you mean {near[0]}?" if near else "."
                    raise ValueError(
                        f"published.{part}.{name}: the protocol has no such method{hint} "
                        f"There is {', '.join(methods)}"
                    )

    @property
    def rank(self) -> int | None:
        """The k of rank_k."""
        return None if self.score == "map" else int(self.score.removeprefix("rank_"))
