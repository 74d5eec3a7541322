"""An extractor that learns only with some options, in the chain."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision

from cppcl.errors import InputError
from flows.configuration.load import load_experiment
from flows.selection import Selection
from tasks.stages.names import STAGES
from tasks.workspace import Workspace

pytestmark = pytest.mark.usefixtures("inline_blocks_of_module")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Options of a small network with random weights."""
    path = tmp_path_factory.mktemp("network") / "squeezenet.pth"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        torch.save(torchvision.models.squeezenet1_1(weights=None).state_dict(), path)
    return {"network": "squeezenet1_1", "node": "features.0", "weights": str(path)}


@pytest.fixture
def write(tmp_path, draw_pictures, write_experiment) -> Callable[..., Path]:
    root = draw_pictures(tmp_path / "shapes")

    def write(sketch: dict[str, Any], image: dict[str, Any]) -> Path:
        protocol = {
            "split": {"rule": "instance", "n_train": 7, "seeds": [0, 1]},
            "methods": {"centred_cosine": None},
        }
        features = {"sketch": {"name": "cnn", **sketch}, "image": {"name": "cnn", **image}}
        return write_experiment(
            root, features=features, protocols={"instance": protocol}, curriculum=None
        )

    return write


def test_the_side_with_components_learns_and_the_other_does_not(
    write, network, run_plain, tmp_path
):
    place = Workspace(tmp_path / "workspace")
    file = write(network, {**network, "n_components": 4, "learn_from": "image"})
    for only in STAGES[: STAGES.index("extract") + 1]:
        chain = run_plain(file, place, selection=Selection(only=only))
    artifacts = {
        piece: [place.store.open(result.reference) for result in results]
        for piece, results in chain.pieces.items()
    }
    (whole,) = artifacts["extract sketch cnn"]  # the same in both splits
    assert whole.shape("features")[1] == 64
    assert whole.inputs.keys() == {"table"}
    learned, reduced = artifacts["learn image cnn instance"], artifacts["extract image cnn"]
    assert len({artifact.reference for artifact in learned}) == len(learned) == 2
    for source, features in zip(learned, reduced, strict=True):
        assert features.inputs["learned"] == source.reference
        assert source.shape("learned.components") == (4, 64)
        values = features.array("features")
        assert values.shape[1] == 4
        assert np.ptp(values, axis=0).min() > 0
    assert "learn sketch cnn instance" not in artifacts


def test_options_that_learn_nothing_take_nothing_learned(write, network):
    reduced = {**network, "n_components": 4}
    features = load_experiment(str(write(reduced, reduced))).features
    assert features.sketch.learns
    assert features.image.learns
    assert not load_experiment(str(write(network, network))).features.sketch.learns
    with pytest.raises(InputError, match=r"sketch\.learned=abc: 'cnn' .* learns nothing"):
        load_experiment(str(write({**network, "learned": "abc"}, network)))
    with pytest.raises(InputError, match=r"image\.learn_from=sketch: .*needs arrays"):
        load_experiment(str(write(network, {**network, "n_components": 4})))


def test_a_combination_learns_where_a_part_does_so_by_its_options(write, network):
    plain = {"name": "pixels+cnn", "cnn": network}
    reduced = {"name": "pixels+cnn", "cnn": {**network, "n_components": 4}}
    assert not load_experiment(str(write(plain, plain))).features.image.learns
    assert load_experiment(str(write(reduced, reduced))).features.image.learns
