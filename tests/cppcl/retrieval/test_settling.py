"""Results that settle: who keeps a place, and how far that is from the order of similarity."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cppcl.retrieval.settling import settled


def test_a_place_is_kept_unless_another_picture_is_clearly_closer():
    found, similarities = [7, 5, 9, 3], [0.9, 0.85, 0.8, 0.4]
    assert settled(found, similarities, [], 3) == [0, 1, 2]
    # 9 is within a fifth of 0.9 - 0.4 of the nearest, 3 is not; 8 is not found any more.
    assert settled(found, similarities, [9, 3, 8, 5], 4, slack=0.2) == [2, 0, 1, 3]
    assert settled(found, similarities, [9, 3, 8, 5], 4, slack=0) == [0, 1, 2, 3]
    assert settled(found, similarities, [3, 9, 5, 7], 4, slack=1) == [3, 2, 1, 0]
    assert settled(found, similarities, [9, 3], 2, slack=10) == [2, 3], (
        "from behind the last place"
    )
    assert settled([], [], [1], 4) == []


@given(st.data())
def test_no_place_holds_what_is_much_less_similar_than_what_follows(data):
    n = data.draw(st.integers(1, 12))
    k = data.draw(st.integers(1, 12))
    similarities = sorted(data.draw(st.lists(st.floats(-1, 1), min_size=n, max_size=n)))[::-1]
    found = data.draw(st.permutations(range(n)))
    shown = data.draw(st.lists(st.integers(0, 15), unique=True, max_size=12))
    slack = data.draw(st.floats(0, 1))
    places = settled(found, similarities, shown, k, slack)
    assert len(places) == len(set(places)) == min(k, n)
    values = np.array(similarities)[places]
    margin = slack * (similarities[0] - similarities[min(k, n) - 1])
    for place in range(len(values)):
        assert values[place] >= values[place:].max() - margin - 1e-12
    again = settled(found, similarities, [found[at] for at in places], k, slack)
    assert again == places, "the same query moves nothing"
