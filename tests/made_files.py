"""Files of pictures written byte by byte: kinds that Pillow reads and does not write."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

D50 = (0.9642, 1.0, 0.8249)
# Bradford adaptation from D65 to D50 (ICC.1:2022, annex E).
D65_TO_D50 = np.array(
    [
        [1.0478112, 0.0228866, -0.0501270],
        [0.0295424, 0.9904844, -0.0170491],
        [-0.0092345, 0.0150436, 0.7521316],
    ]
)
ADOBE = np.array(  # linear Adobe RGB (1998) to XYZ of D65
    [[0.57667, 0.18556, 0.18823], [0.29734, 0.62736, 0.07529], [0.02703, 0.07069, 0.99134]]
)


def png_chunk(kind: bytes, payload: bytes) -> bytes:
    """One chunk of a PNG."""
    checked = kind + payload
    return struct.pack(">I", len(payload)) + checked + struct.pack(">I", zlib.crc32(checked))


def png(
    width: int,
    height: int,
    bits: int,
    colour_type: int,
    rows: Sequence[bytes],
    *,
    before_data: bytes = b"",
) -> bytes:
    """A PNG without filters and interlacing."""
    header = struct.pack(">IIBBBBB", width, height, bits, colour_type, 0, 0, 0)
    data = zlib.compress(b"".join(b"\x00" + row for row in rows))
    return (
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", header)
        + before_data
        + png_chunk(b"IDAT", data)
        + png_chunk(b"IEND", b"")
    )


def bmp(
    pixels: Sequence[Sequence[int]],
    *,
    header: int = 40,
    compression: int = 0,
    masks: Sequence[int] = (),
    top_down: bool = False,
) -> bytes:
    """A BMP of 32 bits a pixel, given as integers from the top row down."""
    width, height = len(pixels[0]), len(pixels)
    rows = pixels if top_down else pixels[::-1]
    body = b"".join(struct.pack(f"<{width}I", *row) for row in rows)
    signed = -height if top_down else height
    info = struct.pack(
        "<IiiHHIIiiII", header, width, signed, 1, 32, compression, len(body), 2835, 2835, 0, 0
    )
    fields = struct.pack(f"<{len(masks)}I", *masks)
    info += fields if header == 40 else fields.ljust(header - 40, b"\0")
    start = 14 + len(info)
    return b"BM" + struct.pack("<IHHI", start + len(body), 0, 0, start) + info + body


def tiff(values: NDArray[np.unsignedinteger], *, extra: int, separate: bool = False) -> bytes:
    """An uncompressed TIFF, (height, width, 2 or 4) with the last channel of this kind."""
    height, width, n = values.shape
    stored = values.astype(values.dtype.newbyteorder("<"))
    raw = np.moveaxis(stored, 2, 0).tobytes() if separate else stored.tobytes()
    strips = n if separate else 1
    entries = [
        (256, "H", [width]),
        (257, "H", [height]),
        (258, "H", [8 * values.itemsize] * n),
        (259, "H", [1]),
        (262, "H", [2 if n == 4 else 1]),
        (273, "I", [0] * strips),
        (277, "H", [n]),
        (278, "H", [height]),
        (279, "I", [len(raw) // strips] * strips),
        (284, "H", [2 if separate else 1]),
        (338, "H", [extra]),
    ]
    start = 8 + 2 + 12 * len(entries) + 4
    size = start + sum(
        size for _, t, v in entries if (size := struct.calcsize(f"<{len(v)}{t}")) > 4
    )
    entries[5] = (273, "I", [size + k * len(raw) // strips for k in range(strips)])
    directory, beyond = struct.pack("<H", len(entries)), b""
    for tag, kind, found in entries:
        packed = struct.pack(f"<{len(found)}{kind}", *found)
        directory += struct.pack("<HHI", tag, {"H": 3, "I": 4}[kind], len(found))
        if len(packed) <= 4:
            directory += packed.ljust(4, b"\0")
        else:
            directory += struct.pack("<I", start + len(beyond))
            beyond += packed
    return b"II*\0" + struct.pack("<I", 8) + directory + struct.pack("<I", 0) + beyond + raw


def colour_profile(to_xyz: NDArray[np.float64] | None, gamma: float) -> bytes:
    """An ICC profile of RGB with these primaries (D65), or of grey, and a power as its curve."""
    curve = b"curv" + struct.pack(">IIH", 0, 1, round(gamma * 256)) + b"\0\0"

    def xyz(values: Sequence[float]) -> bytes:
        return b"XYZ " + struct.pack(">I3i", 0, *(round(v * 65536) for v in values))

    name = b"desc" + struct.pack(">II", 0, 5) + b"made\0" + bytes(78 + 3)
    tags = {b"desc": name, b"cprt": b"text\0\0\0\0none\0\0\0\0", b"wtpt": xyz(D50)}
    if to_xyz is None:
        tags[b"kTRC"] = curve
    else:
        columns = (D65_TO_D50 @ to_xyz).T
        for letter, column in zip("rgb", columns, strict=True):
            tags[letter.encode() + b"XYZ"] = xyz(column.tolist())
            tags[letter.encode() + b"TRC"] = curve
    table, body, at = b"", b"", 128 + 4 + 12 * len(tags)
    for tag, content in tags.items():
        padded = content + bytes(-len(content) % 4)
        table += tag + struct.pack(">II", at + len(body), len(content))
        body += padded
    kind = b"GRAY" if to_xyz is None else b"RGB "
    head = struct.pack(
        ">I4sI4s4s4s", at + len(body), b"\0" * 4, 0x02100000, b"mntr", kind, b"XYZ "
    )
    head += struct.pack(">6H4s", 2026, 1, 1, 0, 0, 0, b"acsp")
    head = head.ljust(68, b"\0") + struct.pack(">3i", *(round(v * 65536) for v in D50))
    return head.ljust(128, b"\0") + struct.pack(">I", len(tags)) + table + body
