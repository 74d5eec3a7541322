"""Extractors combined by name, in experiment files and in the chain."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.features import make_extractor
from cppcl.pictures.decoding import decode_picture
from flows.configuration.describe import options_of
from flows.configuration.experiment import Experiment
from flows.configuration.load import load_experiment, option_paths
from flows.selection import Selection
from storage import Store
from tasks.samples import open_pictures, usable_rows
from tasks.workers.extractors import extractor_of

NUMBERS = {"n_keyshapes": 6, "n_nearest": 2, "blocks": 2}
PIXELS = {"size": [8, 8]}
SKETCH = {"name": "lks+pixels", "lks": NUMBERS, "pixels": PIXELS, "weights": [1, 0.5]}
IMAGE = {**SKETCH, "lks": {**NUMBERS, "contours": "canny"}}


@pytest.fixture
def write(shapes: Path, write_experiment: Callable[..., Path]) -> Callable[..., str]:
    def write(sketch: Any = SKETCH, image: Any = IMAGE) -> str:
        protocol = {
            "split": {"rule": "instance", "n_train": 7, "seeds": [0]},
            "methods": {"centred_cosine": None},
        }
        features = {"sketch": sketch, "image": image}
        return str(
            write_experiment(
                shapes, features=features, protocols={"instance": protocol}, curriculum=None
            )
        )

    return write


def test_chain_describes_by_both_parts_and_shares_what_one_learned(
    write, run_plain, workspace, shapes, inline_blocks, blank_reports
):
    chain = run_plain(write(), workspace)
    (learned,) = chain.pieces["learn sketch lks+pixels instance"]
    store: Store = workspace.store
    artifact = store.open(learned.reference)
    assert artifact.parameters["extractor"] == "lks"
    assert "drawing.png" in artifact.names
    arrays = {
        name: artifact.array(f"learned.{name}") for name in ("keyshapes", "statistics", "patches")
    }
    table = open_pictures(store, chain.pieces["fetch"][0].reference).table
    for modality, contours in (("sketch", "strokes"), ("image", "canny")):
        (result,) = chain.pieces[f"extract {modality} lks+pixels"]
        features = store.open(result.reference)
        assert features.inputs["learned"] == learned.reference
        assert usable_rows(features).all()
        pictures = [
            decode_picture(shapes / path, longest_side=40)
            for path in table.column("paths", modality)
        ]
        votes = make_extractor("lks", {**NUMBERS, "contours": contours}).from_arrays(arrays)
        parts = [votes, make_extractor("pixels", PIXELS)]
        blocks = [part.transform(pictures) for part in parts]
        blocks = [block / np.linalg.norm(block, axis=1, keepdims=True) for block in blocks]
        expected = np.hstack([blocks[0], blocks[1] / 2])
        np.testing.assert_allclose(features.array("features"), expected, atol=1e-6)
        # What searches and indexes makes the same extractor from the artifact alone.
        by_key = extractor_of(features).make(str(store.root))
        np.testing.assert_allclose(by_key.transform(pictures), expected, atol=1e-6)

    # Other weights learn nothing anew, and neither does lks alone.
    again = run_plain(
        write({**SKETCH, "weights": [1, 2]}, {**IMAGE, "weights": [1, 2]}), workspace
    )
    assert again.pieces["learn sketch lks+pixels instance"][0].cached
    assert not again.pieces["extract sketch lks+pixels"][0].cached
    alone = run_plain(
        write({"name": "lks", **NUMBERS}, IMAGE), workspace, selection=Selection(only="learn")
    )
    assert alone.pieces["learn sketch lks instance"][0].reference == learned.reference
    # Nor does a key of what lks alone learned.
    by_key = run_plain(write({**SKETCH, "learned": learned.reference.key[:12]}), workspace)
    assert by_key.pieces["extract sketch lks+pixels"][0].cached
    assert not [name for name in by_key.pieces if name.startswith("learn")]


def test_several_parts_that_learn_are_used_again_by_their_key(
    write, run_plain, workspace, inline_blocks, blank_reports
):
    both = {"name": "pixels+lks+sift", "lks": NUMBERS, "sift": {"n_words": 6}}
    chain = run_plain(write(both, both), workspace)
    (learned,) = chain.pieces["learn sketch pixels+lks+sift instance"]
    artifact = workspace.store.open(learned.reference)
    assert artifact.parameters["extractor"] == "lks+sift"
    assert {"learned.lks.keyshapes", "learned.sift.words"} <= set(artifact.names)
    given = {**both, "learned": learned.reference.key}
    again = run_plain(write(given, both), workspace)
    assert all(r.cached for name in again.pieces for r in again.pieces[name] if "extract" in name)
    with pytest.raises(InputError, match=r"is what 'lks\+sift' learned, but .* is 'lks'"):
        run_plain(write({**SKETCH, "learned": learned.reference.key}), workspace)


def test_a_key_of_another_extractor_is_refused(
    write, run_plain, workspace, inline_blocks, blank_reports
):
    chain = run_plain(write(), workspace)
    (learned,) = chain.pieces["learn sketch lks+pixels instance"]
    other = {"name": "sift+pixels", "sift": {"n_words": 6}, "learned": learned.reference.key}
    with pytest.raises(InputError, match=r"is what 'lks' learned, but .* is 'sift'"):
        run_plain(write(other, other), workspace)


def test_configuration_survives_and_says_every_option(write):
    experiment = load_experiment(write(), ["sketch.lks.blocks=3", "image.lks.blocks=3"])
    sketch = experiment.features.sketch
    assert sketch.arguments()["lks"]["blocks"] == 3
    assert sketch.arguments()["weights"] == (1.0, 0.5)
    assert sketch.learns
    assert Experiment.model_validate_json(experiment.model_dump_json()) == experiment
    assert Experiment.model_validate(experiment.model_dump(mode="json")) == experiment
    sections = options_of(experiment)
    rows = {name: value for name, value, _ in sections["features.sketch.lks"]}
    assert (rows["blocks"], rows["n_nearest"], rows["contours"]) == ("3", "2", "strokes")
    assert all(meaning for name in sections for _, _, meaning in sections[name])
    head = sections["features.sketch (name: lks+pixels)"]
    assert [name for name, *_ in head] == ["name", "weights", "learn_from", "learned"]
    assert ("features", "sketch", "lks", "blocks") in set(option_paths(experiment))


def test_parts_need_no_options(write):
    plain = {"name": "hog+pixels", "hog": None}
    features = load_experiment(write(plain, plain)).features
    assert not features.sketch.learns
    assert features.sketch.arguments()["pixels"]["size"] == (32, 40)
    assert "learned" not in type(features.sketch).model_fields


@pytest.mark.parametrize(
    ("sketch", "message"),
    [
        ({"name": "lks+pixel"}, r"features\.sketch: no feature extractor 'pixel' .*'pixels'"),
        ({"name": "lks+lks"}, r"features\.sketch: 'lks\+lks' names 'lks' twice"),
        ({**SKETCH, "weights": [1]}, r"features\.sketch: .*must be 2 numbers"),
        ({**SKETCH, "weights": [1, -1]}, r"features\.sketch: .*weight of pixels=-1"),
        ({**SKETCH, "weights": [1, "a"]}, r"features\.sketch\.weights\.1: .*'a'"),
        ({**SKETCH, "hog": {}}, r"features\.sketch\.hog: there is no"),
        ({**SKETCH, "lks": {"blocks": "a"}}, r"features\.sketch\.lks\.blocks: .*'a'"),
        ({**SKETCH, "lks": {"blocks": True}}, r"features\.sketch\.lks: blocks=True must be"),
        ({**SKETCH, "lks": {"blocks": 0}}, r"features\.sketch: option blocks=0"),
        ({**SKETCH, "learn_from": "both"}, r"features\.sketch\.learn_from: .*'both'"),
        ({"name": "hog+pixels", "learned": "a1"}, r"features\.sketch\.learned: there is no"),
        (
            {"name": "hog+pixels"},
            r"image\.learn_from=sketch: 'lks\+pixels' cannot .*'hog\+pixels'",
        ),
        (
            {**SKETCH, "lks": {**NUMBERS, "n_keyshapes": 7}},
            r"image\.learn_from=sketch: .*\(6, 136\).*\(7, 136\)",
        ),
    ],
)
def test_what_is_refused_names_where_it_stands(sketch, message, write):
    with pytest.raises(InputError, match=message):
        load_experiment(write(sketch))
