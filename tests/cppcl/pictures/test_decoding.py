"""Every kind of picture file, against pixel values computed by hand."""

import io
import re
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageChops, ImageFile

from cppcl.errors import InputError, PictureError
from cppcl.pictures import decoding as images
from cppcl.pictures.decoding import (
    decode_picture,
    pad_to_square,
    picture_suffixes,
    read_sample,
    to_gray,
)
from cppcl.pictures.raster import layer
from tests.made_files import png, png_chunk

RNG = np.random.default_rng(5)
COLOURS = RNG.integers(0, 256, (3, 5, 3), dtype=np.uint8)


def encoded(picture, form, **options):
    file = io.BytesIO()
    picture = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    picture.save(file, format=form, **options)
    return file.getvalue()


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "PPM", "WEBP"])
def test_lossless_rgb_is_returned_as_it_is(form):
    options = {"lossless": True} if form == "WEBP" else {}
    picture = decode_picture(encoded(COLOURS, form, **options))
    np.testing.assert_array_equal(picture, COLOURS)
    assert picture.dtype == np.uint8
    assert picture.flags.c_contiguous
    assert picture.flags.writeable
    assert picture.flags.owndata


# What the stored picture must undergo to be upright, by EXIF 2.3, table "Orientation".
UPRIGHT = {
    1: lambda p: p,
    2: lambda p: p[:, ::-1],
    3: lambda p: p[::-1, ::-1],
    4: lambda p: p[::-1],
    5: lambda p: p.swapaxes(0, 1),
    6: lambda p: p.swapaxes(0, 1)[:, ::-1],
    7: lambda p: p[::-1, ::-1].swapaxes(0, 1),
    8: lambda p: p.swapaxes(0, 1)[::-1],
}


@pytest.mark.parametrize("form", ["PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", UPRIGHT)
def test_exif_orientation(form, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if form == "WEBP" else {}
    data = encoded(COLOURS, form, exif=exif, **options)
    np.testing.assert_array_equal(decode_picture(data), UPRIGHT[orientation](COLOURS))


def test_exif_orientation_of_jpeg():
    exif = Image.Exif()
    exif[0x0112] = 6
    blocks = np.zeros((16, 32, 3), np.uint8)
    blocks[:, 16:] = 255
    picture = decode_picture(encoded(blocks, "JPEG", exif=exif, quality=95))
    assert picture.shape == (32, 16, 3)
    assert picture[:14].max() < 10
    assert picture[18:].min() > 245


def test_unknown_orientation_and_damaged_exif_leave_the_picture_as_it_is():
    exif = Image.Exif()
    exif[0x0112] = 9
    np.testing.assert_array_equal(decode_picture(encoded(COLOURS, "PNG", exif=exif)), COLOURS)
    flat = np.full((8, 8, 3), 77, np.uint8)
    damaged = encoded(flat, "JPEG", exif=b"Exif\x00\x00XX\x00\x00garbage")
    assert np.abs(decode_picture(damaged).astype(int) - 77).max() <= 1


# Cyan, magenta, yellow and black, 0 is no ink; RGB = (255 - ink) (255 - black) / 255.
INKS = [
    ((255, 0, 0, 0), (0, 255, 255)),
    ((0, 0, 255, 0), (255, 255, 0)),
    ((0, 0, 0, 51), (204,) * 3),
]


@pytest.mark.parametrize(("ink", "rgb"), INKS)
@pytest.mark.parametrize("kind", ["tiff", "adobe", "plain"])
def test_cmyk(ink, rgb, kind):
    picture = Image.new("CMYK", (16, 16), ink)
    if kind == "tiff":
        data = encoded(picture, "TIFF")
    elif kind == "adobe":
        data = encoded(picture, "JPEG", quality=98)
        assert b"Adobe" in data
    else:
        # Without Adobe's marker the values are stored as they are; Pillow writes them inverted.
        data = encoded(ImageChops.invert(picture), "JPEG", quality=98)
        data, n_removed = re.subn(rb"\xff\xee\x00\x0eAdobe.{7}", b"", data, flags=re.DOTALL)
        assert n_removed == 1
    error = np.abs(decode_picture(data).astype(int) - rgb)
    assert error.max() <= 3


@pytest.mark.parametrize("form", ["PNG", "TIFF", "BMP"])
def test_one_bit(form):
    bits = np.array([[True, False, True], [False, False, True]])
    picture = decode_picture(encoded(bits, form))
    np.testing.assert_array_equal(picture, np.repeat(bits[..., None] * 255, 3, axis=2))


def test_grey_with_and_without_alpha():
    grey = np.array([[0, 100, 255]], np.uint8)
    np.testing.assert_array_equal(decode_picture(encoded(grey, "PNG"))[0, :, 1], [0, 100, 255])
    alpha = np.array([[0, 51, 255]], np.uint8)
    data = encoded(np.stack([grey, alpha], axis=-1), "PNG")
    # 100 * 0.2 + 255 * 0.8 = 224
    np.testing.assert_array_equal(decode_picture(data)[0, :, 2], [255, 224, 255])


def test_colour_with_alpha_is_composited_on_white():
    pixels = np.array([[[255, 0, 0, 0], [0, 0, 0, 51], [10, 20, 30, 255]]], np.uint8)
    expected = [[[255, 255, 255], [204, 204, 204], [10, 20, 30]]]
    for form in ("PNG", "TIFF"):
        np.testing.assert_array_equal(decode_picture(encoded(pixels, form)), expected)


def test_colour_key_of_png_is_transparent():
    pixels = np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8)
    picture = decode_picture(encoded(pixels, "PNG", transparency=(1, 2, 3)))
    np.testing.assert_array_equal(picture, [[[255, 255, 255], [4, 5, 6]]])


def test_premultiplied_grey_alpha():
    picture = Image.new("LA", (1, 1), (100, 51)).convert("La")
    assert images._on_white(layer(picture, "x")).getpixel((0, 0)) == pytest.approx(
        (224,) * 3, abs=2
    )


SIXTEEN_BITS = np.array([[0, 257, 32768, 65535]], np.uint16)


def white_is_zero():
    """A TIFF file whose tag of photometric interpretation says so."""
    data = bytearray(encoded(SIXTEEN_BITS, "TIFF"))
    data[data.index(struct.pack("<HHI", 262, 3, 1)) + 8] = 0
    return bytes(data)


def partly_clear():
    picture = Image.new("P", (2, 1))
    picture.putpalette([0, 0, 0, 0, 0, 0])
    picture.putdata([0, 1])
    return encoded(picture, "PNG", transparency=bytes([255, 51]))


CLEAR = png_chunk(b"tRNS", struct.pack(">H", 1000))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (encoded(SIXTEEN_BITS.astype(">u2"), "TIFF"), [0, 1, 128, 255]),
        (white_is_zero(), [255, 254, 127, 0]),
        (png(2, 1, 16, 0, [struct.pack(">2H", 1000, 2000)], before_data=CLEAR), [255, 8]),
        (partly_clear(), [0, 204]),
    ],
    ids=["big endian", "zero is white", "transparent value", "palette"],
)
def test_rare_kinds_of_grey(data, expected):
    np.testing.assert_array_equal(decode_picture(data)[0, :, 0], expected)


def test_sixteen_bit_colour_keeps_the_upper_bits():
    rows = [struct.pack(">6H", 0, 0x8012, 0xFFFF, 0x0100, 0x7F00, 0x00FF)]
    picture = decode_picture(png(2, 1, 16, 2, rows))
    np.testing.assert_array_equal(picture, [[[0, 0x80, 0xFF], [1, 0x7F, 0]]])


def test_integer_pictures_within_sixteen_bits_are_scaled_and_others_refused():
    data = encoded(SIXTEEN_BITS.astype(np.int32), "TIFF")
    np.testing.assert_array_equal(decode_picture(data)[0, :, 0], [0, 1, 128, 255])
    for value in (65536, -1):
        beyond = np.array([[0, value]], np.int32)
        with pytest.raises(PictureError, match=rf"deep\.tif: integer pixels span .*{value}"):
            decode_picture(encoded(beyond, "TIFF"), name="deep.tif")


def test_float_pictures_lie_between_zero_and_one():
    data = encoded(np.array([[0, 0.2, 1]], np.float32), "TIFF")
    np.testing.assert_array_equal(decode_picture(data)[0, :, 0], [0, 51, 255])
    for value in (1.5, -0.5, np.nan):
        beyond = encoded(np.array([[0, value]], np.float32), "TIFF")
        with pytest.raises(PictureError, match=r"f\.tif: floating-point pixels must lie in"):
            decode_picture(beyond, name="f.tif")


def test_first_frame_of_an_animation():
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    for form in ("GIF", "PNG", "WEBP"):
        options = {"lossless": True} if form == "WEBP" else {}
        data = encoded(frames[0], form, save_all=True, append_images=frames[1:], **options)
        assert (decode_picture(data) == [255, 0, 0]).all()


def test_large_pictures_are_reduced_with_averaging_and_small_ones_kept():
    stripes = np.zeros((400, 1000, 3), np.uint8)
    stripes[:, ::2] = 255
    picture = decode_picture(encoded(stripes, "PNG"), longest_side=100)
    assert picture.shape == (40, 100, 3)
    assert np.abs(picture[:, 2:-2].astype(int) - 127).max() <= 2
    assert decode_picture(encoded(stripes, "PNG"), longest_side=None).shape == stripes.shape
    assert decode_picture(encoded(COLOURS, "PNG"), longest_side=256).shape == COLOURS.shape
    thin = decode_picture(encoded(np.zeros((1, 1000, 3), np.uint8), "PNG"), longest_side=10)
    assert thin.shape == (1, 10, 3)
    with pytest.raises(InputError, match="longest_side is 0"):
        decode_picture(b"x", longest_side=0)


def noisy(form):
    return encoded(RNG.integers(0, 256, (64, 64, 3), dtype=np.uint8), form)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_truncated_files_are_named(tmp_path, form, share):
    data = noisy(form)
    path = tmp_path / f"cut.{form.lower()}"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(PictureError, match=re.escape(str(path))):
        decode_picture(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "the file is empty"), (b"hello, no picture", "not a picture in any known format")],
)
def test_files_that_are_no_pictures_are_named(tmp_path, content, reason):
    path = tmp_path / "no picture.png"
    path.write_bytes(content)
    with pytest.raises(PictureError, match=rf"no picture\.png: {reason}"):
        decode_picture(path)


def test_missing_files_and_folders_are_named(tmp_path):
    (tmp_path / "x.png").mkdir()
    with pytest.raises(PictureError, match=r"x\.png: this is a folder"):
        decode_picture(tmp_path / "x.png")
    with pytest.raises(PictureError, match=r"gone\.png: there is no such file"):
        decode_picture(tmp_path / "gone.png")


def test_file_that_may_not_be_read(monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(images, "read_bytes", refuse)
    with pytest.raises(PictureError, match=r"mine\.png: not allowed to read it"):
        decode_picture(Path("mine.png"))


def test_failing_storage_is_no_bad_picture(monkeypatch):
    def fail(self):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(images, "read_bytes", fail)
    with pytest.raises(OSError, match="Input/output error") as caught:
        decode_picture(Path("x.png"))
    assert not isinstance(caught.value, PictureError)


def test_lack_of_memory_is_no_bad_picture(monkeypatch):
    def fail(*args, **options):
        raise MemoryError

    monkeypatch.setattr(ImageFile.ImageFile, "load", fail)
    with pytest.raises(MemoryError):
        decode_picture(encoded(COLOURS, "PNG"))
    monkeypatch.setattr(Image, "open", fail)
    with pytest.raises(MemoryError):
        decode_picture(b"anything")


@pytest.mark.parametrize("filters", ["error", "ignore"])
@pytest.mark.parametrize(("width", "height"), [(10_000, 10_000), (30_000, 30_000)])
def test_decompression_bomb_is_refused(filters, width, height):
    bomb = png(width, height, 1, 0, [b"\x00"])
    with warnings.catch_warnings():
        warnings.simplefilter(filters)
        with pytest.raises(PictureError, match=r"bomb\.png: .*limit of 89478485 pixels"):
            decode_picture(bomb, name="bomb.png")


def test_decoding_leaves_the_settings_of_pillow_alone():
    before = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES
    decode_picture(encoded(COLOURS, "PNG"))
    assert before == (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES)


def test_postscript_is_never_run():
    with pytest.raises(PictureError, match="not a picture in any known format"):
        decode_picture(encoded(COLOURS, "EPS"))
    assert ".eps" not in picture_suffixes()


def test_suffixes_are_those_that_can_be_opened():
    assert {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".svg", ".ppm"} <= (
        picture_suffixes()
    )
    assert not {".pdf", ".mpg", ".txt", ".npy"} & picture_suffixes()


def test_read_sample_with_spaces_and_other_alphabets(tmp_path):
    folder = tmp_path / "мои рисунки"
    folder.mkdir()
    (folder / "café #1.png").write_bytes(encoded(COLOURS, "PNG"))
    picture = read_sample(tmp_path, "мои рисунки/café #1.png")
    np.testing.assert_array_equal(picture, COLOURS)
    with pytest.raises(PictureError, match=r"^мои рисунки/é\.png"):
        read_sample(tmp_path, "мои рисунки/é.png")


def test_read_sample_of_a_matrix(tmp_path):
    matrix = RNG.standard_normal((20, 4))
    np.save(tmp_path / "my features.npy", matrix)
    row = read_sample(tmp_path, "my features.npy#17")
    assert row.dtype == np.float32
    np.testing.assert_array_equal(row, matrix[17].astype(np.float32))
    with pytest.raises(InputError, match=r"shape \(20, 4\): there is no row 20"):
        read_sample(tmp_path, "my features.npy#20")
    with pytest.raises(InputError, match=r"other\.npy: no readable"):
        read_sample(tmp_path, "other.npy#0")
    (tmp_path / "bad.npy").write_bytes(b"not a matrix")
    with pytest.raises(InputError, match=r"bad\.npy: no readable"):
        read_sample(tmp_path, "bad.npy#0")


def test_pad_to_square_centres():
    padded = pad_to_square(COLOURS, value=9)
    assert padded.shape == (5, 5, 3)
    np.testing.assert_array_equal(padded[1:4], COLOURS)
    assert (padded[[0, 4]] == 9).all()
    tall = pad_to_square(COLOURS.swapaxes(0, 1)[:4])
    np.testing.assert_array_equal(tall[:, :3], COLOURS.swapaxes(0, 1)[:4])
    assert (tall[:, 3] == 255).all()
    assert pad_to_square(tall) is tall


def test_to_gray_is_the_luma_of_pillow():
    gray = to_gray(COLOURS)
    assert gray.dtype == np.float32
    expected = np.asarray(Image.fromarray(COLOURS).convert("L"), float) / 255
    np.testing.assert_allclose(gray, expected, atol=0.6 / 255)
    white = to_gray(np.full((2, 2, 3), 255, np.uint8))
    assert white.max() <= 1
    np.testing.assert_allclose(white, 1, atol=1e-6)
