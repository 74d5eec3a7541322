import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from cppcl.curriculum import pairs_from_scores
from cppcl.errors import InputError
from cppcl.report import render_report
from cppcl.report.curricula import (
    DELTAS,
    RHOS,
    CurriculumResult,
    ScoredPicture,
    count_pairs,
    facts,
    render_curricula,
)
from tests.cppcl.report.pages import Page

rng = np.random.default_rng(0)
SCORES = rng.normal(size=30)
SCORES[4] = np.nan
LABELS = rng.integers(0, 3, 30)
COUNTS = {"samples": 30, "scored": 29, "admissible": 120, "hinges": 36}
ANSWERED = {
    "answers": {
        "pairs": 20,
        "answers": 31,
        "skipped": 7,
        "of other samples": 4,
        "contradicted": 1,
        "in cycles": 5,
    },
    "agreement": {"n_pairs": 19, "kendall": 0.4737, "spearman": None, "n_samples": 17},
}


def picture(value):
    return np.full((12, 9, 3), value, dtype=np.uint8)


@pytest.fixture(scope="module")
def results():
    pairs = count_pairs(SCORES, LABELS, "within_class", None)
    easy = [ScoredPicture(picture(30 * k), f"<b>easy {k}", 2.0 - k / 10) for k in range(3)]
    hard = [ScoredPicture(picture(250 - k), f"hard {k}", -2.0 + k / 10) for k in range(2)]
    return [
        CurriculumResult("sketch", "edgeness", SCORES, {**COUNTS, **ANSWERED}, pairs, easy, hard),
        CurriculumResult("image", "objectness", SCORES * 2, COUNTS, pairs),
    ]


def test_counted_pairs_are_those_that_a_sample_keeps():
    found = count_pairs(SCORES, LABELS, "within_class", 40)
    for row, delta in zip(found, DELTAS, strict=True):
        for n, rho in zip(row, RHOS, strict=True):
            pairs = pairs_from_scores(
                SCORES, LABELS, delta=delta, rho=rho, scope="within_class", maximum_pairs=40
            )
            assert n == len(pairs)
    assert (np.diff(found[:, 0]) <= 0).all()
    assert found.max() == 40


def test_facts_say_what_was_counted(results):
    sketches, images = (" ".join(facts(result)) for result in results)
    for text in (
        "29 of 30 training pictures have a score",
        "admit 120 pairs, and 36 hinges",
        "31, of which 7 skip and 4 are of other samples; 20 pairs, 1 answered both ways, 5 in",
        "over 19 pairs of 17 samples: Kendall's tau 0.47, Spearman's correlation –",
    ):
        assert text in sketches
    assert "answers" not in images
    assert "Options" not in sketches
    options = {
        "rho": 0.3,
        "pair_form": "hashed",
        "delta": 1.0,
        "delta_unit": "absolute",
        "seed": 0,
    }
    told = " ".join(facts(replace(results[1], options=options)))
    assert "Options of these pairs: form: hashed, δ: 1.0, in: absolute, ρ: 0.3." in told


def test_the_section_has_strips_histogram_and_table(results):
    html, histogram = render_curricula(results, "instance")
    page = Page(html)
    assert page.within("h4") == ["sketches by edgeness", "images by objectness"]
    assert len(page.all("img")) == 1 + 5
    assert page.all("img")[1]["alt"] == "easiest sketch 1: <b>easy 0"
    assert "<b>easy" not in html
    table = [cell.replace(",", "") for cell in page.within("td")[: len(DELTAS) * len(RHOS)]]
    assert table == [str(n) for n in results[0].pairs.ravel()]
    with Image.open(io.BytesIO(histogram)) as image:
        assert image.width > image.height
        assert len(np.unique(np.asarray(image.convert("RGB")).reshape(-1, 3), axis=0)) > 20
    again, same = render_curricula(results, "instance")
    assert (again, same) == (html, histogram)


def test_a_report_holds_them_under_their_protocol(build, bare, results):
    first, second = bare
    files = render_report(build(protocols=[replace(first, curricula=results), second]))
    page = files["report.html"].decode()
    assert page.count("<h3>Curricula</h3>") == 1
    assert page.index("<h3>Curricula</h3>") < page.index(f'<section id="{second.name}">')
    assert [name for name in files if "easiness" in name] == [f"easiness_{first.name}.png"]


def test_a_table_of_another_shape_is_refused():
    with pytest.raises(InputError, match=r"pairs have shape \(2, 2\)"):
        CurriculumResult("image", "x", SCORES, COUNTS, np.zeros((2, 2), dtype=int))
