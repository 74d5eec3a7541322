import numpy as np
import pytest
import torch
import torchvision
from PIL import Image

from cppcl.errors import InputError
from cppcl.features.networks.input import Preprocessing, batches, prepare
from cppcl.features.networks.torchvision_networks import build_torchvision

PLAIN = Preprocessing(size=224, mean=(0.0,) * 3, std=(1.0,) * 3, interpolation="bicubic")


@pytest.fixture
def picture():
    return np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)


def test_input_is_padded_on_white_and_not_stretched(picture):
    values = prepare(picture[100:124], PLAIN)
    assert values.shape == (3, 224, 224)
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values[:, :100], 1)
    np.testing.assert_array_equal(values[:, 124:], 1)
    np.testing.assert_allclose(values[:, 100:124], picture[100:124].transpose(2, 0, 1) / 255)


def test_shrinking_is_antialiased():
    checks = np.zeros((896, 896, 3), dtype=np.uint8)
    checks[::2, 1::2] = checks[1::2, ::2] = 255
    values = prepare(checks, PLAIN)[:, 8:-8, 8:-8]
    np.testing.assert_allclose(values, 0.5, atol=0.02)


def test_input_is_normalised_by_channel(picture):
    preprocessing = Preprocessing(
        size=224, mean=(0.1, 0.2, 0.3), std=(0.5, 0.25, 2.0), interpolation="bilinear"
    )
    expected = (picture / 255 - np.array([0.1, 0.2, 0.3])) / np.array([0.5, 0.25, 2.0])
    np.testing.assert_allclose(
        prepare(picture, preprocessing), expected.transpose(2, 0, 1), atol=1e-6
    )


@pytest.mark.parametrize("shape", [(300, 200), (97, 351), (64, 64), (100, 130), (128, 100)])
@pytest.mark.parametrize("name", ["resnet18", "efficientnet_b1", "vit_b_32"])
def test_crop_is_what_torchvision_does(name, shape):
    """Sides, filter, means and deviations as the weights' own transforms have them."""
    picture = np.random.default_rng(1).integers(0, 256, (*shape, 3), dtype=np.uint8)
    transforms = torchvision.models.get_model_weights(name).DEFAULT.transforms()
    _, preprocessing = build_torchvision(name)
    values = prepare(picture, preprocessing, "crop")
    assert values.shape == (3, transforms.crop_size[0], transforms.crop_size[0])
    np.testing.assert_allclose(values, transforms(Image.fromarray(picture)), atol=1e-6)


def test_crop_may_stretch_and_turn_the_channels():
    """A picture of the size that it is brought to: its middle, blue first."""
    picture = np.random.default_rng(2).integers(0, 256, (10, 14, 3), dtype=np.uint8)
    stretched = np.asarray(Image.fromarray(picture).resize((8, 8), Image.Resampling.BILINEAR))
    preprocessing = Preprocessing(
        size=6,
        mean=(0.1, 0.2, 0.3),
        std=(1.0, 0.5, 0.25),
        interpolation="bilinear",
        resize=8,
        stretch=True,
        channels="bgr",
    )
    expected = (stretched[1:7, 1:7] / 255 - [0.1, 0.2, 0.3]) / [1.0, 0.5, 0.25]
    values = prepare(picture, preprocessing, "crop")
    np.testing.assert_allclose(values, expected[..., ::-1].transpose(2, 0, 1), atol=1e-6)


@pytest.mark.parametrize("pinned", [False, pytest.param(True, id="pinned")])
def test_batches_hold_every_picture_once_and_zeros(pinned, drawings, monkeypatch):
    small = Preprocessing(size=16, mean=(0.5,) * 3, std=(0.5,) * 3, interpolation="bilinear")
    zeros, asked = torch.zeros, []

    def unpinned(*shape, pin_memory=False):
        asked.append(pin_memory)
        return zeros(*shape)  # page-locked memory needs a driver

    monkeypatch.setattr("torch.zeros", unpinned)
    pictures = drawings[:5]
    whole = []
    before = None
    for rows, batch in batches(pictures, small, "pad", size=2, pinned=pinned):
        assert batch.shape == (2, 3, 16, 16)
        whole.append((rows, batch.clone()))
        if pinned and before is not None:  # the one before is still being copied
            np.testing.assert_array_equal(before, whole[-2][1])
        before = batch
    assert [rows for rows, _ in whole] == [slice(0, 2), slice(2, 4), slice(4, 5)]
    for rows, batch in whole:
        for k, picture in enumerate(pictures[rows]):
            np.testing.assert_array_equal(batch[k], prepare(picture, small))
    np.testing.assert_array_equal(whole[-1][1][1], 0)
    assert set(asked) == {pinned}
    assert len(asked) == (2 if pinned else 1)


def test_a_wrong_picture_is_named_by_its_place_among_all(drawings):
    wrong = [*drawings[:3], drawings[3][..., 0]]
    with pytest.raises(InputError, match="picture 3 is"):
        list(batches(wrong, PLAIN, "pad", size=2, pinned=False))
