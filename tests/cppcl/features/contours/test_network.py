import hashlib
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from cppcl.errors import DataUnavailableError, InputError
from cppcl.features import make_extractor
from cppcl.features.contours.detection import contour_mask, resize_longest_side
from cppcl.features.contours.network import contour_map, network_identity
from cppcl.features.networks.onnx_message import OnnxGraph


class Darkness(torch.nn.Module):
    """1 minus the mean of the channels, as the last of two outputs."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x, (1 - x.mean(1, keepdim=True)) * self.factor]


class Pooled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1, keepdim=True)[:, :, ::2]


class Fails(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(1, 7)


def _save(module: torch.nn.Module, path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        torch.jit.script(module).save(str(path))
    return str(path)


@pytest.fixture
def darkness(tmp_path):
    return _save(Darkness(), tmp_path / "darkness.pt")


@pytest.fixture
def picture():
    return np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8)


def test_map_of_a_torchscript_file(darkness, picture):
    values = contour_map(picture, Path(darkness))
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, 1 - picture.mean(axis=2) / 255, atol=1e-6)
    row = contour_map(picture[:1], Path(darkness))
    np.testing.assert_allclose(row, 1 - picture[:1].mean(axis=2) / 255, atol=1e-6)


@pytest.mark.parametrize("threshold", [0.45, 0.5])
def test_threshold(darkness, picture, threshold):
    mask = contour_mask(picture, contours=darkness, threshold=threshold, longest_side=45)
    expected = 1 - resize_longest_side(picture, 45).mean(axis=2) / 255
    clear = np.abs(expected - threshold) > 1e-5
    np.testing.assert_array_equal(mask[clear], expected[clear] >= threshold)
    assert 0 < mask.mean() < 1


def test_files_are_named_by_content(darkness, tmp_path):
    content = Path(darkness).read_bytes()
    expected = f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert network_identity(Path(darkness)) == expected
    moved = tmp_path / "elsewhere.pt"
    moved.write_bytes(content)
    for name in ("lks", "helo", "hog", "structure_tensor", "perceptual_edge_lite"):
        extractor = make_extractor(name, {"contours": str(moved)})
        assert extractor.parameters()["contours"] == expected
        assert extractor.parameters()["threshold"] == 0.5


def test_a_changed_file_is_loaded_anew(darkness, picture):
    before = contour_mask(picture, contours=darkness)
    _save(Darkness(0.0), darkness)
    os.utime(darkness, ns=(1, 1))
    assert before.any()
    assert not contour_mask(picture, contours=darkness).any()


@pytest.mark.parametrize("name", ["shelo", "perceptual_edge_lite"])
def test_extractors_describe_what_the_network_finds(name, darkness, tmp_path):
    ramp = np.repeat(np.linspace(0, 255, 64, dtype=np.uint8)[None, :, None], 64, axis=0)
    ramp = np.repeat(ramp, 3, axis=2)
    ramp[30:34] = 255
    rows = [
        make_extractor(name, {"contours": darkness, "threshold": t}).transform([ramp])[0]
        for t in (0.2, 0.9)
    ]
    assert np.linalg.norm(rows[0] - rows[1]) > 0.5


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (Pooled(), r"shape \(30, 90\) .*picture of \(60, 90\)"),
        (Darkness(3.0), r"spanning 0\..* to [12]\..*must return one value in \[0, 1\]"),
        (Darkness(-0.5), r"spanning -0\.[0-9]* to -?0"),
        (Darkness(float("nan")), r"spanning nan"),
        (Fails(), r"fails on a tensor of shape \(1, 3, 60, 90\)"),
    ],
)
def test_other_outputs_are_named(module, words, tmp_path, picture):
    path = _save(module, tmp_path / "network.pt")
    with pytest.raises(InputError, match=words):
        contour_map(picture, tmp_path / "network.pt")
    with pytest.raises(InputError, match=r"network\.pt"):
        contour_mask(picture, contours=path, longest_side=90)


def test_missing_and_damaged_files_are_named(tmp_path, picture):
    with pytest.raises(DataUnavailableError, match=r"none\.pt.*canny"):
        contour_mask(picture, contours=str(tmp_path / "none.pt"))
    with pytest.raises(DataUnavailableError, match=r"none\.onnx.*no such file"):
        make_extractor("shelo", {"contours": str(tmp_path / "none.onnx")}).parameters()
    (tmp_path / "damaged.pt").write_bytes(b"PK no network")
    with pytest.raises(InputError, match=r"damaged\.pt.*cannot be read"):
        contour_mask(picture, contours=str(tmp_path / "damaged.pt"))


def test_onnx_file(tmp_path, picture):
    graph = OnnxGraph((3, *picture.shape[:2]))
    mean = graph.add("ReduceMean", graph.input, axes=(1,), keepdims=1)
    darkness = graph.add("Sub", graph.constant(np.ones(())), mean)
    (tmp_path / "network.onnx").write_bytes(graph.model(darkness))
    values = contour_map(picture, tmp_path / "network.onnx")
    np.testing.assert_allclose(values, 1 - picture.mean(axis=2) / 255, atol=1e-6)
    (tmp_path / "empty.onnx").write_bytes(b"")
    with pytest.raises(InputError, match=r"empty\.onnx.*cannot be read as a network"):
        contour_map(picture, tmp_path / "empty.onnx")
