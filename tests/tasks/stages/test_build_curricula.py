"""The stage of curricula: every form, people's answers, and what is counted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cppcl.curriculum import AllPairs, ChainedPairs, ExplicitPairs, Union, order_by_scores
from cppcl.curriculum.scores import hash_pairs
from cppcl.errors import InputError
from cppcl.modality import MODALITIES
from storage import Reference
from tasks.samples import open_curriculum, open_pictures, open_split, targets, training_rows
from tasks.stages.build_curricula import curricula_of_split, scores_of

OPTIONS = {"delta": 0.0, "scope": "global"}


def build(stages: Any, answers: dict[str, Path] | None = None, **options: Any) -> Reference:
    return curricula_of_split(
        workspace=stages.workspace,
        table=stages.table,
        split=stages.split,
        sketch_scores=stages.scores["sketch"],
        image_scores=stages.scores["image"],
        target="groups",
        options={**OPTIONS, **options},
        answers=answers,
    ).reference


def training_ids(stages: Any, modality: Any) -> list[str]:
    samples = open_pictures(stages.workspace.store, stages.table).table
    rows = training_rows(open_split(stages.workspace.store, stages.split), modality)
    return [samples.column("ids", modality)[row] for row in rows]


@pytest.mark.parametrize(("form", "kind"), [("all", AllPairs), ("chain", ChainedPairs)])
def test_pairs_that_are_not_listed_come_back_from_the_store(stages, form, kind):
    store = stages.workspace.store
    reference = build(stages, pair_form=form)
    samples = open_pictures(store, stages.table).table
    for modality in MODALITIES:
        rows = training_rows(open_split(store, stages.split), modality)
        scores = scores_of(store, stages.scores[modality], modality)[rows]
        labels = targets(samples, modality, "groups", rows)
        order = order_by_scores(scores, labels, **OPTIONS)
        everything = open_curriculum(store, reference, modality, np.ones(len(rows), dtype=bool))
        assert isinstance(everything, kind)
        v = np.random.default_rng(0).random(len(rows))
        assert everything.value(v) == pytest.approx(kind(order).value(v))
        assert everything.value(v) > 0
        kept = np.arange(len(rows)) != 2
        some = open_curriculum(store, reference, modality, kept)
        expected = kind(order).restrict(np.flatnonzero(kept))
        assert some.value(v[kept]) == pytest.approx(expected.value(v[kept]))
    counts = store.open(reference).json("counts.json")
    assert counts["image"]["admissible"] == order.n_pairs
    assert counts["image"]["hinges"] == everything.n_pairs


def test_options_of_one_side_hold_for_it_alone(stages):
    store = stages.workspace.store
    mixed = store.open(
        build(stages, sketch_rho=0.2, image_rho=1.0, image_delta=1.0, sketch_source="scores")
    )
    for modality, options in (("sketch", {"rho": 0.2}), ("image", {"rho": 1.0, "delta": 1.0})):
        alone = store.open(build(stages, **options))
        name = f"{modality}_pairs"
        np.testing.assert_array_equal(mixed.array(name), alone.array(name))
        counts = [artifact.json("counts.json")[modality] for artifact in (mixed, alone)]
        assert counts[0] == counts[1]
    sizes = [len(mixed.array(f"{modality}_pairs")) for modality in MODALITIES]
    assert 0 < sizes[0] < sizes[1]


def test_a_learner_trains_by_pairs_that_are_not_listed(stages):
    options = {
        "n_atoms": 4,
        "n_rounds": 3,
        "initialization": {"n_initial_rounds": 2},
        "alpha": 0.01,
        "pacing": {"mu": 0.5},
    }
    pacing = []
    for form in ("sampled", "all"):
        curricula = build(stages, pair_form=form, rho=1.0)
        model = stages.train("cprl", options, curricula)
        pacing.append(stages.workspace.store.open(model).array("model.image_pacing"))
    # The same pairs, with their hinge smoothed where they are not listed.
    np.testing.assert_allclose(pacing[0], pacing[1], atol=5e-3)
    assert np.ptp(pacing[0]) > 1e-3


@pytest.mark.parametrize("form", ["sampled", "all"])
def test_answers_take_part_by_their_content(stages, tmp_path, form):
    store = stages.workspace.store
    first, second, third = training_ids(stages, "sketch")[:3]
    head = "sample_a,sample_b,easier\n"
    table = tmp_path / "answers.csv"
    table.write_text(
        f"{head}{first},{second},a\n{second},{first},a\n{first},{third},b\n{first},{third},skip\n"
    )
    sources = {"sketch_source": "both", "pair_form": form}
    both = build(stages, {"sketch": table}, **sources)
    alone = build(stages, {"sketch": table}, **{**sources, "sketch_source": "answers"})
    kept = np.ones(len(training_ids(stages, "sketch")), dtype=bool)
    answered = open_curriculum(store, alone, "sketch", kept)
    assert isinstance(answered, ExplicitPairs)
    assert answered.pairs.tolist() == [[1, 0], [0, 1], [0, 2]]
    joined = open_curriculum(store, both, "sketch", kept)
    assert isinstance(joined, ExplicitPairs if form == "sampled" else Union)
    scores_only = open_curriculum(store, build(stages, pair_form=form), "sketch", kept)
    assert joined.n_pairs == scores_only.n_pairs + 3
    images = open_curriculum(store, both, "image", kept)
    assert images.n_pairs == open_curriculum(store, alone, "image", kept).n_pairs

    counts = store.open(both).json("counts.json")["sketch"]
    assert counts["answers"] == {
        "pairs": 3,
        "answers": 4,
        "skipped": 1,
        "of other samples": 0,
        "contradicted": 1,
        "in cycles": 2,
    }
    assert counts["agreement"]["n_pairs"] == 3
    assert abs(counts["agreement"]["kendall"]) == pytest.approx(1 / 3)

    moved = table.rename(tmp_path / "elsewhere.csv")
    assert build(stages, {"sketch": moved}, **sources) == both
    moved.write_text(f"{head}{first},{second},b\n")
    assert build(stages, {"sketch": moved}, **sources) != both


def test_answers_about_test_pictures_are_left_out_and_said(stages, tmp_path, said):
    samples = open_pictures(stages.workspace.store, stages.table).table
    tested = [
        i for i in samples.column("ids", "sketch") if i not in training_ids(stages, "sketch")
    ]
    table = tmp_path / "answers.csv"
    table.write_text(f"sample_a,sample_b,easier\n{tested[0]},{tested[1]},a\n")
    reference = build(stages, {"sketch": table}, sketch_source="answers")
    counts = stages.workspace.store.open(reference).json("counts.json")["sketch"]
    assert counts["answers"]["of other samples"] == 1
    assert counts["hinges"] == 0
    assert counts["agreement"]["kendall"] is None
    assert any("none of the 1 answers" in line for line in said)


def test_a_wrong_table_of_answers_is_named(stages, tmp_path):
    table = tmp_path / "answers.csv"
    table.write_text("sample_a,sample_b,easier\nx,y,maybe\n")
    with pytest.raises(InputError, match=r"answers\.csv, line 2: easier='maybe'"):
        build(stages, {"sketch": table}, sketch_source="both")


def test_hashed_pairs_go_by_the_ids_of_training_pictures(stages):
    store = stages.workspace.store
    reference = build(stages, pair_form="hashed", rho=0.5, seed=3)
    samples = open_pictures(store, stages.table).table
    for modality in MODALITIES:
        rows = training_rows(open_split(store, stages.split), modality)
        order = order_by_scores(
            scores_of(store, stages.scores[modality], modality)[rows],
            targets(samples, modality, "groups", rows),
            **OPTIONS,
        )
        expected = hash_pairs(order, training_ids(stages, modality), rho=0.5, seed=3)
        found = store.open(reference).array(f"{modality}_pairs")
        np.testing.assert_array_equal(found, expected.pairs)
        assert 0 < len(found) < order.n_pairs


def test_the_fuller_of_two_drawings_is_the_easier_one(stages, monkeypatch):
    import tasks.stages.build_curricula as module

    emptier, fuller = training_ids(stages, "sketch")[:2]
    monkeypatch.setattr(module, "fuller_is_easier", lambda ids, groups: [(fuller, emptier)])
    artifact = stages.workspace.store.open(build(stages, sketch_source="drawn"))
    assert artifact.array("sketch_pairs").tolist() == [[0, 1]]
    assert artifact.json("counts.json")["sketch"]["annotator"] == "drawn"
    assert len(artifact.array("image_pairs")) > 0
