"""Splits into training and test samples: seeded rules, and published files."""

from cppcl.datasets.splits.counted import counted_split, unseen_split
from cppcl.datasets.splits.noise import noisy_targets
from cppcl.datasets.splits.published import (
    named_split,
    published_names,
    published_split,
    published_text,
    split_from_text,
    split_text,
    split_to_text,
)
from cppcl.datasets.splits.seeded import (
    Split,
    category_findings,
    category_split,
    instance_split,
)
from cppcl.datasets.splits.transfer import transfer_split
from cppcl.datasets.splits.unseen_classes import UNSEEN_CLASSES

__all__ = [
    "UNSEEN_CLASSES",
    "Split",
    "category_findings",
    "category_split",
    "counted_split",
    "instance_split",
    "named_split",
    "noisy_targets",
    "published_names",
    "published_split",
    "published_text",
    "split_from_text",
    "split_text",
    "split_to_text",
    "transfer_split",
    "unseen_split",
]
