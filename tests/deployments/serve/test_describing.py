"""Features of a query, of which the extractors work side by side."""

from __future__ import annotations

import numpy as np
import pytest

from cppcl.features import make_extractor
from deployments.serve.describing import Describer


@pytest.mark.parametrize("name", ["hog", "hog+line_hog"])
def test_rows_are_those_of_the_extractor(name):
    pictures = [np.full((40, 60, 3), 255, np.uint8) for _ in range(2)]
    pictures[0][10:30, 20:23] = pictures[1][5:8, 10:50] = 0
    extractor = make_extractor(name, {})
    np.testing.assert_array_equal(
        Describer(extractor).rows(pictures), extractor.transform(pictures)
    )
