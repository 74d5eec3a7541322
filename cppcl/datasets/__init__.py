"""Data sets: functions that return a sample table and a licence line."""

from cppcl.datasets.base import DataSet
from cppcl.datasets.emoji import Emoji
from cppcl.datasets.emoji_drawn import EmojiDrawn
from cppcl.datasets.folder import Folder, images_only
from cppcl.datasets.folder_drawn import FolderDrawn
from cppcl.datasets.matrices import Matrices
from cppcl.datasets.published.cufs import Cufs
from cppcl.datasets.published.flickr15k import Flickr15k
from cppcl.datasets.published.pacs import Pacs
from cppcl.datasets.published.published_set import PublishedSet
from cppcl.datasets.published.qmul import Qmul
from cppcl.datasets.published.qmul_test import QmulTest
from cppcl.datasets.published.qmul_v2 import QmulChairV2, QmulShoeV2
from cppcl.datasets.published.quickdraw_ext import QuickDrawExt
from cppcl.datasets.published.sketchy_ext import SketchyExt
from cppcl.datasets.published.tuberlin import TuBerlin
from cppcl.datasets.published.tuberlin_ext import TuBerlinExt
from cppcl.datasets.table import SampleTable
from cppcl.modality import MODALITIES, Modality

DATASETS: dict[str, type[DataSet]] = {
    Emoji.name: Emoji,
    EmojiDrawn.name: EmojiDrawn,
    Folder.name: Folder,
    FolderDrawn.name: FolderDrawn,
    Matrices.name: Matrices,
    Cufs.name: Cufs,
    Flickr15k.name: Flickr15k,
    Qmul.name: Qmul,
    QmulTest.name: QmulTest,
    TuBerlin.name: TuBerlin,
    Pacs.name: Pacs,
    SketchyExt.name: SketchyExt,
    TuBerlinExt.name: TuBerlinExt,
    QuickDrawExt.name: QuickDrawExt,
    QmulShoeV2.name: QmulShoeV2,
    QmulChairV2.name: QmulChairV2,
}
UNFINISHED = (EmojiDrawn.name, FolderDrawn.name)
"""Data sets whose drawings are there in several shares of their strokes."""

__all__ = [
    "DATASETS",
    "MODALITIES",
    "UNFINISHED",
    "Cufs",
    "DataSet",
    "Emoji",
    "EmojiDrawn",
    "Flickr15k",
    "Folder",
    "FolderDrawn",
    "Matrices",
    "Modality",
    "Pacs",
    "PublishedSet",
    "Qmul",
    "QmulChairV2",
    "QmulShoeV2",
    "QmulTest",
    "QuickDrawExt",
    "SampleTable",
    "SketchyExt",
    "TuBerlin",
    "TuBerlinExt",
    "images_only",
]
