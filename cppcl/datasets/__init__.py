"""Data sets: functions that return a sample table and a licence line."""

from cppcl.datasets.base import DataSet
from cppcl.datasets.cufs import Cufs
from cppcl.datasets.emoji import Emoji
from cppcl.datasets.emoji_drawn import EmojiDrawn
from cppcl.datasets.flickr15k import Flickr15k
from cppcl.datasets.folder import Folder, images_only
from cppcl.datasets.matrices import Matrices
from cppcl.datasets.pacs import Pacs
from cppcl.datasets.published.published_set import PublishedSet
from cppcl.datasets.qmul import Qmul
from cppcl.datasets.qmul_test import QmulTest
from cppcl.datasets.table import SampleTable
from cppcl.datasets.tuberlin import TuBerlin
from cppcl.modality import MODALITIES, Modality

DATASETS: dict[str, type[DataSet]] = {
    Emoji.name: Emoji,
    EmojiDrawn.name: EmojiDrawn,
    Folder.name: Folder,
    Matrices.name: Matrices,
    Cufs.name: Cufs,
    Flickr15k.name: Flickr15k,
    Qmul.name: Qmul,
    QmulTest.name: QmulTest,
    TuBerlin.name: TuBerlin,
    Pacs.name: Pacs,
}

__all__ = [
    "DATASETS",
    "MODALITIES",
    "Cufs",
    "DataSet",
    "Emoji",
    "EmojiDrawn",
    "Flickr15k",
    "Folder",
    "Matrices",
    "Modality",
    "Pacs",
    "PublishedSet",
    "Qmul",
    "QmulTest",
    "SampleTable",
    "TuBerlin",
    "images_only",
]
