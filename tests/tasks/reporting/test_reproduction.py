"""What a reproduction is made of: binary codes, times of a query, and the page itself."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import normalize

from cppcl.retrieval.comparison import mean_interval, paired_difference
from cppcl.retrieval.hashing import IterativeQuantization
from storage import Reference
from tasks.lineage import Lineage
from tasks.reporting.reproduction.page import KINDS, reproduction_of_paper
from tasks.reporting.reproduction.plots import convergence_claims, shares_ahead
from tasks.reporting.reproduction.series import MeasuredItem, Scores, Series
from tasks.reporting.retrieval_time import time_of_a_query
from tasks.reporting.score_time import time_of_scores
from tasks.samples import open_split
from tasks.stages.binary_codes import binary_codes_of
from tasks.stages.contract import StageResult
from tests.cppcl.report.pages import rows_of

OPTIONS = {"n_atoms": 4, "alpha": 0.01, "n_rounds": 3, "initialization": {"n_initial_rounds": 1}}


@pytest.fixture(scope="module")
def trained(stages: Any) -> dict[str, Reference]:
    """Evaluations of CPRL and of the cosine on one split."""
    return {
        "cprl": stages.evaluate(stages.encode(stages.train("cprl", OPTIONS, stages.curricula()))),
        "plain": stages.evaluate(
            stages.encode(
                stages.train("cprl", {**OPTIONS, "pacing": {"regularizer": "none"}}, None)
            )
        ),
        "cosine": stages.evaluate(stages.encode(stages.train("centred_cosine", {}, None))),
    }


def lineage_of(stages: Any, evaluation: Reference) -> Lineage:
    return Lineage.of_evaluation(stages.workspace.store, evaluation)


def test_binary_codes_are_learned_from_training_rows_of_both_modalities(stages, trained):
    store, exact = stages.workspace.store, lineage_of(stages, trained["cprl"]).codes
    made = store.open(
        binary_codes_of(
            workspace=stages.workspace, codes=exact.reference, split=stages.split, bits=3, seed=2
        ).reference
    )
    split = open_split(store, stages.split)
    sides = {
        side: normalize(exact.array(f"{side}_codes").astype(float)) for side in ("sketch", "image")
    }
    learned = IterativeQuantization.fit(
        np.concatenate(
            [sides["sketch"][split.train_sketches], sides["image"][split.train_images]]
        ),
        3,
        seed=2,
    )
    for side, values in sides.items():
        found = made.array(f"{side}_codes")
        some = values.any(axis=1)
        np.testing.assert_array_equal(found[some], learned.transform(values[some]))
        assert not found[~some].any()
        assert found.shape[1] == 3
    scored = store.open(stages.evaluate(made.reference)).json("scores.json")
    zero = sum(int((~values.any(axis=1)).sum()) for values in sides.values())
    assert scored["counts"]["n_zero_queries"] <= zero


def test_times_of_a_query_are_measured_once(stages, trained):
    first, second = (
        time_of_a_query(workspace=stages.workspace, evaluation=trained["cosine"]) for _ in range(2)
    )
    assert (first.cached, second.cached) == (False, True)
    times = stages.workspace.store.open(first.reference).json("times.json")
    assert all(times[part] > 0 for part in ("describe", "encode", "rank"))
    assert times["gallery"] == 5


def line(name: str, title: str, evaluation: Reference | None, **about: Any) -> Series:
    given = {"line": name, "printed": None, "preset": "ours", "errata": [], "note": ""}
    found = [evaluation, evaluation] if evaluation else []
    return Series(title, found, {**given, **about}, missing="" if found else "data not present")


def table_item(trained: dict[str, Reference]) -> MeasuredItem:
    series = [
        line("b", "CPRL", trained["cprl"], printed=0.5, errata=[1]),
        line("cosine", "Cosine", trained["cosine"], printed=0.01),
        line("deep", "Deep", None, printed=0.4, preset="quoted", note="Quoted."),
    ]
    statements = [{"text": "B is ahead", "first": "b", "second": "cosine", "errata": [8]}]
    options = {"score": "map", "statements": statements}
    return MeasuredItem("table1", "scores", "Table", "Table 1", options, series)


def render(stages: Any, *items: MeasuredItem, **changes: Any) -> StageResult:
    given = {"name": "tiny", "title": "Tiny", "notes": ["a note"], "items": items}
    return reproduction_of_paper(workspace=stages.workspace, **given | changes)


def rows_in(stages: Any, result: StageResult, name: str) -> list[dict[str, str]]:
    return rows_of(stages.workspace.store.open(result.reference).text(name))


def test_a_table_holds_what_the_evaluations_hold(stages, trained):
    store = stages.workspace.store
    result = render(stages, table_item(trained))
    first, second, quoted = rows_in(stages, result, "table1.csv")
    scores = {name: Scores.of(store, Series("", [r, r])) for name, r in trained.items()}
    ours = mean_interval(scores["cprl"].values("map"), scores["cprl"].queries)
    assert float(first["ours"]) == ours.mean
    assert first["95 % interval"] == f"[{ours.low!r}, {ours.high!r}]"
    assert float(first["difference"]) == pytest.approx(ours.mean - 0.5)
    assert first["artifacts"] == f"{trained['cprl']} {trained['cprl']}"
    assert (first["errata"], first["splits"], float(first["±"])) == ("1", "2", 0)
    assert second["agreement"] == "higher"
    assert (quoted["ours"], quoted["note"]) == ("", "Quoted. data not present")
    assert (quoted["printed"], quoted["options"], quoted["artifacts"]) == ("0.4", "quoted", "")
    (claim,) = rows_in(stages, result, "claims.csv")
    found = paired_difference(
        scores["cprl"].values("map"), scores["cosine"].values("map"), scores["cprl"].queries
    )
    assert claim["verdict"] == "1 split missing"
    assert f"{100 * found.mean:+.1f}" in claim["measured"]


def test_a_statement_is_decided_by_three_splits(stages, trained):
    item = table_item(trained)
    item = replace(
        item, series=[replace(s, evaluations=[*s.evaluations[:1]] * 3) for s in item.series]
    )
    (claim,) = rows_in(stages, render(stages, item), "claims.csv")
    scores = {
        name: Scores.of(stages.workspace.store, Series("", [r] * 3)) for name, r in trained.items()
    }
    found = scores["cprl"].minus(scores["cosine"], "map")
    # The same split three times: other splits would say the same, and queries decide.
    words = {"ahead": "holds", "level": "not decided", "behind": "does not hold"}
    assert claim["verdict"] == words[found.verdict]
    assert f"over splits [{100 * found.mean:+.1f}, {100 * found.mean:+.1f}]" in claim["measured"]


def test_a_line_as_printed_says_what_is_not(stages, trained):
    series = [line("b", "CPRL", trained["cprl"], printed=0.5, preset="as printed", note="N.")]
    item = MeasuredItem("t", "scores", "", "", {"score": "map", "statements": []}, series)
    result = render(stages, item)
    (forms,) = rows_in(stages, result, "t_forms.csv")
    assert forms["sign of B"] == "corrected"
    assert forms["graph"] == "no weights within a modality"
    assert forms["first dictionaries"] == forms["groups of A"] == "as printed"
    assert "colour contrast" in forms["scores of curricula"]
    (row,) = rows_in(stages, result, "t.csv")
    differing = [name for name in list(forms)[1:-3] if forms[name] != "as printed"]
    assert row["note"] == f"N. Not as printed: {', '.join(differing)}."
    assert "features" in differing


def test_it_is_rendered_to_the_same_bytes(stages, trained):
    store = stages.workspace.store
    items = all_items(stages, trained)
    first = store.open(render(stages, *items).reference)
    before = {name: first.bytes(name) for name in first.names}
    assert render(stages, *items).cached
    again = render(stages, *items, mode="force")
    assert not again.cached
    assert again.reference == first.reference
    after = store.open(again.reference)
    assert {name: after.bytes(name) for name in after.names} == before


def test_what_its_key_depends_on(stages, trained):
    item = table_item(trained)
    other = line("b", "CPRL", trained["cosine"], printed=0.5)
    changed = [
        render(stages, item),
        render(stages, item, notes=[]),
        render(stages, item, title="T"),
        render(stages, MeasuredItem(**{**vars(item), "message": "failed", "failed": True})),
        render(stages, MeasuredItem(**{**vars(item), "series": [other, *item.series[1:]]})),
        render(stages, MeasuredItem(**{**vars(item), "series": item.series[::-1]})),
    ]
    assert len({result.reference for result in changed}) == len(changed)


def all_items(stages: Any, trained: dict[str, Reference]) -> list[MeasuredItem]:
    """One item of each kind."""
    space = stages.workspace
    codes = lineage_of(stages, trained["cprl"]).codes.reference
    binary = binary_codes_of(workspace=space, codes=codes, split=stages.split, bits=3)
    short = stages.evaluate(binary.reference)
    methods = [
        Series("CPRL", [trained["cprl"]], {"note": ""}),
        Series("V = I", [trained["plain"]], {"note": ""}),
    ]
    timed = time_of_a_query(workspace=space, evaluation=trained["cprl"]).reference
    scored = time_of_scores(
        workspace=space,
        table=lineage_of(stages, trained["cprl"]).table,
        modality="sketch",
        extracted=[stages.scores["sketch"]],
    ).reference
    axis = {
        "option": "alpha",
        "title": "alpha",
        "expected": "flat",
        "statement": "It is flat",
        "errata": [],
        "seconds": "sketch",
        "chosen": [0.1, 10.0],
    }
    swept = [
        Series(
            "CPRL",
            [trained["cprl"]] * 3,
            {"option": "alpha", "value": value, "seconds": "sketch", "errata": [12]},
            [scored],
        )
        for value in (0.1, 10.0)
    ]
    places = [
        Series(
            "",
            [trained[name]] if name else [],
            {"x": x, "y": y},
            missing="" if name else "failed: x",
        )
        for name, x, y in (("plain", 0, 0), ("cprl", 0.5, 0), ("cprl", 0, 0.5), (None, 0.5, 0.5))
    ]
    soon = {"stable": {"text": "It is soon stable", "limit": 40, "errata": [20]}}
    ahead = {"ahead": {"text": "Curricula help", "errata": [22, 23]}}
    square = {"title": "rho", "chosen": [0, 0.5]}
    compared = [
        Series("Published", about={"printed": {"map": 0.5}, "note": ""}),
        Series("CPRL", [trained["cprl"]], {"printed": {}, "note": ""}),
    ]
    exact = {"method": "cprl", "bits": None, "note": ""}
    series: dict[str, tuple[dict[str, Any], list[Series]]] = {
        "differences": ({"score": "map"}, methods),
        "binary_codes": (
            {"score": "map"},
            [
                Series("CPRL", [trained["cprl"]], exact),
                Series("CPRL", [short], {**exact, "bits": 3}),
                Series("CPRL", [], {**exact, "bits": 64}, missing="codes are shorter"),
            ],
        ),
        "costs": ({"score": "map", "printed": {"CPRL": "27 min"}}, methods),
        "retrieval_time": (
            {"score": "map"},
            [Series("CPRL", [trained["cprl"]], {"note": ""}, [timed]), methods[1]],
        ),
        "precision_recall": ({"score": "map"}, methods),
        "per_category": ({"score": "map", "claims": {}}, methods),
        "grid": (
            {
                "configuration": {
                    "report": {"queries": 2, "nearest": 2, "seed": 0},
                    "longest_side": 40,
                }
            },
            methods[:1],
        ),
        "convergence": ({"score": "map", "claims": soon}, methods),
        "sensitivity": ({"score": "map", "axes": [axis]}, swept),
        "surface": ({"score": "map", "x": square, "y": square, "claims": ahead}, places),
        "protocol": ({"sizes": None}, compared),
    }
    assert series.keys() | {"scores"} == KINDS.keys()
    items = [MeasuredItem(kind, kind, kind, "as it is", *given) for kind, given in series.items()]
    return [table_item(trained), *items]


def test_every_kind(stages, trained):
    result = render(stages, *all_items(stages, trained))
    store = stages.workspace.store
    artifact = store.open(result.reference)

    def score(name: str) -> float:
        return float(store.open(trained[name]).json("scores.json")["scores"]["map"])

    (lost,) = rows_in(stages, result, "differences.csv")
    assert float(lost["difference"]) == pytest.approx(score("cprl") - score("plain"))
    exact, short, long = rows_in(stages, result, "binary_codes.csv")
    assert float(exact["ours"]) == pytest.approx(score("cprl"))
    assert float(short["minus exact codes"]) == pytest.approx(float(short["ours"]) - score("cprl"))
    assert (long["bits"], long["ours"]) == ("64", "")
    costs = {row["component"]: row for row in rows_in(stages, result, "costs.csv")}
    model = lineage_of(stages, trained["cprl"]).training
    assert float(costs["CPRL"]["mean"]) == model.run["seconds"]
    assert costs["CPRL"]["printed"] == "27 min"
    assert costs["CPRL"]["artifacts"] == str(model.reference)
    assert {"pixels (sketch)", "pixels (image)", "edgeness (sketch)"} <= costs.keys()
    curves = rows_in(stages, result, "precision_recall.csv")
    whole = store.open(trained["cprl"]).array("precision_recall")
    assert [float(curves[0][f"{r / 10:g}"]) for r in range(11)] == whole[::10].tolist()
    categories = rows_in(stages, result, "per_category.csv")[0]
    evaluation = store.open(trained["cprl"])
    means = [
        float(categories[name]) for name in ("circle", "square", "triangle") if name in categories
    ]
    assert np.nanmin(evaluation.array("average_precision")) <= min(means)
    assert len(rows_in(stages, result, "grid.csv")) == 2
    objectives = {
        (row["method"], row["objective"]): row
        for row in rows_in(stages, result, "convergence.csv")
    }
    history = model.array("history.reconstruction_objective")
    assert float(objectives["CPRL", "reconstruction objective"]["last round"]) == history[-1]
    swept = rows_in(stages, result, "sensitivity_alpha.csv")
    assert [row["value"] for row in swept] == ["0.1", "10.0"]
    edgeness = store.open(stages.scores["sketch"])
    timed = store.open(Reference.parse(swept[0]["artifacts"].split()[-1]))
    times = timed.json("times.json")[str(edgeness.reference)]
    assert 0 < times["least"] <= times["median"] <= times["most"]
    assert float(swept[0]["ms a picture"]) == times["median"]
    known = [row["ours"] != "" for row in rows_in(stages, result, "surface.csv")]
    assert known == [True, True, True, False]
    claims = {row["item"]: row for row in rows_in(stages, result, "claims.csv")}
    assert claims["sensitivity"]["verdict"] == "holds"  # the same evaluation twice
    assert claims["surface"]["errata"] == "22 23"
    found = claims["convergence"]["verdict"], claims["convergence"]["errata"]
    assert found == ("2 splits missing", "20")
    assert claims["surface"]["verdict"] == "2 splits missing"
    page = artifact.text("index.html")
    for key in (model.reference, trained["plain"]):
        assert str(key) in page


def test_what_is_missing_is_said(stages, trained):
    missing = Series("CPRL", [], {"note": ""}, missing="data not present")
    kinds = KINDS.keys() - {"scores", "binary_codes", "sensitivity", "surface", "protocol"}
    options = {"score": "map", "printed": {}, "claims": {}}
    items = [
        MeasuredItem(kind, kind, kind, "", options, [missing], message="data not present: cufs")
        for kind in sorted(kinds)
    ]
    failed = MeasuredItem("bad", "differences", "", "", options, [missing], (), "no", True)
    result = render(stages, *items, failed, table_item(trained))
    states = {row["item"]: row["state"] for row in rows_in(stages, result, "items.csv")}
    assert states == {**dict.fromkeys(kinds, "absent"), "bad": "failed", "table1": "done"}
    page = stages.workspace.store.open(result.reference).text("index.html")
    assert page.count("data not present: cufs") == len(kinds)


def test_statements_on_objectives_look_at_every_split():
    said = {
        "stable": {"text": "stable", "limit": 4, "errata": []},
        "lower": {"text": "lower", "limit": 0.9, "errata": [20]},
    }
    soon, late = np.array([4.0, 1, 1, 1, 1, 1]), np.array([4.0, 4, 4, 4, 4, 1])

    def verdicts(paced, plain):
        return [c.verdict for c in convergence_claims(said, {"B": paced, "V = I": plain})]

    assert verdicts([soon] * 3, [2 * soon] * 3) == ["holds", "holds"]
    assert verdicts([soon, soon], [2 * soon] * 2) == ["1 split missing"] * 2
    assert verdicts([late] * 3, [2 * soon] * 3) == ["does not hold", "holds"]
    assert verdicts([soon] * 3, [soon] * 3) == ["holds", "does not hold"]
    assert verdicts([soon, soon, late], [2 * soon] * 3) == ["not decided", "holds"]
    mixed = [soon / 3, soon, 2 * soon]
    assert verdicts(mixed, [soon] * 3) == ["holds", "not decided"]


def test_categories_in_which_a_method_is_ahead_are_counted_in_each_split():
    first = [{"cat": 0.5, "dog": 0.2}, {"cat": 0.5}]
    rivals = [[{"cat": 0.4, "dog": 0.3}, {"cat": 0.5}], [{"cat": 0.1, "dog": 0.1}, {"cat": 0.1}]]
    assert shares_ahead(first, rivals) == [0.5, 1.0]
