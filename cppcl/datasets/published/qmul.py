"""Queen Mary SBIR: the sketches of TU-Berlin and photos of PASCAL VOC 2010 of 14 classes."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree

from cppcl.datasets.acquisition.adding import add_files
from cppcl.datasets.acquisition.layout import Contents, Part, by_pattern
from cppcl.datasets.acquisition.mirrors import Archive, Listener
from cppcl.datasets.published.published_set import PublishedSet, SampleRow
from cppcl.datasets.published.qmul_test import CITATION, CLASSES
from cppcl.datasets.published.tuberlin import DRAWINGS, SKETCHES, TuBerlin
from cppcl.datasets.splits.published import published_text
from cppcl.errors import InputError

_VOC = Archive(
    "VOCtrainval_03-May-2010.tar",
    ("http://host.robots.ox.ac.uk/pascal/VOC/voc2010/VOCtrainval_03-May-2010.tar",),
    checksum="md5:da459979d0c395079b5c75ee67908abb",
    n_bytes=1_300_000_000,
)
VOC_CLASSES = {
    "aeroplane": "airplane",
    "bicycle": "bicycle",
    "bird": "standing bird",
    "bus": "bus",
    "car": "car (sedan)",
    "cat": "cat",
    "chair": "chair",
    "cow": "cow",
    "diningtable": "table",
    "dog": "dog",
    "horse": "horse",
    "motorbike": "motorbike",
    "sheep": "sheep",
    "train": "train",
}
"""Class of PASCAL VOC to class of the sketches."""

_LABELS = "|".join(label.replace("(", r"\(").replace(")", r"\)") for label in CLASSES)


def _voc(name: str, folder: str, pattern: str, expected: int) -> Part:
    return Part(
        name=name,
        modality="image" if folder == "JPEGImages" else None,
        place=by_pattern(rf"VOC2010/{folder}/{pattern}", to=f"VOC2010/{folder}/{{name}}"),
        expected=expected,
        archives=(_VOC,),
    )


class Qmul(PublishedSet):
    """Queen Mary SBIR: 1,120 sketches and the photos of PASCAL VOC 2010 of the same 14 classes.

    Photos of the published test part are labelled as there. Any other with objects of several of
    the classes has the label of the one whose boxes cover the largest area.
    """

    name: ClassVar[str] = "qmul"
    title: ClassVar[str] = "Queen Mary SBIR, assembled from TU-Berlin and PASCAL VOC 2010"
    page: ClassVar[str] = "https://github.com/panly099/fine-graind-SBIR"
    terms: ClassVar[str] = (
        "Sketches: TU-Berlin, CC BY 4.0. Photos: PASCAL VOC 2010, subject to the terms of Flickr."
    )
    citation: ClassVar[str] = CITATION
    parts: ClassVar[tuple[Part, ...]] = (
        Part(
            name="sketches",
            modality="sketch",
            place=by_pattern(
                rf"(?:png|svg|png_ready|sketches)/(?P<label>{_LABELS})/"
                r"(?P<name>[^/]+\.(?:png|svg))",
                to="sketches/{label}/{name}",
            ),
            expected=1120,
            archives=(SKETCHES, DRAWINGS),
        ),
        _voc("photos", "JPEGImages", r"(?P<name>\d{4}_\d{6}\.jpg)", 11_321),
        _voc("annotations", "Annotations", r"(?P<name>\d{4}_\d{6}\.xml)", 11_321),
        _voc("list of photos", "ImageSets/Main", r"(?P<name>trainval\.txt)", 1),
    )

    def findings(self, root: Path) -> list[str]:
        """Besides the counts: photos of the classes against those of the publication."""
        contents = self._contents(Path(root))
        classes = _classes_of_photos(Path(root), contents)
        several = sum(len(areas) > 1 for areas in classes.values())
        return [
            *super().findings(root),
            f"{len(classes)} photos of the trainval list show one of the 14 classes; the "
            f"publication counts 7,267 and does not say how. {several} show several.",
        ]

    def _samples(self, root: Path, contents: Contents) -> dict[str, SampleRow]:
        samples = {
            key: self.describe(self.parts[0], key.lower()) for key in contents.files["sketches"]
        }
        published = _published_labels()
        for number, areas in _classes_of_photos(root, contents).items():
            largest = min(areas, key=lambda name: (-areas[name], name))
            label = published.get(number, largest)
            samples[f"VOC2010/JPEGImages/{number}"] = SampleRow(f"{label}/{number}", label, "")
        return samples

    def _download(self, directory: Path, listener: Listener) -> None:
        # The sketches are a twentieth of those of TU-Berlin, which may be here already.
        tuberlin = TuBerlin().status(directory)
        home = self.home(directory)
        if tuberlin.found["sketches"] and not self.status(directory).found["sketches"]:
            listener.log(f"sketches: from {tuberlin.home}")
            add_files(tuberlin.home, home, self.parts[:1], listener=listener)
        super()._download(directory, listener)


def _classes_of_photos(root: Path, contents: Contents) -> dict[str, dict[str, float]]:
    """Area of the boxes of each of the 14 classes, in pixels, by number of the photo."""
    (listing,) = contents.files["list of photos"].values()
    wanted = (root / listing).read_text(encoding="utf-8").split()
    annotations = contents.files["annotations"]
    found = {}
    for number in wanted:
        path = annotations.get(f"VOC2010/Annotations/{number}")
        if path is None:
            raise InputError(
                f"{root / listing} names {number}, which has no annotation; add the archive "
                f"{_VOC.file} again"
            )
        if areas := _areas(root / path):
            found[number] = areas
    return found


def _published_labels() -> dict[str, str]:
    """Label of each photo of the published test part, by its number."""
    ids = json.loads(published_text("qmul-test-part"))["test_images"]
    return {number: label for _, label, number in (name.split("/") for name in ids)}


def _areas(path: Path) -> dict[str, float]:
    areas: dict[str, float] = defaultdict(float)
    try:
        for item in ElementTree.parse(path).iterfind("object"):
            name = VOC_CLASSES.get(item.findtext("name", "").strip())
            box = item.find("bndbox")
            if name is not None and box is not None:
                x0, y0, x1, y1 = (
                    float(box.findtext(side, "0")) for side in ("xmin", "ymin", "xmax", "ymax")
                )
                areas[name] += max(0.0, x1 - x0) * max(0.0, y1 - y0)
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError(f"{path} is no annotation of PASCAL VOC ({error})") from error
    return dict(areas)
