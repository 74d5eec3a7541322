"""Words beside a sketch: their code where the encoder has one, else a filter by name."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features import Extractor
from cppcl.retrieval.exact import Metric
from cppcl.retrieval.feedback import moved_query
from cppcl.validation import check_number, did_you_mean

N_NAMED = 20
"""Labels that an error names."""
WEIGHT = 1.0
"""Of the words' code, that of the sketch being 1."""


@dataclass(frozen=True)
class Words:
    """What is said of the picture that is looked for.

    Attributes
    ----------
    text : str
        Empty for nothing.
    weight : float
        Of the words' code, where the encoder has one.

    Raises
    ------
    InputError
        The weight is negative.
    """

    text: str = ""
    weight: float = WEIGHT

    def __post_init__(self) -> None:
        check_number("text_weight", self.weight, least=0)

    def __bool__(self) -> bool:
        return bool(self.text.strip())


NO_WORDS = Words()


def code_with_words(
    code: NDArray[Any], words: Words, extractor: Extractor, method: Any, metric: Metric
) -> NDArray[np.float64]:
    """Code of a query, and that of words with a weight, both by their direction.

    Words are described in the space of pictures, and so encoded as a picture is.

    Parameters
    ----------
    code : (N,) array
        Of the query.
    words : Words
        Some.
    extractor : Extractor
        One that takes words.
    method : Method
        A fitted one.
    metric : {'cosine', 'l2', 'intersection'}
        By which codes are compared.
    """
    rows = extractor.describe_words([words.text.strip()])
    of_words = method.encode_images(rows)
    return moved_query(code, of_words, of_words[:0], metric=metric, towards=words.weight)


def named_rows(words: Words, titles: Sequence[str], labels: Sequence[str]) -> NDArray[np.int64]:
    """Pictures whose title and label together have every word, whatever its case.

    Raises
    ------
    InputError
        There is none.
    """
    asked = _alike(words.text).split()
    names = [_alike(f"{t} {n}") for t, n in zip(titles, labels, strict=True)]
    rows = [row for row, name in enumerate(names) if all(word in name for word in asked)]
    if not rows:
        known = sorted(set(labels) - {""})
        hint = did_you_mean(words.text.strip(), known)
        if not hint:
            more = f" and {len(known) - N_NAMED} more" if len(known) > N_NAMED else ""
            hint = f"; there is {', '.join(known[:N_NAMED])}{more}" if known else ""
        raise InputError(
            f"no picture has {words.text.strip()!r:.80} in its name, and this model knows no "
            f"other words{hint}"
        )
    return np.array(rows, dtype=np.int64)


def _alike(text: str) -> str:
    """Text whose case and forms of Unicode do not matter."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
