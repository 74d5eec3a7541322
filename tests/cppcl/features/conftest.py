from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cppcl.features import EXTRACTORS, Extractor, make_extractor
from tests.tiny_encoders import CLIP, TIMM, clip_model, saved, timm_model

# Options of the extractors that need some.
OPTIONS: dict[str, dict[str, Any]] = {
    "precomputed": {"length": 12},
    "gf_hog": {"n_words": 60},
    "self_similarity": {"n_words": 60},
    "shog": {"n_words": 60},
    "sift": {"n_words": 60},
    "structure_tensor_words": {"n_words": 60},
    **{
        name: {"epochs": 1, "batch_size": 4}
        for name, extractor in EXTRACTORS.items()
        if extractor.cross_modal
    },
}
OPTIONS["adapter"] |= {"features": "pixels+hog", "options": {"pixels": {"size": [8, 8]}}}


def _drawing(seed: int, height: int, width: int) -> np.ndarray:
    """Dark lines and a coloured box on white."""
    rng = np.random.default_rng(seed)
    picture = np.full((height, width, 3), 255, dtype=np.uint8)
    for _ in range(4):
        picture[rng.integers(height), :] = rng.integers(0, 100, 3)
        picture[:, rng.integers(width)] = rng.integers(0, 100, 3)
    top, left = rng.integers(height // 2), rng.integers(width // 2)
    picture[top : top + height // 3, left : left + width // 3] = rng.integers(0, 256, 3)
    return picture


@pytest.fixture(scope="session")
def drawings() -> list[np.ndarray]:
    return [_drawing(seed, 40 + 13 * seed, 90 - 7 * seed) for seed in range(8)]


@pytest.fixture(scope="session")
def odd_pictures() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    line = np.full((300, 1, 3), 255, dtype=np.uint8)
    line[40:200] = 0
    thin = np.full((1, 500, 3), 255, dtype=np.uint8)
    thin[0, 100:300:7] = 30
    large = np.full((3000, 4000, 3), 255, dtype=np.uint8)
    large[500:520, 300:3900] = large[400:2900, 1000:1020] = 20
    speck = np.full((64, 64, 3), 255, dtype=np.uint8)
    speck[10, 20] = 0
    return {
        "white": np.full((50, 40, 3), 255, dtype=np.uint8),
        "black": np.zeros((40, 50, 3), dtype=np.uint8),
        "one white pixel": np.full((1, 1, 3), 255, dtype=np.uint8),
        "one red pixel": np.array([[[255, 0, 0]]], dtype=np.uint8),
        "tall": line,
        "wide": line.transpose(1, 0, 2),
        "tiny": rng.integers(0, 256, (2, 3, 3), dtype=np.uint8),
        "noise": rng.integers(0, 256, (64, 64, 3), dtype=np.uint8),
        "speck": speck,
        "thin": thin,
        "large": large,
    }


@pytest.fixture(scope="session")
def inputs_of() -> Callable[[str, list[np.ndarray]], list[np.ndarray]]:
    """Make what an extractor takes of pictures: vectors for precomputed, else the pictures."""

    def inputs(name: str, pictures: list[np.ndarray]) -> list[np.ndarray]:
        if name != "precomputed":
            return pictures
        flat = [np.resize(picture, (3600,)) / 255 for picture in pictures]
        return [values.reshape(12, 300).mean(axis=1) for values in flat]

    return inputs


@pytest.fixture(scope="session")
def tiny_encoders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Options of encoders with random weights."""
    folder = tmp_path_factory.mktemp("encoders")
    clip = saved(clip_model(folder), folder / "clip.pth")
    transformer = {"network": TIMM, "weights": saved(timm_model(), folder / "timm.pth")}
    return {
        "timm": transformer,
        "tuned_transformer": transformer | {"epochs": 1, "batch_size": 4, "side": 64},
        "open_clip": {"network": CLIP, "tag": None, "weights": clip},
    }


@pytest.fixture(scope="session")
def make(tiny_encoders: dict[str, dict[str, Any]]) -> Callable[[str], Extractor]:
    return lambda name: make_extractor(name, (OPTIONS | tiny_encoders).get(name))


@pytest.fixture(scope="session")
def taught() -> Callable[..., Extractor]:
    """Fit an extractor to pictures, which are sketches and images where it learns from both."""

    def teach(extractor: Extractor, pictures: list[np.ndarray]) -> Extractor:
        if not extractor.cross_modal:
            return extractor.fit(pictures)
        labelled = [(picture, number // 2) for number, picture in enumerate(pictures)]
        return extractor.fit_both(labelled, labelled)

    return teach
