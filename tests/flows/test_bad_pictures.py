"""One's own folder with every kind of troublesome file in it, run as a user does."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from cppcl.datasets.table import SampleTable
from storage import Artifact, Reference
from tasks.samples import open_pictures, usable_rows
from tasks.workspace import Workspace

pytestmark = pytest.mark.flow

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 80 20">'
    '<rect x="4" y="4" width="60" height="12" fill="none" stroke="black" stroke-width="3"/></svg>'
)
BAD = {
    "sketches/circle/truncated.png": "truncated",
    "sketches/square/text.jpg": "not a picture in any known format",
    "images/triangle/empty.png": "the file is empty",
}
PASSED_OVER = ("sketches/.DS_Store", "images/circle/Thumbs.db", "images/square/notes.txt")


def fill_with_trouble(root: Path) -> dict[str, Path]:
    """Add files, and return those that are good pictures in spite of how they look."""
    drawing = Image.open(root / "images/circle/0.png").convert("RGB")
    whole = (root / "sketches/circle/0.png").read_bytes()
    (root / "sketches/circle/truncated.png").write_bytes(whole[: len(whole) // 2])
    (root / "sketches/square/text.jpg").write_text("This is no picture.\n")
    (root / "images/triangle/empty.png").touch()
    (root / "sketches/.DS_Store").write_bytes(b"\0\0\0\1Bud1")
    (root / "images/circle/Thumbs.db").write_bytes(b"\xd0\xcf\x11\xe0")
    (root / "images/square/notes.txt").write_text("not a picture either")
    (root / "sketches/circle/x.png").mkdir()  # a folder, and an empty one

    good = {
        "cmyk": root / "images/circle/cmyk.jpg",
        "grey 16": root / "images/square/grey 16 bit.png",
        "one bit": root / "sketches/square/one-bit.png",
        "palette": root / "images/triangle/palette.png",
        "svg": root / "sketches/triangle/wide.svg",
        "rotated": root / "images/circle/rotated.jpg",
        "name": root / "images/square/Größe mit Leerzeichen – 猫.png",
        "deep": root / "sketches/circle/more of them/deep.png",
    }
    drawing.convert("CMYK").save(good["cmyk"], quality=95)
    ramp = np.linspace(0, 65535, 40 * 40).reshape(40, 40).astype(np.uint16)
    Image.fromarray(ramp).save(good["grey 16"])
    drawing.convert("1").save(good["one bit"])
    palette = drawing.quantize(8)
    palette.save(good["palette"], transparency=palette.getpixel((0, 0)))
    good["svg"].write_text(SVG)
    exif = Image.Exif()
    exif[0x0112] = 6
    tall = Image.new("RGB", (40, 20), "white")
    tall.paste("black", (0, 0, 10, 20))
    tall.save(good["rotated"], exif=exif, quality=95)
    drawing.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(good["name"])
    good["deep"].parent.mkdir()
    drawing.rotate(180).save(good["deep"])
    return good


@dataclass(frozen=True)
class TroubledRun:
    """A run on such a folder."""

    root: Path
    good: dict[str, Path]
    workspace: Workspace
    result: Any

    def features(self, modality: str) -> Artifact:
        store = self.workspace.store
        (found,) = [
            a
            for a in store.artifacts("extract")
            if a.parameters["modality"] == modality and a.parameters["extractor"] == "pixels"
        ]
        return found

    @property
    def table(self) -> SampleTable:
        key = self.result.json()["artifacts"]["fetch"]
        return open_pictures(self.workspace.store, Reference("fetch", key)).table


@pytest.fixture(scope="module")
def troubled(
    tmp_path_factory, prefect_server, extracting_here, draw_pictures, make_experiment, cppcl
) -> TroubledRun:
    folder = tmp_path_factory.mktemp("trouble with spaces")
    root = draw_pictures(folder / "Bilder von mir")
    good = fill_with_trouble(root)
    configuration = make_experiment(root, name="trouble")
    del configuration["dataset"]["pairing"]
    del configuration["protocols"]["instance"]
    methods = configuration["protocols"]["category"]["methods"]
    methods["cprl"] = {"n_atoms": 4, "n_rounds": 3, "initialization": {"n_initial_rounds": 1}}
    del methods["class_cca"]["tune"]  # too few good pictures for folds
    configuration["dataset"]["root"] = "Bilder von mir"  # relative to the file
    file = folder / "trouble.yaml"
    file.write_text(yaml.safe_dump(configuration), encoding="utf-8")
    workspace = Workspace(folder / "workspace")
    with extracting_here():
        result = cppcl(
            "run", file, "--set", "max_bad_share=0.5", "--workspace", workspace.root, "--json"
        )
    assert result.code == 0, result.stderr
    return TroubledRun(root, good, workspace, result)


def test_each_failing_picture_is_named_and_no_other(troubled):
    failures = {
        **troubled.features("sketch").json("failures.json"),
        **troubled.features("image").json("failures.json"),
    }
    assert set(failures) == set(BAD)
    for path, reason in BAD.items():
        assert path in failures[path]
        assert reason in failures[path]
        assert path in troubled.result.stderr
    assert "2 of 17 sketch pictures were skipped" in troubled.result.stderr
    assert "1 of 18 image pictures were skipped" in troubled.result.stderr
    # Findings about the data set may name good ones; the lists of failures are indented.
    lines = troubled.result.stderr.splitlines()
    named = "\n".join(line for line in lines if line.startswith("  "))
    for path in troubled.good.values():
        assert path.name not in named


def test_every_picture_has_a_row(troubled):
    table = troubled.table
    rows = {path.relative_to(troubled.root).as_posix() for path in troubled.good.values()}
    assert rows | set(BAD) <= set(table.paths)
    assert len(table) == 24 + len(rows) + len(BAD)
    for modality in ("sketch", "image"):
        ok = usable_rows(troubled.features(modality))
        paths = np.array(table.column("paths", modality))
        assert set(paths[~ok]) == {p for p in BAD if p.startswith(modality)}
    assert "circle" in {
        label
        for path, label in zip(table.paths, table.labels, strict=True)
        if path.endswith("deep.png")
    }


def test_files_passed_over_are_told(troubled):
    key = troubled.result.json()["artifacts"]["fetch"]
    findings = "\n".join(open_pictures(troubled.workspace.store, Reference("fetch", key)).findings)
    for path in PASSED_OVER:
        assert path in findings
    assert "x.png" not in findings


@pytest.mark.parametrize(
    ("name", "modality"),
    [("cmyk", "image"), ("palette", "image"), ("name", "image"), ("one bit", "sketch")],
)
def test_disguised_pictures_look_like_the_drawing(name, modality, troubled):
    """Features of the same drawing in other modes are near those of the PNG."""
    values = features_of(troubled, name, modality)
    drawing = np.asarray(Image.open(troubled.root / "images/circle/0.png").convert("L"))
    if name == "name":
        drawing = drawing[:, ::-1]
    expected = drawing.reshape(8, 5, 8, 5).mean(axis=(1, 3)) / 255
    # Palettes have 8 colours and black and white two, but nothing is inverted or black.
    assert np.corrcoef(values, expected.ravel())[0, 1] > 0.8
    assert abs(values[0] - 1) < 0.05


def test_values_are_scaled_and_upright(troubled):
    grey = features_of(troubled, "grey 16", "image").reshape(8, 8)
    assert (np.diff(grey.mean(axis=1)) > 0.05).all()  # a ramp from black to white, not clipped
    assert grey[0].mean() < 0.15
    assert grey[-1].mean() > 0.85
    rotated = features_of(troubled, "rotated", "image").reshape(8, 8)
    # The black quarter at the left of the stored picture is at the top of the upright one.
    assert rotated[:2].mean() < 0.3
    assert rotated[3:].mean() > 0.9
    svg = features_of(troubled, "svg", "sketch").reshape(8, 8)
    assert svg.max() > 0.9  # on white, not on black
    assert svg.min() < 0.8


def features_of(troubled: TroubledRun, name: str, modality: Any) -> Any:
    path = troubled.good[name].relative_to(troubled.root).as_posix()
    row = troubled.table.column("paths", modality).index(path)
    return troubled.features(modality).array("features")[row]


def test_the_report_names_what_was_skipped(troubled):
    key = troubled.result.json()["artifacts"]["report"]
    page = troubled.workspace.store.open(Reference("report", key)).text("report.html")
    for path in BAD:
        assert path in page


def test_the_run_fails_when_too_many_fail(troubled, cppcl):
    file = troubled.root.parent / "trouble.yaml"
    result = cppcl(
        "run", file, "--set", "max_bad_share=0.1", "--workspace", troubled.workspace.root
    )
    assert result.code == 1
    assert "2 of 17 sketch pictures cannot be used" in result.stderr
    assert "sketches/circle/truncated.png" in result.stderr
    assert "Traceback" not in result.stderr
