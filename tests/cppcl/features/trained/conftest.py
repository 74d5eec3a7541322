from collections.abc import Iterator

import numpy as np
import pytest

from cppcl.features.trained import architectures, network
from cppcl.features.trained.architectures import Architecture, Convolution

SIDE = 32


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Networks of size 'small' have few and narrow layers."""
    layers = (Convolution(8, 5, stride=2, pool=(2, 2)), Convolution(16, 3, padding=1, pool=(3, 2)))
    monkeypatch.setitem(architectures.SKETCH_A_NET, "small", (SIDE, layers))
    monkeypatch.setitem(architectures.FULL, "small", 32)
    shape = Architecture(SIDE, layers, (64,), linear=True)
    monkeypatch.setitem(architectures.SHAPE_3D, "small", shape)
    network._n_weights.cache_clear()
    yield
    network._n_weights.cache_clear()


@pytest.fixture(scope="session")
def pairs() -> tuple[list[tuple[np.ndarray, int]], list[tuple[np.ndarray, int]]]:
    """Eight drawings and eight pictures, one of each a class, which have nothing in common."""
    rng = np.random.default_rng(0)

    def drawing(colour: tuple[int, int, int]) -> np.ndarray:
        picture = np.full((48, 48, 3), 255, dtype=np.uint8)
        for _ in range(3):
            y, x = rng.integers(4, 30, 2)
            height, width = rng.integers(4, 16, 2)
            picture[y : y + 3, x : x + width] = colour
            picture[y : y + height, x : x + 3] = colour
        return picture

    return (
        [(drawing((0, 0, 0)), number) for number in range(8)],
        [(drawing((200, 30, 60)), number) for number in range(8)],
    )
