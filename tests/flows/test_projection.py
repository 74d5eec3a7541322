"""Projections to a larger size: exact where the law holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.projection import project


@given(
    fixed=st.floats(0, 1e4),
    slope=st.floats(0, 1e-3),
    small=st.integers(100, 1000),
    factor=st.integers(2, 9),
    exponent=st.sampled_from([1.0, 2.0]),
)
def test_the_law_that_was_measured_goes_on(
    fixed: float, slope: float, small: int, factor: int, exponent: float
) -> None:
    sizes = [small, factor * small]
    values = [fixed + slope * n**exponent for n in sizes]
    expected = fixed + slope * 200_000.0**exponent
    assert project(sizes, values, 200_000, exponent) == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_one_size_is_taken_as_all_growth() -> None:
    assert project([100], [3.0], 1000, 1.0) == pytest.approx(30.0)
    assert project([100], [3.0], 1000, 2.0) == pytest.approx(300.0)


def test_less_with_more_is_taken_as_no_growth() -> None:
    assert project([100, 400], [3.0, 2.0], 4000, 1.0) == 2.0


def test_no_growth_is_faster_than_from_nothing() -> None:
    assert project([100, 400], [0.0, 2.0], 4000, 1.0) == pytest.approx(20.0)
