"""Folders with too little are refused by a message whose mend then works."""

import re
from pathlib import Path

import pytest

from cppcl.errors import InputError
from flows.configuration.enough import check_data
from flows.configuration.load import load_experiment


def fill(root: Path, counts: dict[str, tuple[int, int]], *, flat: bool = False) -> Path:
    """Files of each class: so many sketches, so many images."""
    for label, numbers in counts.items():
        for folder, number in zip(("sketches", "images"), numbers, strict=True):
            place = root / folder if flat else root / folder / label
            place.mkdir(parents=True, exist_ok=True)
            for k in range(number):
                (place / f"{label}{k}.png").write_bytes(b"never read")
    return root


def refusal(root: Path, *changes: str, experiment: str = "folder") -> str:
    """What is said against a folder; nothing if nothing is."""
    try:
        check_data(load_experiment(experiment, [f"root={root}", *changes]))
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("counts", "lower"),
    [
        ({"a": (3, 8), "b": (8, 3)}, 3),
        ({"a": (8, 8), "b": (2, 8)}, 2),
        ({"a": (2, 2), "b": (2, 2), "c": (2, 2)}, 2),
        ({"a": (2, 8), "b": (2, 8)}, None),  # one of each trains: too few for three folds
        ({"a": (8, 8), "b": (8, 0), "c": (1, 1)}, None),
    ],
)
def test_the_number_that_is_advised_is_enough(counts, lower, tmp_path):
    said = refusal(fill(tmp_path, counts))
    assert f"{tmp_path}: a run needs two classes or more with 4 sketches and 4 images" in said
    for label, (sketches, images) in counts.items():
        assert re.search(rf"'{label}' has {sketches} sketch\w* and {images} image", said)
    advised = re.findall(r"--set (minimum_groups=(\d))$", said)
    assert [int(number) for _, number in advised] == ([lower] if lower else [])
    for change, _ in advised:
        assert not refusal(tmp_path, change)
    fuller = {label: tuple(max(4, n) for n in numbers) for label, numbers in counts.items()}
    assert not refusal(fill(tmp_path, fuller))


@pytest.mark.parametrize(
    ("changes", "enough"),
    [
        (["minimum_groups=100000000000"], 10**11),
        (["n_folds=5000001"], 5000001),
        (["n_folds=5000001", "train_share=0.0001"], 25000005000),
    ],
)
def test_any_number_that_is_asked_for_is_answered_at_once(changes, enough, tmp_path):
    said = refusal(fill(tmp_path, {"a": (4, 4), "b": (4, 4)}), *changes)
    assert f"classes or more with {enough} sketches" in said


def test_where_nothing_is_validated_two_of_each_are_enough(tmp_path):
    root = fill(tmp_path, {"a": (2, 2), "b": (2, 2)})
    changes = ["minimum_groups=2", "choose=false", "protocols.category.methods={raw_cosine: {}}"]
    assert "4 sketches" in refusal(root)
    assert not refusal(root, *changes)


def test_pairs(tmp_path):
    root = fill(tmp_path, {"a": (5, 4)}, flat=True)
    said = refusal(root, experiment="pairs")
    assert "has 4 pairs of a sketch and a picture, and a run needs 5" in said
    assert not refusal(fill(root, {"a": (5, 5)}, flat=True), experiment="pairs")


def test_photos_without_sketches_lead_to_a_model_of_others(tmp_path):
    (tmp_path / "sketches").mkdir()
    said = refusal(fill(tmp_path, {"a": (0, 4), "b": (0, 4)}))
    assert f"cppcl run emoji, then cppcl index emoji {tmp_path / 'images'} --name NAME" in said
    assert "cppcl index" not in refusal(fill(tmp_path, {"a": (1, 4), "b": (0, 4)}))
