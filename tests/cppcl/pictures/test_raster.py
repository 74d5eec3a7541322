"""Colour keys, alpha and colour profiles that Pillow leaves to its caller, by hand."""

import io
import struct

import numpy as np
import pytest
from PIL import Image

from cppcl.datasets import files
from cppcl.errors import PictureError
from cppcl.pictures.decoding import decode_picture
from cppcl.pictures.profiles import UNSEEN, _to_xyz
from tests.made_files import ADOBE, bmp, colour_profile, png, png_chunk, tiff

WHITE = [255, 255, 255]


@pytest.mark.parametrize(
    ("bits", "row", "key", "expected"),
    [
        (1, 0b01000000, 1, [0, 255]),
        (2, 0b01100000, 1, [255, 170]),
        (2, 0b11010000, 3, [255, 85]),
        (4, 0x12, 1, [255, 34]),
    ],
)
def test_keys_of_few_bits_are_values_of_the_file(bits, row, key, expected):
    data = png(
        2, 1, bits, 0, [bytes([row])], before_data=png_chunk(b"tRNS", struct.pack(">H", key))
    )
    np.testing.assert_array_equal(decode_picture(data)[0, :, 0], expected)


def test_keys_of_sixteen_bits_are_compared_as_a_whole():
    key = png_chunk(b"tRNS", struct.pack(">3H", 0x12, 0x12, 0x12))
    rows = [struct.pack(">9H", *[0x12] * 3, *[0x1212] * 3, *[0x1200] * 3)]
    picture = decode_picture(png(3, 1, 16, 2, rows, before_data=key))
    np.testing.assert_array_equal(picture, [[WHITE, [18] * 3, [18] * 3]])
    dark = png_chunk(b"tRNS", struct.pack(">3H", 0, 0, 0))
    rows = [struct.pack(">6H", 0, 0, 0, 0, 0, 1)]
    picture = decode_picture(png(2, 1, 16, 2, rows, before_data=dark))
    np.testing.assert_array_equal(picture, [[WHITE, [0, 0, 0]]])


MASKS = (0xFF0000, 0xFF00, 0xFF, 0xFF000000)
PIXELS = [[0x00FF0000, 0x33000000], [0xFF0A141E, 0x00000000]]
ON_WHITE = [[WHITE, [204] * 3], [[10, 20, 30], WHITE]]


@pytest.mark.parametrize("top_down", [False, True])
@pytest.mark.parametrize(("header", "compression"), [(40, 6), (56, 3), (124, 3), (124, 0)])
def test_alpha_that_a_bmp_declares(header, compression, top_down):
    data = bmp(PIXELS, header=header, compression=compression, masks=MASKS, top_down=top_down)
    np.testing.assert_array_equal(decode_picture(data), ON_WHITE)


def test_fourth_bytes_of_bmp_that_are_not_declared():
    opaque = [[pixel & 0xFFFFFF for pixel in row] for row in PIXELS]
    expected = [[[255, 0, 0], [0, 0, 0]], [[10, 20, 30], [0, 0, 0]]]
    np.testing.assert_array_equal(decode_picture(bmp(opaque)), expected)
    masked = bmp(PIXELS, compression=3, masks=MASKS[:3])
    np.testing.assert_array_equal(decode_picture(masked), expected)
    with pytest.raises(PictureError, match=r"b\.bmp: the fourth byte .* save .* as PNG"):
        decode_picture(bmp(PIXELS), name="b.bmp")


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("extra", [0, 1, 2], ids=["unknown", "associated", "unassociated"])
def test_alpha_of_tiff(extra, dtype):
    pixels = np.array([[[51, 0, 0, 51], [0, 0, 0, 51], [10, 20, 30, 255]]])
    alpha, colour = pixels[..., 3:] / 255, pixels[..., :3]
    expected = [colour, colour + 255 * (1 - alpha), colour * alpha + 255 * (1 - alpha)][extra]
    scale = np.iinfo(dtype).max // 255
    picture = decode_picture(tiff((pixels * scale).astype(dtype), extra=extra))
    np.testing.assert_allclose(picture, expected, atol=1)


def test_planes_of_sixteen_bits_are_refused():
    pixels = np.array([[[51, 0, 0, 51], [10, 20, 30, 255]]], np.uint16)
    with pytest.raises(PictureError, match=r"t\.tif: TIFF with 16 bits in separate planes"):
        decode_picture(tiff(pixels * 257, extra=2, separate=True), name="t.tif")


def encoded_srgb(light):
    light = np.clip(light, 0, 1)
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


SRGB_TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
COLOURS = np.array([[[200, 100, 50], [10, 200, 30], [120, 120, 120], [0, 0, 255]]], np.uint8)


def with_profile(profile, pixels=COLOURS, **options):
    from tests.cppcl.pictures.test_decoding import encoded

    return encoded(pixels, "PNG", icc_profile=profile, **options)


def test_colour_profiles_are_applied():
    picture = decode_picture(with_profile(colour_profile(ADOBE, 563 / 256)))
    linear = (COLOURS / 255) ** (563 / 256) @ ADOBE.T @ np.linalg.inv(SRGB_TO_XYZ).T
    assert np.abs(picture - 255 * encoded_srgb(linear)).max() < 2
    assert np.abs(picture.astype(int) - COLOURS).max() > 20


def test_profiles_of_grey_and_alpha():
    grey = np.array([[0, 60, 200, 255]], np.uint8)
    expected = 255 * encoded_srgb((grey / 255) ** 1.0)
    picture = decode_picture(with_profile(colour_profile(None, 1.0), grey))
    np.testing.assert_allclose(picture[..., 0], expected, atol=1)
    alpha = np.array([[0, 51, 255, 255]])
    both = np.stack([grey, alpha.astype(np.uint8)], axis=-1)
    picture = decode_picture(with_profile(colour_profile(None, 1.0), both))
    shares = alpha / 255
    np.testing.assert_allclose(picture[..., 0], expected * shares + 255 * (1 - shares), atol=1.5)


def test_profiles_that_change_nothing_or_say_nothing():
    from PIL import ImageCms

    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for profile in (srgb, b"damaged", colour_profile(None, 1.0)):
        np.testing.assert_array_equal(decode_picture(with_profile(profile)), COLOURS)
    assert UNSEEN < 3


RAMP = bytes(range(0, 256, 17))


@pytest.mark.parametrize(
    ("chunks", "power"),
    [
        ([(b"gAMA", 100_000)], 1.0),
        ([(b"gAMA", 55_556)], 1.8),
        ([(b"gAMA", 45_455)], None),
        ([(b"gAMA", 100_000), (b"sRGB", None)], None),
    ],
)
def test_gamma_of_png(chunks, power):
    before = b"".join(
        png_chunk(kind, b"\0" if value is None else struct.pack(">I", value))
        for kind, value in chunks
    )
    picture = decode_picture(png(16, 1, 8, 0, [RAMP], before_data=before))
    ramp = np.frombuffer(RAMP, np.uint8)
    expected = ramp if power is None else 255 * encoded_srgb((ramp / 255) ** power)
    np.testing.assert_allclose(picture[0, :, 0], expected, atol=0.6)


def test_primaries_of_png():
    wide = (0.3127, 0.329, 0.68, 0.32, 0.265, 0.69, 0.15, 0.06)  # Display P3
    usual = (0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)
    np.testing.assert_allclose(_to_xyz(usual), SRGB_TO_XYZ, atol=3e-4)
    chunk = png_chunk(b"cHRM", struct.pack(">8I", *(round(v * 100_000) for v in wide)))
    gamma = png_chunk(b"gAMA", struct.pack(">I", 100_000))
    data = png(4, 1, 8, 2, [COLOURS.tobytes()], before_data=gamma + chunk)
    linear = (COLOURS / 255) @ _to_xyz(wide).T @ np.linalg.inv(SRGB_TO_XYZ).T
    np.testing.assert_allclose(decode_picture(data), 255 * encoded_srgb(linear), atol=1.5)


def test_the_first_frame_of_an_animation_is_not_the_picture_before_it():
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("lime", "red", "blue")]
    file = io.BytesIO()
    frames[0].save(file, "PNG", save_all=True, append_images=frames[1:], default_image=True)
    assert (decode_picture(file.getvalue()) == [255, 0, 0]).all()


def heic():
    pillow_heif = pytest.importorskip("pillow_heif")
    file = io.BytesIO()
    picture = Image.new("RGB", (64, 64), (200, 30, 40))
    pillow_heif.from_pillow(picture).save(file, quality=90)
    return file.getvalue()


def test_heic_is_read_with_an_extra_and_named_without(monkeypatch):
    data = heic()
    assert np.abs(decode_picture(data).astype(int) - (200, 30, 40)).max() < 8
    monkeypatch.setitem(Image.OPEN, "HEIF", Image.OPEN["PNG"])
    with pytest.raises(
        PictureError, match=r"h\.heic: HEIC pictures need pip install 'cppcl\[heic"
    ):
        decode_picture(data, name="h.heic")


def test_heic_files_are_named_where_nothing_reads_them(tmp_path, monkeypatch):
    (tmp_path / "a.heic").write_bytes(b"x")
    (tmp_path / "b.png").write_bytes(b"x")
    monkeypatch.setattr(files, "picture_suffixes", lambda: frozenset({".png"}))
    assert (
        "Skipped 1 picture in .: HEIC pictures need pip install 'cppcl[heic]', or to be "
        in (files.scan_pictures(tmp_path, ".").findings()[0])
    )
