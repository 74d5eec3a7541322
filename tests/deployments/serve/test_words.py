"""Words beside a sketch: added by an encoder that knows them, else a filter by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cppcl.errors import InputError
from deployments.serve.answers import answered, describe_model
from deployments.serve.interface import Query
from deployments.serve.live import Live
from tasks.model import Model
from tasks.words import Words, named_rows
from tasks.workspace import Workspace
from tests.deployments.serve.serving import encoded, train_shapes
from tests.tiny_encoders import CLIP, clip_model, saved

K = 5


@pytest.fixture(scope="module")
def clip_place(tmp_path_factory, draw_pictures, extracting_here) -> Workspace:
    """Workspace of a model of open_clip, with random weights."""
    folder = tmp_path_factory.mktemp("words")
    place = Workspace(folder / "workspace")
    options = {
        "network": CLIP,
        "tag": None,
        "weights": saved(clip_model(folder), folder / "clip.pth"),
    }
    with extracting_here():
        shapes = draw_pictures(folder / "shapes", per_class=4)
        train_shapes(place, shapes, extractor="open_clip", options=options)
    return place


def asked(live: Live, sketch: Path, **query: Any) -> list[tuple[str, float]]:
    body = Query(picture=encoded(sketch.read_bytes()), k=K, **query).model_dump_json()
    return [(m.name, m.similarity) for m in answered(live, body.encode()).matches]


def found(model: Model, sketch: Path, words: Words) -> list[tuple[str, float]]:
    root = model.pictures.root
    return [
        (m.path.relative_to(root).as_posix(), m.similarity)
        for m in model.search(sketch, K, words=words)
    ]


def sketch_of(model: Model) -> Path:
    return model.pictures.root / model.pictures.table.column("paths", "sketch")[0]


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_words_are_added_with_their_weight(clip_place):
    """By the command as by the page, and as a search by brute force has it."""
    model, live = Model(clip_place, clip_place.find_model("shapes")), Live(clip_place, ["shapes"])
    assert describe_model(live.get(None)).takes_words
    sketch, text = sketch_of(model), "a red circle"
    plain = found(model, sketch, Words())
    features = model.workspace.store.open(model.lineage.features["sketch"]).array("features")
    extractor = live.get(None)._extractor
    code = unit(model.method.encode_sketches(features[:1])[0].astype(float))
    of_words = unit(model.method.encode_images(extractor.describe_words([text]))[0].astype(float))
    rows, codes, _ = model._gallery
    paths = model.pictures.table.column("paths", "image")
    for weight in (0.5, 20.0):
        similarity = unit(codes.astype(float)) @ unit(code + weight * of_words)
        best = np.argsort(-similarity, kind="stable")[:K]
        for answer in (
            found(model, sketch, Words(f" {text} ", weight)),
            asked(live, sketch, text=text, text_weight=weight),
        ):
            assert [name for name, _ in answer] == [paths[rows[at]] for at in best]
            np.testing.assert_allclose([s for _, s in answer], similarity[best], atol=1e-6)
            assert answer != plain
    assert dict(found(model, sketch, Words(text, 0.0))) == pytest.approx(dict(plain))


def test_without_a_text_tower_words_are_names(served_place, live):
    model = Model(served_place, served_place.find_model("shapes"))
    assert not describe_model(live.get(None)).takes_words
    sketch = sketch_of(model)
    every = [
        (m.path.relative_to(model.pictures.root).as_posix(), m.similarity, m.label)
        for m in model.search(sketch, 99)
    ]
    expected = [(name, s) for name, s, label in every if label == "square"][:K]
    assert len(expected) == K
    for answer in (found(model, sketch, Words("SQUare")), asked(live, sketch, text="SQUare")):
        assert answer == expected
    with pytest.raises(InputError, match=r"no picture has 'sqare' in its name.*'square'"):
        asked(live, sketch, text="sqare")


def test_a_weight_below_zero_is_refused():
    with pytest.raises(InputError, match="text_weight=-1"):
        Words("fish", -1.0)


def test_forms_of_unicode_do_not_matter():
    names = ["caf\u00e9", "stra\u00dfe"]
    for text, row in (("cafe\u0301", 0), ("CAF\u00c9", 0), ("STRASSE", 1)):
        assert named_rows(Words(text), ["", ""], names).tolist() == [row]
    with pytest.raises(InputError) as error:
        named_rows(Words("x" * 10_000), ["", ""], names)
    assert len(str(error.value)) < 300
    many = [f"class {n}" for n in range(1000)]
    with pytest.raises(InputError, match=r"there is class 0, class 1, .* and 980 more$"):
        named_rows(Words("zzz"), [""] * 1000, many)
