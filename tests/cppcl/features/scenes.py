"""Made sketches, and scenes: an object on a grainy ground, with shapes behind or over it."""

from __future__ import annotations

import numpy as np

WIDTH, HEIGHT = 200, 150


def scene(
    seed: int,
    n_distractors: int = 0,
    *,
    occluding: bool = False,
    distractor_scale: tuple[float, float] = (0.05, 0.2),
    object_scale: tuple[float, float] = (0.3, 0.6),
) -> tuple[np.ndarray, np.ndarray]:
    """One object among distractors of any colour.

    Parameters
    ----------
    seed : int
        Scenes of one seed have the same object, ground and first distractors.
    n_distractors : int
        How many.
    occluding : bool
        True if they lie over the object, not behind it.
    distractor_scale, object_scale : (smallest, largest)
        Square root of the share of the picture that a distractor, or the object, covers.

    Returns
    -------
    picture : (150, 200, 3) uint8
    box : (4,) float
        Left, top, right and bottom of the object in the unit square.
    """
    from PIL import Image, ImageDraw
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng([seed, 0])
    ground = rng.integers(60, 200, 3)
    layers = [rng.standard_normal((HEIGHT, WIDTH, 3)) for _ in range(3)]
    grain = sum(
        s * gaussian_filter(layer, (s, s, 0)) for s, layer in zip((1, 3, 8), layers, strict=True)
    )
    picture = Image.fromarray(np.uint8(np.clip(ground + 8 * grain / grain.std(), 0, 255)))
    pen = ImageDraw.Draw(picture)
    side = np.exp(rng.uniform(*np.log(object_scale))) * np.sqrt(WIDTH * HEIGHT)
    root = np.exp(rng.uniform(-0.25, 0.25))
    width, height = min(side * root, WIDTH - 4), min(side / root, HEIGHT - 4)
    left, top = rng.uniform(0, WIDTH - width), rng.uniform(0, HEIGHT - height)
    box = tuple(int(v) for v in (left, top, left + width, top + height))
    colour = rng.integers(0, 256, 3)
    while np.abs(colour - ground).sum() < 135:
        colour = rng.integers(0, 256, 3)
    kind = int(rng.integers(3))

    if occluding:
        draw_shape(pen, kind, box, colour)
    others = np.random.default_rng([seed, 1])
    for _ in range(n_distractors):
        side = np.exp(others.uniform(*np.log(distractor_scale))) * np.sqrt(WIDTH * HEIGHT)
        root = np.exp(others.uniform(-0.25, 0.25))
        width, height = side * root, side / root
        left = others.uniform(-width / 3, WIDTH - width / 1.5)
        top = others.uniform(-height / 3, HEIGHT - height / 1.5)
        place = tuple(int(v) for v in (left, top, left + width, top + height))
        draw_shape(pen, int(others.integers(3)), place, others.integers(0, 256, 3))
    if not occluding:
        draw_shape(pen, kind, box, colour)

    noisy = np.asarray(picture) + rng.normal(0, 6, (HEIGHT, WIDTH, 3))
    end = (box[2] + 1) / WIDTH, (box[3] + 1) / HEIGHT
    return np.uint8(np.clip(noisy, 0, 255)), np.array([box[0] / WIDTH, box[1] / HEIGHT, *end])


def draw_shape(pen, kind: int, box: tuple[int, ...], colour: np.ndarray) -> None:
    """Fill an ellipse, a rectangle or a hexagon that touches its box on all sides."""
    fill = tuple(int(v) for v in colour)
    if kind == 0:
        pen.ellipse(box, fill)
    elif kind == 1:
        pen.rectangle(box, fill)
    else:
        left, top, right, bottom = box
        middle, quarter = (top + bottom) / 2, (right - left) / 4
        pen.polygon(
            [
                (left, middle),
                (left + quarter, top),
                (right - quarter, top),
                (right, middle),
                (right - quarter, bottom),
                (left + quarter, bottom),
            ],
            fill,
        )


def drawing(seed: int, width: int = 2, side: int = 256) -> np.ndarray:
    """Circles and zigzags of one pen on white, inside the middle 216 pixels."""
    from PIL import Image, ImageDraw

    rng = np.random.default_rng(seed)
    image = Image.new("RGB", (side, side), "white")
    pen = ImageDraw.Draw(image)
    for _ in range(2):
        x, y, radius = (int(rng.integers(*span)) for span in ((70, 186), (70, 186), (20, 50)))
        box = (x - radius, y - radius, x + radius, y + radius)
        pen.ellipse(box, outline="black", width=width)
        points = rng.integers(20, side - 20, (3, 2))
        pen.line([tuple(map(int, point)) for point in points], "black", width)
    return np.asarray(image)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def overlaps(windows: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Intersection over union of windows (n, 4) with a box, (n,)."""
    shared = np.clip(
        np.minimum(windows[:, 2:], box[2:]) - np.maximum(windows[:, :2], box[:2]), 0, None
    ).prod(axis=1)
    area = (windows[:, 2:] - windows[:, :2]).prod(axis=1)
    return shared / (area + (box[2:] - box[:2]).prod() - shared)
