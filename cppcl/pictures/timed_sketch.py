"""Sketches in time: strokes as lines of points, in the order in which they were drawn."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cppcl.errors import InputError
from cppcl.pictures.decoding import Picture, decode_picture
from cppcl.regular_files import open_regular
from cppcl.validation import LARGEST, LEAST_POSITIVE

LINE = 0.027
"""Width of lines that are rendered, as a share of the side of the picture."""
MARGIN = 0.1
"""What is left free around a whole sketch, as a share of the side of the picture."""
LONGEST_LINE = 2**24
"""Characters of the longest line of an ``.ndjson`` file that is read."""


@dataclass(frozen=True)
class TimedSketch:
    """Strokes in the order of drawing; only the order of points counts, not their speed.

    Parameters
    ----------
    strokes : tuple of (n, 2) float64 arrays
        x to the right and y down, in any unit, first drawn first. A dot is a stroke of one point.

    Raises
    ------
    InputError
        There is no stroke, or one is empty, of another shape, not finite, or beyond 1e9.
    """

    strokes: tuple[NDArray[np.float64], ...]

    def __post_init__(self) -> None:
        if not self.strokes:
            raise InputError("a sketch has no strokes; leave it out")
        for number, stroke in enumerate(self.strokes):
            if stroke.ndim != 2 or stroke.shape[1] != 2 or not len(stroke):
                raise InputError(f"stroke {number} has shape {stroke.shape}; give (n, 2) points")
            if not np.isfinite(stroke).all():
                raise InputError(f"stroke {number} has coordinates that are not finite")
            if np.abs(stroke).max() > LARGEST:
                raise InputError(f"stroke {number} has coordinates beyond {LARGEST:g}")

    @classmethod
    def of(cls, strokes: Sequence[ArrayLike]) -> Self:
        """Make a sketch of lists of points."""
        return cls(tuple(np.asarray(stroke, dtype=np.float64) for stroke in strokes))

    @classmethod
    def from_quickdraw(cls, drawing: Sequence[Sequence[Sequence[float]]]) -> Self:
        """Make a sketch of the field ``drawing`` of a Quick, Draw! line.

        Simplified strokes are ``[xs, ys]``, raw ones ``[xs, ys, times]``; times are left out.

        Raises
        ------
        InputError
            A stroke has another form.
        """
        for number, stroke in enumerate(drawing):
            if len(stroke) not in (2, 3) or len({len(values) for values in stroke}) != 1:
                raise InputError(
                    f"stroke {number} of a drawing has lists of lengths "
                    f"{[len(values) for values in stroke]}; it must be [xs, ys] or "
                    "[xs, ys, times], all of one length"
                )
        return cls.of([np.transpose(stroke[:2]) for stroke in drawing])

    @classmethod
    def from_page(cls, strokes: Sequence[Sequence[Mapping[str, float]]]) -> Self:
        """Make a sketch of the strokes of the search page: points with ``x`` and ``y``."""
        return cls.of([[(point["x"], point["y"]) for point in stroke] for stroke in strokes])

    @property
    def ink(self) -> float:
        """Length of all strokes, in the unit of the points."""
        return float(sum(map(_length, self.strokes)))

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Least x and y, greatest x and y."""
        points = np.concatenate(self.strokes)
        return (*points.min(axis=0).tolist(), *points.max(axis=0).tolist())

    def first(self, share: float) -> TimedSketch:
        """Keep the first share of the ink; the last stroke of it ends where the ink does.

        Parameters
        ----------
        share : float
            In (0, 1]. Dots take no ink: one is there when what comes before it is.

        Raises
        ------
        InputError
            The share is out of range.
        """
        if not 0 < share <= 1:
            raise InputError(f"share={share} of a sketch must lie in (0, 1]")
        ink = self.ink
        if share == 1 or ink < LEAST_POSITIVE:
            return self
        left, kept = share * ink, []
        for stroke in self.strokes:
            length = _length(stroke)
            if length > 0 and left <= 0:
                break
            if length > left:
                kept.append(_beginning(stroke, left))
                break
            kept.append(stroke)
            left -= length
        return TimedSketch(tuple(kept))

    def svg(
        self,
        *,
        box: tuple[float, float, float, float] | None = None,
        side: int = 256,
        line: float = LINE,
    ) -> str:
        """Draw black lines on a white square.

        Parameters
        ----------
        box : tuple of float, optional
            What fits the square but for a margin, as `box`; that of the sketch itself by default.
            Parts of one sketch stay in their place with the box of the whole.
        side : int
            Of the square, pixels.
        line : float
            Width of lines as a share of the side.
        """
        left, top, right, bottom = box or self.box
        longest = max(right - left, bottom - top)
        scale = (1 - 2 * MARGIN) * side / longest if longest >= LEAST_POSITIVE else 1.0
        origin = np.array([(left + right) / 2, (top + bottom) / 2])
        lines = []
        for stroke in self.strokes:
            placed = np.round((stroke - origin) * scale + side / 2, 2)
            # A line of no length has no direction, and no renderer must draw it.
            if len(placed) == 1 or not np.ptp(placed, axis=0).any():
                placed = placed[:1] + np.array([[0, 0], [0.01, 0]])
            points = " ".join(f"{x:.2f},{y:.2f}" for x, y in placed)
            lines.append(f'<polyline points="{points}"/>')
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}" width="{side}" '
            f'height="{side}"><g fill="none" stroke="#000" stroke-width="{line * side:.4g}" '
            f'stroke-linecap="round" stroke-linejoin="round">{"".join(lines)}</g></svg>\n'
        )

    def render(self, share: float = 1.0, *, side: int = 256, line: float = LINE) -> Picture:
        """Draw the first share of the ink where it lies in the whole sketch.

        Returns
        -------
        (side, side, 3) uint8 array
        """
        part = self.first(share).svg(box=self.box, side=side, line=line)
        return decode_picture(part.encode(), longest_side=side, name="sketch")


@dataclass(frozen=True)
class QuickDrawing:
    """One line of a Quick, Draw! file: what was to be drawn, its key, and its strokes."""

    word: str
    key: str
    recognized: bool
    sketch: TimedSketch


def read_quickdraw(path: Path) -> Iterator[QuickDrawing]:
    """Read the drawings of an ``.ndjson`` file of Quick, Draw!, simplified or raw.

    Raises
    ------
    InputError
        The file cannot be read, or a line is no drawing: the message names it.
    """
    try:
        with io.TextIOWrapper(open_regular(path), encoding="utf-8-sig") as file:
            number = 0
            while text := file.readline(LONGEST_LINE + 1):
                number += 1
                place = f"{path}, line {number}"
                if len(text) > LONGEST_LINE:
                    raise InputError(
                        f"{place}: is longer than {LONGEST_LINE:,} characters, so it is no "
                        "drawing of Quick, Draw!; give one drawing a line"
                    )
                if text.strip():
                    yield _quick_drawing(text, place)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error


def _quick_drawing(text: str, place: str) -> QuickDrawing:
    try:
        line: dict[str, Any] = json.loads(text)
        sketch = TimedSketch.from_quickdraw(line["drawing"])
        word, key, recognized = line["word"], line["key_id"], line.get("recognized", True)
        for name, value, kinds in (
            ("word", word, str),
            ("key_id", key, str | int),
            ("recognized", recognized, bool),
        ):
            if not isinstance(value, kinds):
                raise TypeError(f"{name} is {value!r:.50}")
        return QuickDrawing(word, str(key), recognized, sketch)
    except InputError as error:
        raise InputError(f"{place}: {error}") from error
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"{place}: is no drawing of Quick, Draw! ({reason}); give a file of simplified or "
            "raw drawings, .ndjson"
        ) from error


def _length(stroke: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(np.diff(stroke, axis=0), axis=1).sum())


def _beginning(stroke: NDArray[np.float64], length: float) -> NDArray[np.float64]:
    """Points of a stroke up to a length that it exceeds, the last one between two of its own."""
    ways = np.concatenate([[0.0], np.linalg.norm(np.diff(stroke, axis=0), axis=1).cumsum()])
    # The last sum may be a rounding error less than the length that was compared.
    at = int(np.searchsorted(ways, min(length, np.nextafter(ways[-1], 0)), side="right"))
    t = (length - ways[at - 1]) / (ways[at] - ways[at - 1])
    last = stroke[at - 1] + t * (stroke[at] - stroke[at - 1])
    return np.concatenate([stroke[:at], last[None]])
