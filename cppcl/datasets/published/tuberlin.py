"""TU-Berlin Extension: sketches of 250 classes, and photos of the same classes."""

from __future__ import annotations

from typing import ClassVar

from cppcl.datasets.acquisition.layout import Part, by_pattern
from cppcl.datasets.acquisition.mirrors import Archive
from cppcl.datasets.published.published_set import PublishedSet, SampleRow

_SITE = "http://cybertron.cg.tu-berlin.de/eitz/projects/classifysketch"
SKETCHES = Archive("sketches_png.zip", (f"{_SITE}/sketches_png.zip",), n_bytes=525_000_000)
DRAWINGS = Archive(
    "sketches_svg.zip",
    (f"{_SITE}/sketches_svg.zip",),
    checksum="md5:aa7d8ae9c8bf5f5cb6d28cee9741737c",
    n_bytes=50_000_000,
    remark="the same sketches as drawings; the PNG archive is the publications'",
)
_BOTH = Archive(
    "dataset.zip",
    (
        "https://cs.jhu.edu/~qliu24/ZSSBIR/dataset.zip",
        "https://drive.usercontent.google.com/download?export=download&confirm=t&"
        "id=1qTEe5DjGdh45UFfGa6Ofy_80yJRp7uI5",
    ),
    remark="also holds the sketches, as 256 x 256 pictures, and another data set",
)
_IMAGES = Archive(
    "images.zip",
    (
        "https://drive.usercontent.google.com/download?export=download&confirm=t&"
        "id=0B2U-hnwRkpRrMFVvTmFQa3dmSUk",
    ),
    remark="its top folder is ImageResized; a browser may have to log in to download it",
)


class TuBerlin(PublishedSet):
    """TU-Berlin Extension: 20,000 sketches and about 204,000 photos of 250 classes."""

    name: ClassVar[str] = "tuberlin"
    title: ClassVar[str] = "TU-Berlin Extension"
    page: ClassVar[str] = _SITE
    terms: ClassVar[str] = (
        "Sketches: CC BY 4.0. Photos: no licence was found with them; used in research."
    )
    citation: ClassVar[str] = (
        "M. Eitz, J. Hays, M. Alexa, How Do Humans Sketch Objects?, SIGGRAPH 2012; photos: "
        "H. Zhang, S. Liu, C. Zhang, W. Ren, R. Wang, X. Cao, SketchNet, CVPR 2016"
    )
    remarks: ClassVar[tuple[str, ...]] = (
        "Publications count 204,489 images, the archive that is distributed has 204,070.",
    )
    parts: ClassVar[tuple[Part, ...]] = (
        Part(
            name="sketches",
            modality="sketch",
            place=by_pattern(
                r"(?:png|svg|png_ready|sketches)/(?P<label>[^/]+)/(?P<name>[^/]+\.(?:png|svg))",
                to="sketches/{label}/{name}",
            ),
            expected=20_000,
            archives=(SKETCHES, DRAWINGS),
        ),
        Part(
            name="images",
            modality="image",
            place=by_pattern(
                r"(?:ImageResized|ImageResized_ready|images)/(?P<label>[^/]+)/"
                r"(?P<name>[^/]+\.(?:jpe?g|png))",
                to="images/{label}/{name}",
            ),
            expected=204_070,
            archives=(_IMAGES, _BOTH),
        ),
    )

    def describe(self, part: Part, key: str) -> SampleRow:
        """A class is written with spaces, whatever the folder has."""
        _, label, name = key.split("/")
        label = label.replace("_", " ").lower()
        return SampleRow(f"{label}/{name}", label, "")
