"""Snippets for the library, run as they stand: their codes find more than the features do."""

import re
from pathlib import Path

import numpy as np
import pytest

from cppcl.methods import make_method
from cppcl.retrieval.metrics import evaluate

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPETS = [
    pytest.param(text, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, text in enumerate(re.findall(r"(?ms)^```python\n(.*?)^```$", page.read_text()))
]
"""Fences without a file's name; those with one are of tutorials, which have tests of their own."""


def collection(n_classes, n_of_each, *, pairs=False, seed=0):
    """Training and test part: features of both modalities, labels of both.

    Content that the modalities share in part, what is of one modality alone, and noise, rectified
    as a network's outputs are. Pairs of the test have labels of their own.
    """
    rng = np.random.default_rng(seed)
    shared, *own = rng.normal(size=(3, 30, 120)) / 30**0.5
    nuisance = 1.5 * rng.normal(size=(2, 20, 120)) / 20**0.5
    centres = rng.normal(size=(n_classes, 30))

    def draw(content):
        parts = [content @ (shared + 0.7 * own[k]) for k in (0, 1)]
        parts = [F + rng.normal(size=(len(F), 20)) @ nuisance[k] for k, F in enumerate(parts)]
        return [np.maximum(F + 0.5 * rng.normal(size=F.shape) - 0.5, 0) for F in parts]

    labels = np.repeat(np.arange(n_classes), n_of_each)
    if pairs:
        return [(*draw(rng.normal(size=(n_classes, 30))), labels, labels) for _ in range(2)]
    return [
        (
            draw(centres[labels] + 0.6 * rng.normal(size=(len(labels), 30)))[0],
            draw(centres[labels] + 0.6 * rng.normal(size=(len(labels), 30)))[1],
            labels,
            labels,
        )
        for _ in range(2)
    ]


COLLECTIONS = {
    "4 classes": collection(4, 6),
    "20 classes": collection(20, 5),
    "100 classes": collection(100, 3),
    "150 pairs": collection(150, 1, pairs=True),
}


def scores(query, gallery, labels):
    """Rank-1 and mean average precision."""
    found = evaluate(query, gallery, labels.tolist(), labels.tolist()).scores
    return np.array([found["rank_1"], found["map"]])


@pytest.mark.parametrize("name", COLLECTIONS)
@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_finds_more_than_the_centred_cosine(snippet, name):
    training, (new_sketches, new_images, labels, _) = COLLECTIONS[name]
    given = dict(
        zip(
            ("sketch_features", "image_features", "sketch_labels", "image_labels"),
            training,
            strict=True,
        )
    )
    found = given | {"new_sketches": new_sketches, "new_images": new_images}
    exec(compile(snippet, "snippet", "exec"), found)  # as a reader runs it
    centred = make_method("centred_cosine").fit(*training)
    known = centred.encode_sketches(new_sketches), centred.encode_images(new_images)
    assert (scores(found["query"], found["gallery"], labels) > scores(*known, labels)).all()


def test_readme_has_a_snippet():
    assert [param.id for param in SNIPPETS if param.id.startswith("README")]
