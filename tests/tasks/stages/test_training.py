"""Curricula, training, coding and scoring as plain functions, also with skipped pictures."""

import warnings
from typing import Any

import numpy as np
import pytest

import tasks.workers.rounds
from cppcl.curriculum import pairs_from_scores
from cppcl.errors import ConvergenceWarning, InputError
from cppcl.learning.resuming import Round
from cppcl.retrieval.metrics import evaluate as evaluate_codes
from storage import Recipe, Writer
from tasks.progress import Progress, listening
from tasks.samples import open_curriculum, open_pictures, open_split, targets, usable_rows
from tasks.stages.encode import encode_features
from tasks.stages.evaluate import open_test_set
from tasks.stages.train import open_method

CPRL = {"n_atoms": 4, "alpha": 0.01, "n_rounds": 4, "initialization": {"n_initial_rounds": 2}}


SIDES = ("sketch", "image")


def test_pairs_come_from_the_scores_of_training_rows(stages):
    store = stages.workspace.store
    artifact = store.open(stages.curricula())
    rows = open_split(store, stages.split)
    table = open_pictures(store, stages.table).table
    for modality, training in (("sketch", rows.train_sketches), ("image", rows.train_images)):
        values = store.open(stages.scores[modality]).array("features")[training, 0]
        pairs = artifact.array(f"{modality}_pairs")
        assert pairs.dtype == np.int64
        assert len(pairs)
        harder, easier = pairs.T
        assert (values[harder] < values[easier]).all()
        expected = pairs_from_scores(
            values.astype(np.float64),
            targets(table, modality, "groups", training),
            delta=0.0,
            rho=1.0,
            scope="global",
            seed=0,
        )
        np.testing.assert_array_equal(pairs, expected.pairs)


def test_pairs_are_renumbered_without_skipped_samples(workspace):
    pairs = np.array([[0, 1], [1, 2], [2, 4], [4, 3], [3, 0]], dtype=np.int64)

    def create(writer: Writer) -> None:
        writer.put_array("sketch_pairs", pairs)
        writer.put_array("image_pairs", np.empty((0, 2), np.int64))

    recipe = Recipe("curricula", "1", {})
    workspace.store.get_or_create(recipe, create)
    kept = np.array([True, False, True, True, True])
    sketches = open_curriculum(workspace.store, recipe.reference, "sketch", kept)
    # Samples 0, 2, 3, 4 become 0, 1, 2, 3; the two pairs with sample 1 go.
    assert sketches.pairs.tolist() == [[1, 3], [3, 2], [2, 0]]
    assert sketches.value(np.array([1.0, 0.0, 0.0, 0.5])) == 0.5
    images = open_curriculum(workspace.store, recipe.reference, "image", kept[:3])
    assert images.pairs.shape == (0, 2)


def test_skipped_pictures_take_no_part(broken_stages):
    store = broken_stages.workspace.store
    rows = open_split(store, broken_stages.split)
    sketches = usable_rows(store.open(broken_stages.features["sketch"]))
    images = usable_rows(store.open(broken_stages.features["image"]))
    assert (len(sketches), sketches.sum(), images.sum()) == (12, 11, 11)

    curricula = broken_stages.curricula()
    missing = int(np.flatnonzero(~sketches[rows.train_sketches])[0])
    assert missing not in store.open(curricula).array("sketch_pairs")

    model = broken_stages.train("cprl", CPRL, curricula)
    pacing = store.open(model).array("model.sketch_pacing")
    assert len(pacing) == sketches[rows.train_sketches].sum() == 6

    codes = store.open(broken_stages.encode(model))
    for modality, ok in (("sketch", sketches), ("image", images)):
        values = codes.array(f"{modality}_codes")
        assert values.shape == (12, 4)
        assert (values[~ok] == 0).all()

    test = open_test_set(
        store, codes.reference, broken_stages.split, broken_stages.table, "groups"
    )
    assert len(test.query_rows) == 5
    assert len(test.gallery_rows) == 4
    counts = store.open(broken_stages.evaluate(codes.reference)).json("scores.json")["counts"]
    assert counts["n_gallery"] == 4
    assert counts["n_without_relevant"] == 1


def test_features_and_labels_of_the_rows_that_train(broken_stages, monkeypatch):
    from cppcl.baselines.direct import CentredCosine

    given: list[Any] = []
    fit = CentredCosine.fit

    def keep(self: Any, *arguments: Any) -> Any:
        given[:] = arguments
        return fit(self, *arguments)

    monkeypatch.setattr(CentredCosine, "fit", keep)
    broken_stages.train("centred_cosine", {}, None)
    store = broken_stages.workspace.store
    rows = open_split(store, broken_stages.split)
    table = open_pictures(store, broken_stages.table).table
    for number, (modality, training) in enumerate(
        (("sketch", rows.train_sketches), ("image", rows.train_images))
    ):
        artifact = store.open(broken_stages.features[modality])
        kept = training[usable_rows(artifact)[training]]
        np.testing.assert_array_equal(given[number], artifact.array("features")[kept])
        groups = table.column("groups", modality)
        assert list(given[2 + number]) == [groups[row] for row in kept]
    assert len(given[2]) == 6
    assert len(given[3]) == 7


def test_a_trained_method_codes_as_it_did(stages):
    store = stages.workspace.store
    reference = stages.train("cprl", CPRL, stages.curricula())
    codes = store.open(stages.encode(reference))
    method = open_method(store, reference)
    for modality, encode in (("sketch", method.encode_sketches), ("image", method.encode_images)):
        features = store.open(stages.features[modality]).array("features")
        np.testing.assert_array_equal(codes.array(f"{modality}_codes"), encode(features))


def test_codes_do_not_depend_on_rows_at_once(stages, monkeypatch, tmp_path):
    store = stages.workspace.store
    model = stages.train("cprl", CPRL, None)
    whole = store.open(stages.encode(model)).array("sketch_codes")
    monkeypatch.setattr("tasks.stages.encode.ROWS_AT_ONCE", 5)
    reference = encode_features(
        workspace=stages.workspace,
        model=model,
        sketch_features=stages.features["sketch"],
        image_features=stages.features["image"],
        mode="force",
    ).reference
    np.testing.assert_allclose(store.open(reference).array("sketch_codes"), whole, atol=1e-5)


def test_scores_are_those_of_the_test_rows(stages):
    store = stages.workspace.store
    codes = stages.encode(stages.train("centred_cosine", {}, None))
    artifact = store.open(stages.evaluate(codes))
    rows = open_split(store, stages.split)
    table = open_pictures(store, stages.table).table
    expected = evaluate_codes(
        store.open(codes).array("sketch_codes")[rows.test_sketches],
        store.open(codes).array("image_codes")[rows.test_images],
        np.array(table.column("groups", "sketch"))[rows.test_sketches],
        np.array(table.column("groups", "image"))[rows.test_images],
        metric="cosine",
        ranks=(1, 2),
        seed=0,
    )
    document = artifact.json("scores.json")
    assert document["scores"] == pytest.approx(expected.scores)
    assert document["chance"] == pytest.approx(expected.chance)
    assert document["chance"]["rank_1"] == pytest.approx(1 / 5)
    np.testing.assert_array_equal(artifact.array("query_rows"), rows.test_sketches)


def test_codes_without_any_entry_are_told(stages, said):
    codes = stages.encode(stages.train("cprl", {**CPRL, "alpha": 50.0}, None))
    said.clear()
    stages.evaluate(codes)
    stages.evaluate(codes)  # also where the scores come from the store
    text = "scores: 5 of 5 sketches and 5 of 5 images have an all-zero code"
    assert [message.startswith(text) for message in said] == [True, True]


def test_a_score_is_one_value_a_picture(stages):
    stages.scores = stages.features
    with pytest.raises(InputError, match=r"curriculum\.sketch: 'pixels' gives 64 values"):
        stages.curricula()


def test_train_is_keyed_on_curricula_only_where_given(stages):
    curricula = stages.curricula()
    with_pairs = stages.train("cprl", {**CPRL, "pacing": {"mu": 0.5}}, curricula)
    without = stages.train("cprl", {**CPRL, "pacing": {"mu": 0.5}}, None)
    assert with_pairs != without
    store = stages.workspace.store
    assert store.open(with_pairs).inputs["curricula"] == curricula
    assert "curricula" not in store.open(without).inputs


@pytest.mark.filterwarnings("default::cppcl.errors.ConvergenceWarning")
def test_a_solver_that_stops_early_says_so(stages, monkeypatch, said):
    make = tasks.workers.training.make_method

    def make_warning(name: str, **options: Any) -> Any:
        method = make(name, **options)
        fit = method.fit

        def warn_and_fit(*arguments: Any) -> Any:
            warnings.warn("stopped after 5 iterations", ConvergenceWarning, stacklevel=1)
            return fit(*arguments)

        method.fit = warn_and_fit
        return method

    monkeypatch.setattr(tasks.workers.training, "make_method", make_warning)
    stages.train("centred_cosine", {}, None)
    assert said == ["centred_cosine: stopped after 5 iterations"]


@pytest.mark.filterwarnings("default::cppcl.errors.ConvergenceWarning")
def test_encoding_that_stops_early_says_so(stages, monkeypatch, said):
    import tasks.stages.encode

    open_method = tasks.stages.encode.open_method

    def open_warning(*arguments: Any) -> Any:
        method = open_method(*arguments)
        encode = method.encode_images

        def warn_and_encode(features: Any) -> Any:
            warnings.warn("3 samples were not coded", ConvergenceWarning, stacklevel=1)
            return encode(features)

        method.encode_images = warn_and_encode
        return method

    monkeypatch.setattr(tasks.stages.encode, "open_method", open_warning)
    model = stages.train("centred_cosine", {}, None)
    said.clear()
    stages.encode(model)
    assert said == ["codes: 3 samples were not coded"]


def test_other_warnings_of_training_are_passed_on(stages, monkeypatch):
    from cppcl.baselines.direct import CentredCosine

    fit = CentredCosine.fit

    def warn_and_fit(self: Any, *arguments: Any) -> Any:
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)
        return fit(self, *arguments)

    monkeypatch.setattr(CentredCosine, "fit", warn_and_fit)
    with pytest.warns(RuntimeWarning, match="overflow"):
        stages.train("centred_cosine", {}, None)


class Interrupted(BaseException):
    """As when the process is killed: nothing in a task may catch it."""


def interrupt_after(n_rounds: int) -> Any:
    def on_progress(progress: Progress) -> None:
        if progress.stage == "train" and progress.done == n_rounds and progress.total > 1:
            raise Interrupted

    return on_progress


def test_rounds_are_told(stages):
    heard: list[Progress] = []
    with listening(on_progress=heard.append):
        stages.train("cprl", CPRL, None)
    steps = [(p.done, p.total) for p in heard if p.stage == "train"]
    assert steps == [(0, 1), (1, 4), (2, 4), (3, 4), (4, 4), (1, 1)]
    assert {p.label for p in heard if p.stage == "train"} == {"cprl"}


@pytest.mark.parametrize("curricula", [False, True])
def test_an_interrupted_training_goes_on(stages, monkeypatch, said, curricula):
    store = stages.workspace.store
    pairs = stages.curricula() if curricula else None
    options = {**CPRL, "n_rounds": 6}
    monkeypatch.setattr("tasks.workers.rounds.SHARE", 1e9)  # a checkpoint each round
    with pytest.raises(Interrupted), listening(interrupt_after(4)):
        stages.train("cprl", options, pairs)
    said.clear()
    artifact = store.open(stages.train("cprl", options, pairs))
    assert said == ["cprl: 3 of 6 rounds were done"]
    assert artifact.run["notes"]["rounds_of_this_call"] == 3
    again = stages.train("cprl", options, pairs, mode="force")
    assert again == artifact.reference
    anew = store.open(again)
    assert anew.run["notes"]["rounds_of_this_call"] == 6
    assert anew.manifest == artifact.manifest


def test_what_was_kept_of_another_training_is_not_used(stages, monkeypatch, said):
    store = stages.workspace.store
    expected = store.open(stages.train("cprl", CPRL, None)).manifest
    state = {"fingerprint": np.zeros(32, dtype=np.uint8), "codes": np.zeros((2, 2))}
    monkeypatch.setattr(Writer, "load_checkpoint", lambda self, name: state)
    said.clear()
    artifact = store.open(stages.train("cprl", CPRL, None, mode="force"))
    assert said[0].startswith("cprl: starts anew, since what was kept of it is of no use: resume")
    assert artifact.manifest == expected
    assert artifact.run["notes"]["rounds_of_this_call"] == 4


def test_checkpoints_take_little_of_the_time(monkeypatch):
    clock = [100.0]
    saved: list[int] = []
    monkeypatch.setattr(tasks.workers.rounds.time, "monotonic", lambda: clock[0])

    class SlowWriter:
        def save_checkpoint(self, name: str, arrays: Any) -> None:
            saved.append(arrays)
            clock[0] += 2.0

    rounds = tasks.workers.rounds.Rounds(SlowWriter(), "train", "cprl", lambda share: None)
    for number in range(1, 101):
        clock[0] += 3.0
        rounds(Round(number, 100, {}, 1.0, lambda number=number: number))
    assert saved[:3] == [1, 15, 29]  # 40 s later: every 14 rounds
    assert 2.0 * len(saved) / (clock[0] - 100.0) < 0.06
