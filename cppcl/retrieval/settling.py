"""Results that settle while a query grows, rather than jump."""

from __future__ import annotations

from collections.abc import Sequence

SLACK = 0.2
"""How much less similar a picture may be to keep its place, as a share of the difference between
the first and the last picture that are shown; see `settled`."""


def settled(
    found: Sequence[int],
    similarities: Sequence[float],
    shown: Sequence[int],
    k: int,
    slack: float = SLACK,
) -> list[int]:
    """Order what was found so that pictures stay where they were shown.

    A picture keeps its place unless another one that has none yet is more similar by more than
    ``slack`` times the difference between the first and the k-th similarity. So each place holds
    a picture that is at most that much less similar than any of those after it.

    Parameters
    ----------
    found : sequence of int
        Pictures, nearest first; more than k, so that one that falls behind may keep its place.
    similarities : sequence of float
        Of each of them.
    shown : sequence of int
        Pictures that were shown, in their places; empty for the order of `found`.
    k : int
        Places.
    slack : float
        0 or more.

    Returns
    -------
    list of int
        Positions in `found` of the pictures in the k places, or in as many as were found.
    """
    n = min(k, len(found))
    if not shown or not n:
        return list(range(n))
    margin = slack * (similarities[0] - similarities[n - 1])
    position = {picture: at for at, picture in enumerate(found)}
    left = dict.fromkeys(range(len(found)))  # in the order of similarity
    places: list[int] = []
    for place in range(n):
        best = next(iter(left))
        old = position.get(shown[place], -1) if place < len(shown) else -1
        stays = old in left and similarities[old] >= similarities[best] - margin
        places.append(old if stays else best)
        del left[places[-1]]
    return places
