"""Made drawings and pictures, as this package reads them and as headless Chromium draws them.

``python tests/benchmarks/drawings/bench_browser.py`` prints how many agree within a tolerance,
how many are refused by name, and each that differs without a word.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import struct
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

ROOT = Path(__file__).parents[3]
for folder in ("", "tests", "tests/benchmarks/drawings", "tests/deployments"):
    sys.path.insert(0, str(ROOT / folder))

from browsing import launched  # noqa: E402
from made_drawings import drawings  # noqa: E402
from made_files import ADOBE, bmp, colour_profile, png, png_chunk  # noqa: E402

from cppcl.errors import PictureError  # noqa: E402
from cppcl.pictures.decoding import decode_picture  # noqa: E402

SIDE = 128
TOLERANCE = 3.0
"""Mean difference, of 255, up to which pictures agree. That of a pixel is the least to any within
one pixel of it in the other picture: edges are smoothed otherwise."""
FAR_SHARE = 0.02
"""Share of pixels that may differ by more than 64."""
INK = 0.1
"""Share by which the darkness of the whole may differ, so that thin lines count."""

CUT = "the renderer cuts an element to the region of its filter before it is blurred"
TILES = "tiles of patterns lie up to two pixels elsewhere"
KNOWN = {
    "orientation ": (" WEBP", "Chromium passes over the orientation in a WebP"),
    "filter region filterUnits": ("", CUT),
    "pattern ": ("", TILES),
}
"""What may differ for a reason that docs/pictures.md tells: how names begin and end."""


def known(name: str) -> str | None:
    """Why pictures of a name may differ; None where they may not."""
    for start, (end, reason) in KNOWN.items():
        if name.startswith(start) and name.endswith(end):
            return reason
    return None


DRAW = """async ([source, width, height]) => {
  const image = new Image();
  image.src = source;
  try { await image.decode() } catch (error) { return null }
  const canvas = document.createElement("canvas");
  canvas.width = width || image.naturalWidth;
  canvas.height = height || image.naturalHeight;
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  const sides = [image.naturalWidth, image.naturalHeight];
  return [canvas.toDataURL("image/png").split(",")[1], sides];
}"""


def drawn_by(
    page: Any, data: bytes, kind: str, size: tuple[int, int]
) -> tuple[NDArray[np.uint8], float] | None:
    """What the browser draws on white, and width over height; None where it draws nothing."""
    source = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    found = page.evaluate(DRAW, [source, *size])
    if found is None:
        return None
    text, (width, height) = found
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGB"))
    return pixels, width / height


def pictures() -> dict[str, tuple[str, bytes]]:
    """Raster pictures by name, with their kind: those of the PNG suite, and other formats."""
    made: dict[str, tuple[str, bytes]] = {}
    rng = np.random.default_rng(0)
    side = 32
    values = np.add.outer(np.arange(side), np.arange(side)) * 1023 // (2 * side - 2)
    for bits in (1, 2, 4, 8, 16):
        grey = (values * (2**bits - 1) // 1023).astype(np.uint32)
        for key in (None, 0, 1, 2 ** (bits - 1)):
            before = b"" if key is None else png_chunk(b"tRNS", struct.pack(">H", key))
            made[f"png grey {bits} key {key}"] = (
                "image/png",
                png(side, side, bits, 0, packed(grey, bits), before_data=before),
            )
        if bits <= 8:
            n = min(2**bits, 256)
            palette = png_chunk(b"PLTE", rng.integers(0, 256, 3 * n, dtype=np.uint8).tobytes())
            for alpha in (b"", bytes([0]), bytes([0, 128])):
                before = palette + (png_chunk(b"tRNS", alpha) if alpha else b"")
                made[f"png palette {bits} {alpha.hex()}"] = (
                    "image/png",
                    png(side, side, bits, 3, packed(grey % n, bits), before_data=before),
                )
    for bits in (8, 16):
        most = 2**bits - 1
        red = values * most // 1023
        colour = np.stack([red, red[::-1], red.T[:, ::-1]], axis=-1).astype(np.uint32)
        alpha = (red[:, ::-1] // 2).astype(np.uint32)
        for key in (None, tuple(int(v) for v in colour[3, 4])):
            before = b"" if key is None else png_chunk(b"tRNS", struct.pack(">3H", *key))
            made[f"png rgb {bits} key {key}"] = (
                "image/png",
                png(side, side, bits, 2, packed(colour, bits), before_data=before),
            )
        rgba = np.concatenate([colour, alpha[..., None]], axis=-1)
        made[f"png rgba {bits}"] = "image/png", png(side, side, bits, 6, packed(rgba, bits))
        both = np.stack([red, alpha], axis=-1).astype(np.uint32)
        made[f"png grey alpha {bits}"] = "image/png", png(side, side, bits, 4, packed(both, bits))
    eight = np.stack([values // 4, values[::-1] // 4, values.T[:, ::-1] // 4], axis=-1)
    rgb = eight.astype(np.uint8)
    for gamma in (35_000, 45_455, 55_556, 70_000, 100_000):
        chunk = png_chunk(b"gAMA", struct.pack(">I", gamma))
        made[f"png gamma {gamma}"] = (
            "image/png",
            png(side, side, 8, 2, packed(rgb, 8), before_data=chunk),
        )
    wide = (31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000)
    chromaticity = png_chunk(b"cHRM", struct.pack(">8I", *wide))
    for name, before in {
        "gamma and primaries": png_chunk(b"gAMA", struct.pack(">I", 100_000)) + chromaticity,
        "primaries alone": chromaticity,
        "srgb": png_chunk(b"sRGB", b"\0") + png_chunk(b"gAMA", struct.pack(">I", 100_000)),
        "background": png_chunk(b"bKGD", struct.pack(">3H", 255, 0, 0)),
        "ratio of pixels": png_chunk(b"pHYs", struct.pack(">2IB", 100, 200, 1)),
    }.items():
        data = png(side, side, 8, 2, packed(rgb, 8), before_data=before)
        made[f"png {name}"] = "image/png", data
    picture = Image.fromarray(rgb)
    profiles = {"adobe": colour_profile(ADOBE, 563 / 256), "damaged": b"damaged"}
    profiles["grey"] = colour_profile(None, 1.0)
    for name, profile in profiles.items():
        for form in ("PNG", "JPEG", "WEBP"):
            made[f"profile {name} {form}"] = encoded(picture, form, icc_profile=profile)
        made[f"profile {name} of grey"] = encoded(picture.convert("L"), "PNG", icc_profile=profile)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        for form in ("JPEG", "PNG", "WEBP"):
            turned = picture.crop((0, 0, 32, 20))
            made[f"orientation {orientation} {form}"] = encoded(turned, form, exif=exif)
    for mode in ("1", "L", "P", "RGB", "CMYK", "LA", "RGBA"):
        source = picture.convert("RGB")
        if mode in ("LA", "RGBA"):
            source.putalpha(Image.fromarray((values // 4).astype(np.uint8)))
        for form in ("PNG", "JPEG", "GIF", "WEBP", "BMP"):
            try:
                made[f"{form} {mode}"] = encoded(source.convert(mode), form)
            except (OSError, ValueError):
                continue
    made["jpeg progressive"] = encoded(picture, "JPEG", progressive=True)
    made["jpeg subsampled"] = encoded(picture, "JPEG", subsampling=2)
    frames = [Image.new("RGB", (32, 32), c) for c in ("lime", "red", "blue")]
    for form in ("GIF", "PNG", "WEBP"):
        more = {"save_all": True, "append_images": frames[1:], "duration": 10_000}
        made[f"animation {form}"] = encoded(frames[0], form, **more)
    made["animation after a picture"] = encoded(frames[0], "PNG", default_image=True, **more)
    masks = (0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    pixels = [[0x00FF0000, 0x33000000, 0xFF0A141E], [0x80FFFFFF, 0x800000FF, 0xFF00FF00]]
    for header, compression, given in (
        (40, 0, ()), (40, 3, masks[:3]), (40, 6, masks), (56, 3, masks), (108, 3, masks),
        (124, 3, masks), (124, 0, masks), (124, 0, ()),
    ):  # fmt: skip
        data = bmp(pixels, header=header, compression=compression, masks=given)
        made[f"bmp {header} {compression} {len(given)}"] = "image/bmp", data
    interlaced = encoded(picture, "PNG")
    made["png filtered"] = interlaced
    return made


def packed(values: NDArray[Any], bits: int) -> list[bytes]:
    """Rows of a PNG."""
    if bits == 16:
        return [row.astype(">u2").tobytes() for row in values]
    if bits == 8:
        return [row.astype(np.uint8).tobytes() for row in values]
    per = 8 // bits
    shifts = np.arange(per)[::-1] * bits
    return [
        (row.reshape(-1, per) << shifts).sum(axis=1).astype(np.uint8).tobytes() for row in values
    ]


def encoded(picture: Image.Image, form: str, **options: Any) -> tuple[str, bytes]:
    """Kind and bytes of a picture in a format."""
    if form == "WEBP":
        options["lossless"] = True
    file = io.BytesIO()
    picture.save(file, form, **options)
    return f"image/{form.lower()}", file.getvalue()


def least_difference(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.int16]:
    """For each pixel of the first, the least difference to those of the second around it."""
    height, width = first.shape[:2]
    padded = np.pad(second.astype(np.int16), ((1, 1), (1, 1), (0, 0)), mode="edge")
    shifted = [
        np.abs(first - padded[y : y + height, x : x + width]).max(axis=-1)
        for y in range(3)
        for x in range(3)
    ]
    return np.min(shifted, axis=0)


def compared(page: Any, name: str, kind: str, data: bytes, folder: Path | None) -> str:
    """Outcome of one: same, refused, passed over by both, or how it differs."""
    try:
        ours = decode_picture(data, longest_side=SIDE if kind.endswith("xml") else None, name=name)
    except PictureError as error:
        return f"refused: {error}"
    height, width = ours.shape[:2]
    is_svg = kind.endswith("xml")
    found = drawn_by(page, data, kind, (width, height) if is_svg else (0, 0))
    if found is None:
        return "the browser refuses it"
    theirs, ratio = found
    reason = known(name)
    if abs(width - height * ratio) > 1 or theirs.shape != ours.shape:
        return f"known: {reason}" if reason else f"differs: {width} x {height}, {ratio:.2f}"
    difference = np.maximum(least_difference(ours, theirs), least_difference(theirs, ours))
    far = float((difference > 64).mean())
    inks = sorted(float((255 - picture.astype(float)).mean()) for picture in (ours, theirs))
    lost = inks[1] - inks[0] > INK * inks[1] + 0.1
    if difference.mean() <= TOLERANCE and far <= FAR_SHARE and not lost:
        return "same"
    if reason:
        return f"known: {reason}"
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        side_by_side = Image.fromarray(np.concatenate([ours, theirs], axis=1))
        side_by_side.save(folder / f"{''.join(c if c.isalnum() else '_' for c in name)[:80]}.png")
    return (
        f"differs: {difference.mean():.1f} of 255 on average, {100 * far:.1f} % of pixels far, "
        f"darkness {inks[0]:.1f} and {inks[1]:.1f}"
    )


def main() -> None:
    """Compare all, and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="pictures of what differs, ours at the left")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    made = {name: ("image/svg+xml", data) for name, data in drawings().items()}
    outcomes: dict[str, dict[str, str]] = {"svg": {}, "raster": {}}
    with launched() as browser:
        page = browser.new_page()
        for kind, group in (("svg", made), ("raster", pictures())):
            for name, (media, data) in group.items():
                outcomes[kind][name] = compared(page, name, media, data, options.folder)
    for kind, found in outcomes.items():
        counts = Counter(outcome.partition(":")[0] for outcome in found.values())
        if not options.json:
            print(f"{kind}: {len(found)} made, {dict(counts)}")
            for name, outcome in found.items():
                if outcome.startswith("differs"):
                    print(f"  {name}: {outcome}")
    if options.json:
        print(json.dumps(outcomes, indent=1))


if __name__ == "__main__":
    main()
