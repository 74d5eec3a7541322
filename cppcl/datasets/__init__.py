"""Data sets: functions that return a sample table and a licence line."""

from cppcl.datasets.base import DataSet
from cppcl.datasets.emoji import Emoji
from cppcl.datasets.folder import Folder, images_only
from cppcl.datasets.matrices import Matrices
from cppcl.datasets.table import MODALITIES, Modality, SampleTable

DATASETS: dict[str, type[DataSet]] = {
    Emoji.name: Emoji,
    Folder.name: Folder,
    Matrices.name: Matrices,
}

__all__ = [
    "DATASETS",
    "MODALITIES",
    "DataSet",
    "Emoji",
    "Folder",
    "Matrices",
    "Modality",
    "SampleTable",
    "images_only",
]
