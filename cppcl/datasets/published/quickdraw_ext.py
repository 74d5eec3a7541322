"""QuickDraw-Extended: drawings of a game and photos, 110 classes."""

from __future__ import annotations

from typing import ClassVar, Literal

from cppcl.datasets.acquisition.layout import Part, by_pattern
from cppcl.datasets.acquisition.mirrors import Archive
from cppcl.datasets.published.zero_shot import UnseenCounts, ZeroShotSet

_SITE = "http://datasets.cvc.uab.es/QuickDraw"


def _part(name: str, modality: Literal["sketch", "image"], expected: int) -> Part:
    file = f"QuickDraw_{name}_final.zip"
    return Part(
        name=name,
        modality=modality,
        place=by_pattern(
            rf"QuickDraw(?:_{name}(?:_final)?|/{name})/(?P<label>[^/]+)/"
            r"(?P<name>[^/]+\.(?:png|jpe?g))",
            to=f"QuickDraw_{name}_final/{{label}}/{{name}}",
        ),
        expected=expected,
        archives=(Archive(file, (f"{_SITE}/{file}",), remark="the address may be dead"),),
    )


class QuickDrawExt(ZeroShotSet):
    """QuickDraw-Extended: 330,000 sketches and 204,000 photos of 110 classes, 30 unseen."""

    name: ClassVar[str] = "quickdraw-ext"
    title: ClassVar[str] = "QuickDraw-Extended"
    page: ClassVar[str] = "https://github.com/sounakdey/doodle2search"
    terms: ClassVar[str] = (
        "Sketches: Quick, Draw!, Google, CC BY 4.0. Photos: of Flickr; used in research."
    )
    citation: ClassVar[str] = (
        "S. Dey, P. Riba, A. Dutta, J. Llados, Y.-Z. Song, Doodle to Search: Practical Zero-Shot "
        "Sketch-based Image Retrieval, CVPR 2019"
    )
    remarks: ClassVar[tuple[str, ...]] = ("The publication gives rounded counts of the whole.",)
    parts: ClassVar[tuple[Part, ...]] = (
        _part("sketches", "sketch", 330_000),
        _part("images", "image", 204_000),
    )
    unseen: ClassVar[dict[str, UnseenCounts]] = {"quickdraw-ext-30": UnseenCounts(92_291, 54_151)}
