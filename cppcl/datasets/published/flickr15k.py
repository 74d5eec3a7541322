"""Flickr15K: photos of 60 subjects, and sketches of the 33 shapes that they have."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path, PurePosixPath
from typing import ClassVar

from cppcl.datasets.acquisition.layout import Contents, Part, by_pattern, first_paths, key_of
from cppcl.datasets.acquisition.mirrors import Archive
from cppcl.datasets.published.published_set import PublishedSet, SampleRow
from cppcl.errors import InputError
from cppcl.validation import counted

_DRIVE = "https://drive.usercontent.google.com/download?export=download&confirm=t&id="
_SITE = "http://personal.ee.surrey.ac.uk/Personal/R.Hu"
_DEAD = "the Surrey address is dead; the other is a copy that a browser may have to download"
_SKETCHES = Archive(
    "330sketches.zip",
    (f"{_SITE}/330sketches.zip", f"{_DRIVE}16SOyCbC1H6HYJ2uT9ECDRRMj70_zbvmb"),
    remark=_DEAD,
)
_IMAGES = Archive(
    "images.zip",
    (f"{_SITE}/index_files/images.zip", f"{_DRIVE}13AFiwNh4FMks_jGfL4UDntMf0lHL6BTQ"),
    remark=f"also holds the ground truth; {_DEAD}",
)
_RESIZED = Archive(
    "resize_img.zip",
    (f"{_SITE}/index_files/resize_img.zip", f"{_DRIVE}1PqzIO-OWTeEAl3Hs5tRavRs6-qZ8OmXb"),
    remark=f"the same images, smaller; {_DEAD}",
)
_TRUTH = Archive("groundtruth.txt", (f"{_DRIVE}14GEGBW9QgAqAC9_Jh6A5XMeTLWVE9xY2",), remark=_DEAD)

N_CLASSES = 33


class Flickr15k(PublishedSet):
    """Flickr15K: 330 sketches of 33 shapes by ten people, and 14,660 photos in 60 folders.

    The ground truth says which photos have which shape: a shape such as a round arch is that of
    several folders. A class is named by its number and its first folder.
    """

    name: ClassVar[str] = "flickr15k"
    title: ClassVar[str] = "Flickr15K"
    page: ClassVar[str] = f"{_SITE}/SBIR.html"
    terms: ClassVar[str] = (
        "Photos: Creative Commons by their authors on Flickr; sketches: used in research."
    )
    citation: ClassVar[str] = (
        "R. Hu, J. Collomosse, A Performance Evaluation of Gradient Field HOG Descriptor for "
        "Sketch Based Image Retrieval, CVIU 117(7), 2013"
    )
    parts: ClassVar[tuple[Part, ...]] = (
        Part(
            name="sketches",
            modality="sketch",
            place=by_pattern(
                r"(?:330sketches|sketches)/(?P<drawer>\d{1,2})/(?P<shape>\d{1,2})"
                r"(?P<suffix>\.(?:png|jpe?g))",
                to="sketches/{drawer}/{shape}{suffix}",
            ),
            expected=330,
            archives=(_SKETCHES,),
        ),
        Part(
            name="images",
            modality="image",
            place=by_pattern(
                r"(?:source|resize_img|images)/(?P<folder>(?!source/)[^/]+)/"
                r"(?P<name>[^/]+\.(?:jpe?g|png))",
                to="images/{folder}/{name}",
            ),
            expected=14_660,
            archives=(_IMAGES, _RESIZED),
        ),
        Part(
            name="ground truth",
            modality=None,
            place=by_pattern(r"groundtruth(?:\.txt)?", to="groundtruth.txt"),
            expected=1,
            archives=(_TRUTH, _IMAGES),
        ),
    )

    def findings(self, root: Path) -> list[str]:
        """Besides the counts: what the ground truth and the photos do not agree on."""
        contents = self._contents(Path(root))
        shapes = _read_truth(_truth_file(Path(root), contents))
        here = set(contents.files["images"])
        many = sorted(key for key, numbers in shapes.items() if len(numbers) > 1)
        found = super().findings(root)
        for keys, problem in (
            (sorted(here - set(shapes)), "of no shape in the ground truth left out"),
            (sorted(set(shapes) - here), "of the ground truth not here"),
            (many, "with several shapes in the ground truth; the first one counts"),
        ):
            if keys:
                found.append(f"{counted(len(keys), 'image')} {problem}: {first_paths(keys)}.")
        return found

    def _samples(self, root: Path, contents: Contents) -> dict[str, SampleRow]:
        shapes = _read_truth(_truth_file(root, contents))
        folder_of: dict[int, str] = {}
        for key in sorted(shapes):
            for number in shapes[key]:
                folder_of.setdefault(number, key.split("/")[1])
        names = {n: f"{n:02d} {folder_of.get(n, '')}".strip() for n in range(1, N_CLASSES + 1)}
        samples = {
            key: SampleRow(key.partition("/")[2], names[shapes[key][0]], "")
            for key in contents.files["images"]
            if key in shapes
        }
        for key in contents.files["sketches"]:
            _, drawer, shape = key.split("/")
            label = names.get(int(shape))
            if label is not None:
                samples[key] = SampleRow(f"{int(shape):02d}/{int(drawer):02d}", label, "")
        return samples


def _truth_file(root: Path, contents: Contents) -> Path:
    return root / next(iter(contents.files["ground truth"].values()))


def _read_truth(path: Path) -> dict[str, list[int]]:
    """Shapes of every image, by its key ``images/<folder>/<name>``.

    Raises
    ------
    InputError
        A line does not read ``SHAPE FOLDER/NAME``.
    """
    shapes: dict[str, list[int]] = defaultdict(list)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error})") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        shape, _, image = line.strip().partition(" ")
        parts = PurePosixPath(image.strip()).parts
        if not shape.isdecimal() or not 1 <= int(shape) <= N_CLASSES or len(parts) != 2:
            raise InputError(
                f"{path}, line {number}: {line!r} does not read SHAPE FOLDER/NAME with a shape "
                f"from 1 to {N_CLASSES}"
            )
        key = key_of("/".join(("images", *parts)))
        if int(shape) not in shapes[key]:
            shapes[key].append(int(shape))
    return dict(shapes)
