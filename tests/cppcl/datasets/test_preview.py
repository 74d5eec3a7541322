"""Contact sheets."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from cppcl.datasets import DATASETS
from cppcl.datasets.preview import contact_sheet
from cppcl.errors import InputError

from .conftest import OFFICIAL, write_folder

STEP, TOP, LEFT = 102, 18, 170


def sheet_of(tmp_path, name="pacs", **options):
    root = write_folder(tmp_path / name, OFFICIAL[name]())
    table = DATASETS[name](root=root).table(root)
    png = contact_sheet(table, root, **options)
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")), table, root


def plain(colour):
    buffer = io.BytesIO()
    Image.new("RGB", (9, 9), colour).save(buffer, "PNG")
    return buffer.getvalue()


def test_every_class_has_a_line_of_sketches_and_images(tmp_path):
    labels, domains = ("dog", "horse", "person"), ("sketch", "photo")
    colours = {
        (label, domain, number): (80 * line + 10, 120 * side + 20, 60 * number + 30)
        for line, label in enumerate(labels)
        for side, domain in enumerate(domains)
        for number in range(3)
    }
    files = {f"{d}/{x}/{n}.png": plain(colour) for (x, d, n), colour in colours.items()}
    root = write_folder(tmp_path, files)
    table = DATASETS["pacs"](root=root).table(root)
    sheet = np.asarray(Image.open(io.BytesIO(contact_sheet(table, root, per_class=2))))
    assert sheet.shape == (TOP + 3 * STEP + TOP, LEFT + 4 * STEP + 12, 3)
    for line, label in enumerate(labels):
        for side, domain in enumerate(domains):
            for number in range(2):
                top = TOP + line * STEP
                left = LEFT + side * (2 * STEP + 6) + number * STEP
                assert (
                    sheet[top : top + 96, left : left + 96] == colours[label, domain, number]
                ).all()


def test_classes_are_bounded_and_the_same_bytes_come_again(tmp_path):
    sheet, table, root = sheet_of(tmp_path, n_classes=1)
    assert sheet.shape[0] == 2 * TOP + STEP
    assert contact_sheet(table, root) == contact_sheet(table, root)


def test_a_damaged_picture_is_a_grey_square(tmp_path):
    _, table, root = sheet_of(tmp_path)
    (root / table.paths[0]).write_bytes(b"\x89PNG damaged")
    sheet = np.asarray(Image.open(io.BytesIO(contact_sheet(table, root, per_class=1))))
    assert (sheet[TOP : TOP + 96, LEFT : LEFT + 96] == 211).all()


@pytest.mark.parametrize("options", [{"per_class": 0}, {"n_classes": 0}])
def test_nothing_to_show_is_refused(options, tmp_path):
    with pytest.raises(InputError, match="must be at least 1"):
        sheet_of(tmp_path, **options)
