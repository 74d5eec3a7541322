import io
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from sklearn.metrics import roc_auc_score

from cppcl.errors import InputError
from cppcl.report import render_report
from cppcl.report.pacing import (
    MOST_STRIPS,
    MethodPacing,
    ModalityPacing,
    entries_of,
    entry_rounds,
    facts,
    mean_v_of_quarters,
    render_pacing,
)
from tests.cppcl.report.pages import Page, rows_of

ROUNDS, N = 5, 40
rng = np.random.default_rng(0)


def paced(modality="sketch", *, factor=1.0, seed=0, **changes):
    """Pacing as regulariser B has it without coupling: v = gamma / (gamma + 2 loss)."""
    random = np.random.default_rng(seed)
    losses = random.uniform(0.5, 4, N)
    gamma = 2.0 ** np.arange(ROUNDS)[:, None]
    easiness = factor * -losses
    easiness[3] = np.nan
    given = {
        "v": gamma / (gamma + 2 * losses),
        "ids": [f"{modality}/{k}" for k in range(N)],
        "labels": [f"<i>{k}" for k in range(N)],
        "easiness": easiness,
        "score": "edgeness",
    }
    pacing = ModalityPacing(modality, **given | changes)
    shown = [k for entries in pacing.entries for k in entries.shown.tolist()]
    return replace(pacing, pictures={k: np.full((9, 12, 3), 5 * k, np.uint8) for k in shown})


def test_a_sample_enters_when_it_counts_more_than_half():
    v = np.array(
        [[0.1, 0.6, 0.5, 0, 1, 0.4], [0.2, 0.7, 0.51, 0, 0, 0.6], [0.3, 0.8, 0.9, 0, 0, 1]]
    )
    assert entry_rounds(v).tolist() == [0, 1, 2, 0, 1, 2]
    # Without coupling that is when the loss falls below half of gamma.
    pacing = paced()
    losses = np.random.default_rng(0).uniform(0.5, 4, N)
    expected = [next(r for r in range(ROUNDS) if loss < 2**r / 2) + 1 for loss in losses]
    assert entry_rounds(pacing.v).tolist() == expected


@given(
    arrays(np.int64, st.integers(1, 60), elements=st.integers(0, 30)), st.integers(0, 2**32 - 1)
)
def test_entries_hold_every_sample_once(rounds, seed):
    random = np.random.default_rng(seed)
    easiness = random.integers(0, 4, len(rounds)).astype(float)
    easiness[random.random(len(rounds)) < 0.2] = np.nan
    found = entries_of(rounds, easiness, random.random(len(rounds)))
    assert len(found) <= MOST_STRIPS
    assert sum(e.n_entered for e in found) == (rounds > 0).sum()
    assert [e.n_so_far for e in found] == np.cumsum([e.n_entered for e in found]).tolist()
    for before, after in itertools.pairwise(found):
        assert before.last < after.first
    for entries in found:
        within = (rounds >= entries.first) & (rounds <= entries.last)
        assert entries.n_entered == within.sum()
        assert within[entries.shown].all()
        assert len(set(entries.shown.tolist())) == len(entries.shown) == min(8, within.sum())
        values = easiness[entries.shown]
        known = values[~np.isnan(values)]
        assert not np.isnan(values[: len(known)]).any()
        assert (np.diff(known) <= 0).all()
        if not np.isnan(easiness[within]).any():
            assert (known[0], known[-1]) == (easiness[within].max(), easiness[within].min())


def test_correlations_are_negative_with_rounds_and_positive_with_v():
    with_rounds, with_v = paced().correlations()
    assert with_v == pytest.approx(1)
    assert -1 < with_rounds < -0.8
    turned = paced(factor=-1.0).correlations()
    assert turned == pytest.approx((-with_rounds, -with_v))


def test_correlations_are_those_of_ranks_with_ties():
    """Of two rounds: Spearman's correlation is then a function of the area under the curve."""
    v = np.zeros((2, 30))
    early = rng.random(30) < 0.4
    v[0, early] = 1
    v[1, :20] = 1  # the others never enter, but where they did early
    v[1, early] = 1
    late = ~early & (np.arange(30) < 20)
    easiness = rng.normal(size=30)
    pacing = ModalityPacing(
        "image", v[:, early | late], *[["x"] * (early | late).sum()] * 2, easiness[early | late]
    )
    which = early[early | late]
    auc = roc_auc_score(which, easiness[early | late])
    n, p = len(which), which.mean()
    expected = np.sqrt(3 * p * (1 - p)) * (2 * auc - 1) * n / np.sqrt(n**2 - 1)
    assert pacing.correlations()[0] == pytest.approx(-expected)
    # One that never enters is later than any that does.
    whole = ModalityPacing(
        "image", v, ["x"] * 30, ["x"] * 30, 1.0 * -np.where(early, 1, np.where(late, 2, 3))
    )
    assert whole.correlations()[0] == pytest.approx(-1)


def test_what_does_not_vary_has_no_correlation():
    flat = paced(v=np.linspace(0.1, 0.9, ROUNDS)[:, None] * np.ones(N))
    assert np.isnan(flat.correlations()).all()
    assert np.isnan(paced(easiness=np.full(N, np.nan)).correlations()).all()
    assert [str(e) for e in flat.entries] == ["Round 3"] or len(flat.entries) == 1
    assert "The pacing is flat" in " ".join(facts(flat))
    assert "flat" not in " ".join(facts(paced()))


def test_facts_say_who_never_entered_and_who_fell_back():
    v = np.array([[0.9, 0.2, 0.1], [0.3, 0.4, 0.8], [0.9, 0.45, 0.9]])
    pacing = ModalityPacing("image", v, list("abc"), list("abc"), np.arange(3.0))
    told = " ".join(facts(pacing))
    assert "3 training images, 3 rounds. v varies most in round 1: from 0.10 to 0.90" in told
    assert f"standard deviation {v[0].std():.2g}." in told
    assert "1 never entered" in told
    assert "1 fell back" in told


def test_quarters_are_of_the_scored_samples():
    pacing = paced()
    curves = mean_v_of_quarters(pacing)
    order = np.argsort(-pacing.easiness)[: N - 1]  # NaN is last
    np.testing.assert_allclose(curves[0], pacing.v[:, order[:10]].mean(axis=1))
    np.testing.assert_allclose(curves[3], pacing.v[:, order[-9:]].mean(axis=1))
    (alone,) = mean_v_of_quarters(paced(easiness=np.full(N, np.nan)))
    np.testing.assert_allclose(alone, pacing.v.mean(axis=1))


def test_the_section_has_strips_by_round_and_a_table_of_everything():
    modalities = [paced(), paced("image", factor=-1.0, seed=1)]
    result = MethodPacing("CPRL <b>", modalities, ["image"])
    html, written = render_pacing(result, "instance", "instance")
    assert set(written) == {"pacing_instance.csv", "pacing_by_easiness_instance.png"}
    page = Page(html)
    assert page.within("h4") == ["sketches", "images"]
    shown = [sum(len(e.shown) for e in pacing.entries) for pacing in modalities]
    assert len(page.all("img")) == 1 + sum(shown)
    assert (
        page.all("img")[1]["alt"]
        == f"sketch of round 2, 1: <i>{modalities[0].entries[0].shown[0]}"
    )
    assert "<i>" not in html
    assert "CPRL &lt;b&gt;" in html
    assert "Curricula of images took part" in html
    expected = [f"{value:+.2f}" for pacing in modalities for value in pacing.correlations()]
    assert [cell for cell in page.within("td") if cell[0] in "+-"] == expected
    assert (expected[1], expected[3]) == ("+1.00", "-1.00")
    assert page.within("td")[:2] == ["edgeness", "39"]
    first = modalities[0].entries[0]
    assert f"Round 2: {first.n_entered} entered, {first.n_so_far} of 40 so far" in html
    with Image.open(io.BytesIO(written["pacing_by_easiness_instance.png"])) as image:
        assert image.width > image.height
    rows = rows_of(written["pacing_instance.csv"])
    assert len(rows) == 2 * N
    for pacing, part in zip(modalities, (rows[:N], rows[N:]), strict=True):
        assert [row["sample"] for row in part] == pacing.ids
        assert {row["modality"] for row in part} == {pacing.modality}
        assert [int(row["entry_round"]) for row in part] == pacing.entry_rounds.tolist()
        assert part[3]["easiness"] == ""
        v = [[float(row[f"v_{r + 1}"]) for row in part] for r in range(ROUNDS)]
        np.testing.assert_allclose(v, pacing.v, rtol=1e-5)
    assert (html, written) == render_pacing(result, "instance", "instance")


def test_without_pictures_or_scores_there_is_the_table():
    bare = replace(paced(easiness=np.full(N, np.nan), score=""), pictures={})
    html, written = render_pacing(MethodPacing("cprl", [bare]), "p", "p")
    page = Page(html)
    assert len(page.all("img")) == 1
    assert page.within("td")[:4] == ["none", "0", "–", "–"]
    assert "No curriculum took part" in html
    assert "pacing_p.csv" in written


def test_a_report_holds_it_under_its_protocol(build, bare):
    first, second = bare
    result = MethodPacing("cprl", [paced(), paced("image")])
    files = render_report(build(protocols=[replace(first, pacing=result), second]))
    page = files["report.html"].decode()
    assert page.count("<h3>Which samples entered when</h3>") == 1
    assert page.index("Which samples entered") < page.index(f'<section id="{second.name}">')
    assert {name for name in files if name.startswith("pacing_")} >= {
        f"pacing_{first.name}.csv",
        f"pacing_by_easiness_{first.name}.png",
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"v": np.ones(N)}, r"v has shape \(40,\)"),
        ({"v": np.ones((0, N))}, r"v has shape \(0, 40\)"),
        ({"ids": ["a"]}, "ids are 1 and v is of 40 samples"),
        ({"easiness": np.ones(3)}, "easiness are 3"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        paced(**changes)
