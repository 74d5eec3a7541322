from dataclasses import replace

import numpy as np

from cppcl.report.noise import noise_curves
from tests.cppcl.report.test_comparisons import small


def test_protocols_that_differ_in_noise_are_a_curve():
    clean = small()
    wrong = [replace(clean, name=f"p{k}", noise={"wrong_pairs": k / 10}) for k in (4, 2)]
    other = replace(clean, name="labels", main_score="map", noise={"wrong_labels": 0.3})
    (curve,) = noise_curves([*wrong, other, clean])
    assert curve.kind == "wrong_pairs"
    assert curve.levels == (0.0, 0.2, 0.4)
    assert [p.name for p in curve.protocols] == ["p", "p2", "p4"]
    expected = np.mean([s["rank_1"] for s in clean.methods["ours"].scores])
    assert curve.means("ours") == [expected] * 3
    assert curve.picture().startswith(b"\x89PNG")


def test_one_level_is_no_curve():
    clean = small()
    assert noise_curves([clean]) == []
    assert noise_curves([replace(clean, noise={"wrong_pairs": 0.2})]) == []
    fewer = replace(clean, methods=dict(list(clean.methods.items())[:2]))
    assert noise_curves([fewer, replace(clean, noise={"wrong_pairs": 0.2})]) == []
