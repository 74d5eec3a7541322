"""Extractors that learn, in the chain: from whom, once for whom, and what it costs again."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cppcl.errors import InputError
from cppcl.features import Lks
from cppcl.modality import MODALITIES
from cppcl.pictures.decoding import decode_picture
from flows.configuration.load import load_experiment
from flows.selection import Selection
from storage import Reference, UnknownReferenceError
from tasks.progress import listening
from tasks.samples import open_pictures, open_split
from tasks.stages.contract import StageNotStoredError
from tasks.stages.names import STAGES
from tasks.workspace import Workspace

pytestmark = pytest.mark.usefixtures("inline_blocks_of_module")

NUMBERS = {"n_keyshapes": 6, "n_nearest": 2, "blocks": 2}
SKETCH = {"name": "lks", "contours": "strokes", **NUMBERS}
IMAGE = {"name": "lks", "contours": "canny", **NUMBERS}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, draw_pictures: Callable[..., Path]) -> Path:
    return draw_pictures(tmp_path_factory.mktemp("learn") / "shapes")


@pytest.fixture(scope="module")
def write(root: Path, write_experiment: Callable[..., Path]) -> Callable[..., Path]:
    """Write an experiment on two splits where both modalities use keyshapes."""

    def write(sketch: dict[str, Any] = SKETCH, image: dict[str, Any] = IMAGE, **more: Any) -> Path:
        features = {"sketch": sketch, "image": image}
        protocol = {
            "split": {"rule": "instance", "n_train": 7, "seeds": [0, 1]},
            "methods": {"centred_cosine": None},
        }
        given = {"features": features, "protocols": {"instance": protocol}, "curriculum": None}
        return write_experiment(root, **given | more)

    return write


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("workspace"))


@pytest.fixture(scope="module")
def first(write, place, run_plain, inline_blocks_of_module) -> Any:
    inline_blocks_of_module.clear()
    return run_plain(write(), place)


@pytest.fixture(scope="module")
def until(run_plain: Callable[..., Any]) -> Callable[..., Any]:
    """Run an experiment up to a stage, one stage at a time; returns the last chain."""

    def run(stage: str, *arguments: Any) -> Any:
        for only in STAGES[: STAGES.index(stage) + 1]:
            chain = run_plain(*arguments, selection=Selection(only=only))
        return chain

    return run


def references(chain: Any, piece: str) -> list[Reference]:
    return [result.reference for result in chain.pieces.get(piece, [])]


def paths_of(chain: Any, split: int, part: str) -> list[str]:
    """Files of one part of a split, such as ``train_sketches``."""
    store = chain.workspace.store
    table = open_pictures(store, references(chain, "fetch")[0]).table
    rows = getattr(open_split(store, references(chain, "split instance")[split]), part)
    modality: Any = "sketch" if part.endswith("sketches") else "image"
    return [table.column("paths", modality)[row] for row in rows]


def fitted(chain: Any, root: Path, split: int, part: str, **options: Any) -> Lks:
    """Keyshapes learned by hand from one part of a split, in the order of sha256."""
    table = open_pictures(chain.workspace.store, references(chain, "fetch")[0]).table
    digest_of = dict(zip(table.paths, table.sha256, strict=True))
    paths = sorted(paths_of(chain, split, part), key=digest_of.__getitem__)
    pictures = [decode_picture(root / path, longest_side=40) for path in paths]
    return Lks(**NUMBERS, **options).fit(pictures)


def test_both_sides_describe_by_keyshapes_of_training_sketches(first, root):
    store = first.workspace.store
    assert len(references(first, "learn sketch lks instance")) == 2
    table = open_pictures(store, references(first, "fetch")[0]).table
    for split, learned in enumerate(references(first, "learn sketch lks instance")):
        keyshapes = fitted(first, root, split, "train_sketches")
        for name, values in keyshapes.to_arrays().items():
            np.testing.assert_array_equal(store.open(learned).array(f"learned.{name}"), values)
        for modality, contours in (("sketch", "strokes"), ("image", "canny")):
            by_hand = Lks(**NUMBERS, contours=contours).from_arrays(keyshapes.to_arrays())
            pictures = [
                decode_picture(root / path, longest_side=40)
                for path in table.column("paths", modality)
            ]
            features = store.open(references(first, f"extract {modality} lks")[split])
            assert features.inputs["learned"] == learned
            np.testing.assert_allclose(
                features.array("features"), by_hand.transform(pictures), atol=1e-6
            )
    one, two = (store.open(r).array("features") for r in references(first, "extract image lks"))
    assert np.abs(one - two).max() > 0.1  # each split learned its own


def test_nothing_but_training_pictures_is_read(
    first, write, run_plain, until, tmp_path, inline_blocks_of_module
):
    place = Workspace(tmp_path / "other")
    until("split", write(), place)
    inline_blocks_of_module.clear()
    learned = run_plain(write(), place, selection=Selection(only="learn"))
    assert learned.pieces.keys() == {"fetch", "split instance", "learn sketch lks instance"}
    expected = [set(paths_of(first, split, "train_sketches")) for split in (0, 1)]
    assert len(inline_blocks_of_module) == sum(map(len, expected)) == 14
    assert [set(inline_blocks_of_module[:7]), set(inline_blocks_of_module[7:])] == expected
    assert references(learned, "learn sketch lks instance") == references(
        first, "learn sketch lks instance"
    )


def test_test_pictures_do_not_change_what_is_learned(
    first, root, write, until, place, draw_pictures, tmp_path
):
    """All pictures but the training sketches of split 0 become others, and get other names."""
    changed = Path(shutil.copytree(root, tmp_path / "changed"))
    others = draw_pictures(tmp_path / "others", first=20)
    training = set(paths_of(first, 0, "train_sketches"))
    for file in sorted(root.rglob("*.png")):
        path = file.relative_to(root)
        if path.as_posix() not in training:
            shutil.copy(others / path.parent / f"{int(path.stem) + 20}.png", changed / path)
    again = until("learn", write(), place, f"dataset.root={changed}", "seeds=[0]")
    assert references(again, "split instance") != references(first, "split instance")[:1]
    (result,) = again.pieces["learn sketch lks instance"]
    assert result.cached
    assert result.reference == references(first, "learn sketch lks instance")[0]
    until("fetch", write(), place)  # the folder is back


def test_a_second_run_computes_nothing(first, write, run_plain, place, inline_blocks_of_module):
    inline_blocks_of_module.clear()
    again = run_plain(write(), place)
    assert inline_blocks_of_module == []
    summary = again.record.summary(place.store)
    assert all(summary["cached"].values())
    assert summary["artifacts"]["learn"] == references(first, "learn sketch lks instance")[0].key
    assert list(summary["seconds"])[:4] == ["fetch", "split", "learn", "extract"]


def test_either_side_may_learn_for_itself(first, root, write, until, place):
    file = write(image={**IMAGE, "learn_from": "image"})
    own = until("extract", file, place)
    for piece in ("learn sketch lks instance", "extract sketch lks"):
        assert references(own, piece) == references(first, piece)
    learned = references(own, "learn image lks instance")
    keyshapes = fitted(first, root, 0, "train_images", contours="canny").to_arrays()
    stored = place.store.open(learned[0])
    np.testing.assert_array_equal(stored.array("learned.keyshapes"), keyshapes["keyshapes"])
    assert [
        place.store.open(r).inputs["learned"] for r in references(own, "extract image lks")
    ] == learned

    swapped = until("learn", write(sketch={**SKETCH, "learn_from": "image"}), place)
    assert set(references(swapped, "learn image lks instance")) == set(learned)


def test_what_is_stored_may_be_used_instead(first, write, run_plain, until, place):
    """All splits share the features of the one that learned it."""
    learned = references(first, "learn sketch lks instance")[1]
    one = run_plain(write(sketch={**SKETCH, "learned": learned.key[:9]}), place)
    assert not [name for name in one.pieces if name.startswith("learn")]
    for modality in MODALITIES:  # images follow sketches
        (result,) = one.pieces[f"extract {modality} lks"]
        assert result.cached
        assert result.reference == references(first, f"extract {modality} lks")[1]
    both = until("extract", write(image={**IMAGE, "learned": str(learned)}), place)
    assert len(references(both, "learn sketch lks instance")) == 2
    assert references(both, "extract image lks") == references(first, "extract image lks")[1:]


def test_a_run_says_which_test_pictures_taught_what_it_uses(first, write, until, place):
    learned = references(first, "learn sketch lks instance")[1]
    said: list[str] = []
    with listening(on_message=said.append):
        until("learn", write(sketch={**SKETCH, "learned": learned.key}), place)
    taught = set(paths_of(first, 1, "train_sketches"))
    seen = len(taught & set(paths_of(first, 0, "test_sketches")))
    assert 0 < seen < 5
    (message,) = {line for line in said if "learned" in line}
    assert message.startswith(f"instance, split 0: {seen} of 5 test sketch pictures are among")


def test_what_learns_nothing_is_extracted_once_beside_what_learns(write, until, place):
    pixels = {"name": "pixels", "size": [8, 8]}
    file = write(sketch=pixels, image={**IMAGE, "learn_from": "image"})
    chain = until("extract", file, place)
    assert len(references(chain, "extract sketch pixels")) == 1
    assert len(references(chain, "extract image lks")) == 2
    features = place.store.open(references(chain, "extract sketch pixels")[0])
    assert features.inputs.keys() == {"table"}


def test_stages_need_what_was_learned(write, run_plain, until, tmp_path):
    place = Workspace(tmp_path / "other")
    until("split", write(), place)
    with pytest.raises(StageNotStoredError, match=r"'learn' \(sketch lks, instance, split 0\)"):
        run_plain(write(), place, selection=Selection(only="extract"))
    forced = run_plain(write(), place, selection=Selection(start="learn"))
    assert [r.cached for r in forced.pieces["learn sketch lks instance"]] == [False, False]
    kept = run_plain(write(), place, selection=Selection(start="extract"))
    assert [r.cached for r in kept.pieces["learn sketch lks instance"]] == [True, True]
    assert [r.cached for r in kept.pieces["extract image lks"]] == [False, False]
    again = run_plain(write(), place, selection=Selection(force=("learn",)))
    assert [r.cached for r in again.pieces["learn sketch lks instance"]] == [False, False]
    assert [r.cached for r in again.pieces["extract image lks"]] == [True, True]


def test_what_was_learned_can_be_looked_at(first):
    store = first.workspace.store
    learned = store.open(references(first, "learn sketch lks instance")[0])
    arrays = {
        name.removeprefix("learned."): learned.array(name)
        for name in learned.names
        if name.startswith("learned.")
    }
    expected = Lks(**NUMBERS).from_arrays(arrays).drawing()
    assert learned.text("drawing.txt") == expected.caption
    with Image.open(learned.file_path("drawing.png")) as shown:
        np.testing.assert_array_equal(np.asarray(shown), expected.picture)


def test_report_shows_what_was_learned_and_where_they_are_used(first):
    store = first.workspace.store
    report = store.open(references(first, "report")[0])
    page = report.bytes("report.html").decode()
    for number, learned in enumerate(references(first, "learn sketch lks instance"), start=1):
        picture = report.bytes(f"learned_{learned.key[:12]}.png")
        assert picture == store.open(learned).bytes("drawing.png")
        row = f"<td>lks</td><td>7</td><td>instance, split {number}</td>"
        assert f'<th scope="row">{learned}</th>{row}' in page


def test_wrong_keys_are_refused(write, until, place, first):
    table = references(first, "fetch")[0]
    for wrong in ("0123456789", str(table), table.key):
        with pytest.raises(UnknownReferenceError, match="names no learn artifact"):
            until("extract", write(sketch={**SKETCH, "learned": wrong}), place)
    learned = references(first, "learn sketch lks instance")[0].key
    file = write(image={**IMAGE, "n_keyshapes": 7, "learned": learned})
    with pytest.raises(InputError, match="belong to another extractor or to other options"):
        until("extract", file, place)


@pytest.mark.parametrize(
    ("sketch", "image", "message"),
    [
        (
            {"name": "pixels"},
            IMAGE,
            r"features: image\.learn_from=sketch: 'lks' cannot go by what 'pixels' learns; "
            "set learn_from to image",
        ),
        (
            SKETCH,
            {**IMAGE, "n_keyshapes": 7},
            r"features: image\.learn_from=sketch: .*\(7, 136\).*\(6, 136\)",
        ),
        (SKETCH, {**IMAGE, "learn_from": "both"}, r"image\.lks\.learn_from: .*'both'"),
        ({"name": "pixels", "learn_from": "sketch"}, {"name": "pixels"}, "pixels.learn_from"),
    ],
    ids=["class", "shapes", "modality", "learns nothing"],
)
def test_what_cannot_work_is_refused_before_anything_runs(sketch, image, message, write):
    with pytest.raises(InputError, match=message):
        load_experiment(str(write(sketch, image)))
    # What needs nothing of the other modality is taken.
    if "learn_from" not in {**sketch, **image}:
        load_experiment(str(write(sketch, {**image, "learn_from": "image"})))
        load_experiment(str(write(sketch, {**image, "learned": "abcdef"})))


def test_options_of_learning_are_no_arguments_of_the_class(write):
    file = write(image={**IMAGE, "learn_from": "image", "learned": "abc"})
    options = load_experiment(str(file), ["features.sketch.learned=0123"]).features
    assert (options.sketch.learned, options.image.learned) == ("0123", "abc")
    assert options.sketch.learns
    assert "learned" not in options.image.arguments()
    assert Lks(**options.image.arguments()).contours == "canny"


NETWORK = {"name": "siamese", "epochs": 1, "batch_size": 4}


def test_one_network_is_trained_for_both_modalities(write, until, place):
    """Once a split, also where it is one of several extractors whose others learn nothing."""
    alone = until("extract", write(NETWORK, NETWORK), place)
    trained = references(alone, "learn siamese instance")
    assert len(set(trained)) == 2  # one a split
    options = {name: value for name, value in NETWORK.items() if name != "name"}
    beside = {"name": "pixels+siamese", "pixels": {"size": [8, 8]}, "siamese": options}
    combined = until("extract", write(beside, beside), place)
    assert references(combined, "learn pixels+siamese instance") == trained
    for chain in (alone, combined):
        assert sum(len(found) for n, found in chain.pieces.items() if n.startswith("learn")) == 2
    for modality in MODALITIES:
        codes, joined = (
            place.store.open(references(chain, f"extract {modality} {name}")[1]).array("features")
            for chain, name in ((alone, "siamese"), (combined, "pixels+siamese"))
        )
        np.testing.assert_allclose(joined[:, 64:], codes, atol=1e-6)


def test_two_networks_for_what_should_be_one_are_refused(write):
    for image in ({**NETWORK, "epochs": 2}, {**NETWORK, "name": "san"}):
        with pytest.raises(InputError, match="learn from both modalities at once"):
            load_experiment(str(write(NETWORK, image)))
    options = load_experiment(str(write(NETWORK, {"name": "pixels"}))).features
    assert options.sketch.source is None
