"""Folders of pictures as people have them."""

import os
import socket
import unicodedata
from pathlib import Path

import pytest

from cppcl.datasets import Folder, files, images_only
from cppcl.datasets.files import file_sha256
from cppcl.errors import InputError

# The content does not matter here: what is inside a file shows when it is decoded.


@pytest.fixture
def make(tmp_path):
    def build(*paths, root=tmp_path / "my data"):
        for path in paths:
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(path.encode())
        return root

    return build


def table_of(root, **options):
    data = Folder(root=root, **options)
    return data.table(data.fetch(root / "unused"))


def test_classes_are_the_first_folders_at_any_depth(make):
    root = make(
        "sketches/cat/1.png",
        "sketches/dog/deep/er/2.PNG",
        "images/cat/a b.JPG",
        "images/dog/é.svg",
    )
    table = table_of(root)
    assert table.ids == (
        "sketch/cat/1.png",
        "sketch/dog/deep/er/2.PNG",
        "image/cat/a b.JPG",
        "image/dog/é.svg",
    )
    assert table.labels == ("cat", "dog", "cat", "dog")
    assert table.groups == table.ids
    assert table.paths[1] == "sketches/dog/deep/er/2.PNG"
    assert table.sha256[0] == file_sha256(root / table.paths[0])
    assert Folder(root=root).findings(root) == []
    assert "my data" in Folder(root=root).licence


def test_order_and_digest_do_not_depend_on_where_the_folder_is(make, tmp_path):
    names = [f"{m}/{c}/{i}.png" for m in ("sketches", "images") for c in "ba" for i in (10, 9)]
    here, there = make(*names), make(*reversed(names), root=tmp_path / "elsewhere")
    assert table_of(here) == table_of(there)
    assert list(table_of(here).column("ids", "sketch")) == sorted(
        table_of(here).column("ids", "sketch")
    )


def test_system_files_and_other_files_are_ignored_and_counted(make):
    root = make(
        "sketches/cat/1.png",
        "sketches/cat/.DS_Store",
        "sketches/cat/Thumbs.db",
        "sketches/__MACOSX/cat/._1.png",
        "sketches/.hidden.png",
        "sketches/readme.txt",
        "sketches/dog/1.gif",
        "images/cat/1.png",
        "images/dog/1.tiff",
        "images/dog/notes.pdf",
    )
    assert len(table_of(root)) == 4
    assert Folder(root=root).findings(root) == [
        "Ignored 4 hidden or system files in sketches (sketches/.hidden.png, "
        "sketches/__MACOSX, sketches/cat/.DS_Store, ...).",
        "Ignored 1 file without the extension of a picture in sketches (sketches/readme.txt).",
        "Ignored 1 file without the extension of a picture in images (images/dog/notes.pdf).",
    ]


def test_classes_on_one_side_only_are_reported_and_kept(make):
    many = [f"images/only{i}/{j}.png" for i in range(6) for j in range(2)]
    root = make("sketches/cat/1.png", "images/cat/1.png", "sketches/dog/1.png", *many)
    assert len(table_of(root)) == 15
    assert Folder(root=root).findings(root) == [
        "1 class with 1 sketch but no image: 'dog'.",
        "6 classes with 12 images but no sketch: 'only0', 'only1', 'only2', 'only3', "
        "'only4' and 1 more.",
    ]


def test_own_folder_names(make):
    root = make("s/a/1.png", "s/b/1.png", "p/a/1.png", "p/b/1.png")
    assert len(table_of(root, sketches="s", images="p")) == 4


def test_pairing_by_name_in_flat_and_in_class_folders(make):
    decomposed = unicodedata.normalize("NFD", "é")
    root = make("sketches/1.png", f"sketches/{decomposed}.png", "images/1.jpg", "images/é.jpg")
    table = table_of(root, pairing="name")
    assert table.groups == ("1", "é", "1", "é")
    assert table.labels == table.groups
    assert table.ids[1] == "sketch/é.png"
    assert (root / table.paths[1]).read_bytes()
    make("sketches/cat/1.png", "images/cat/1.png", "images/lost.png")
    table = table_of(root, pairing="name")
    row = table.ids.index("image/cat/1.png")
    assert (table.labels[row], table.groups[row]) == ("cat", "cat/1")
    assert Folder(root=root, pairing="name").findings(root) == [
        "1 class with 1 image but no sketch: 'lost'.",
        "1 group with 1 image but no sketch: 'lost'.",
    ]


def test_pairs_from_a_csv_file(make):
    root = make(
        "sketches/F2-005-sz1.png",
        "sketches/m.png",
        "sketches/m2.png",
        "sketches/extra.png",
        "images/f-005.jpg",
        "images/m.jpg",
        "images/deep/m.jpg",
    )
    (root / "pairs.csv").write_text(
        "\ufeffsketch,image,label\nF2-005-sz1.png,f-005.jpg,woman\nm.png,m.jpg,man\n"
        "m2.png,m.jpg,\nm2.png,deep/m.jpg,man\n",
        encoding="utf-8",
    )
    data = Folder(root=root, pairs=Path("pairs.csv"))
    table = data.table(root)
    groups = dict(zip(table.ids, table.groups, strict=True))
    assert set(groups) == {f"sketch/{n}" for n in ("F2-005-sz1.png", "m.png", "m2.png")} | {
        f"image/{n}" for n in ("f-005.jpg", "m.jpg", "deep/m.jpg")
    }
    assert groups["sketch/F2-005-sz1.png"] == groups["image/f-005.jpg"] == "f-005.jpg"
    assert {g for i, g in groups.items() if "m" in Path(i).stem} == {"deep/m.jpg"}
    labels = dict(zip(table.ids, table.labels, strict=True))
    assert labels["sketch/m2.png"] == "man"
    assert labels["image/f-005.jpg"] == "woman"
    assert data.findings(root) == ["1 picture in sketches left out: in no line of pairs.csv."]


def test_pairs_without_labels_use_the_group(make):
    root = make("sketches/a.png", "sketches/b.png", "images/1.png", "images/2.png")
    (root / "p.csv").write_text("image,sketch\n1.png,a.png\n2.png,b.png\n")
    table = table_of(root, pairs=Path("p.csv"))
    assert table.labels == table.groups == ("1.png", "2.png", "1.png", "2.png")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"sketch,photo\na.png,1.png\n", r"columns \['sketch', 'photo'\]; it needs sketch, image"),
        (b"", "it needs sketch, image"),
        (b"sketch,image\na.png,1.png\nc.png,1.png\n", r"line 3: sketch 'c\.png' is no picture in"),
        (b"sketch,image\na.png\n", "line 2: image '' is no picture"),
        (
            b"sketch,image,label\na.png,1.png,x\nb.png,1.png,y\n",
            r"line 3: image '1\.png' has label 'y' here and 'x' before",
        ),
        (b"sketch,image\n\xff\xfe,1.png\n", "not UTF-8"),
        (b"sketch,image,image\n", r"pairs\.csv, line 1: the head has the columns image twice"),
        (b"sketch,image\n" + b"a" * 200_000, "is no CSV .*field larger"),
        (None, "does not exist; paths are relative to root"),
    ],
)
def test_mistakes_in_pairs_are_named(make, content, message):
    root = make("sketches/a.png", "sketches/b.png", "images/1.png")
    if content is not None:
        (root / "pairs.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        table_of(root, pairs=Path("pairs.csv"))


def test_mistakes_in_the_layout_are_named(make, tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        Folder(root=tmp_path / "nowhere").fetch(tmp_path)
    root = make("Sketches/cat/1.png", "images/cat/1.png")
    with pytest.raises(InputError, match=r"'sketches' is not in .*; there is Sketches, images"):
        table_of(root)
    (root / "sketches").mkdir(exist_ok=True)
    with pytest.raises(InputError, match=r"sketches holds no pictures; known are .*\.png"):
        table_of(root)
    make("sketches/cat/1.png")
    with pytest.raises(InputError, match=r"1 class \('cat'\), .* add a folder"):
        table_of(root)
    make("sketches/2.png", "sketches/dog/1.png")
    with pytest.raises(InputError, match=r"sketches/2\.png lies in no class folder; .*pairing="):
        table_of(root)
    with pytest.raises(InputError, match="pairing is 'stem'"):
        Folder(root=root, pairing="stem")


def test_no_class_on_both_sides(make):
    root = make("sketches/Cat/1.png", "sketches/Dog/1.png", "images/cat/1.png")
    with pytest.raises(InputError, match=r"no class .*'Cat', 'Dog'"):
        table_of(root)


def test_links_are_followed_and_loops_named(make, tmp_path):
    root = make("sketches/a/1.png", "sketches/b/1.png", "images/b/1.png")
    make("1.png", root=tmp_path / "outside")
    (root / "images" / "a").symlink_to(tmp_path / "outside")
    assert "image/a/1.png" in table_of(root).ids
    (root / "images" / "b" / "again").symlink_to(root / "images")
    with pytest.raises(InputError, match=r"b/again is a symbolic link to .*images, which holds"):
        table_of(root)


def bind(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


@pytest.mark.parametrize(
    ("name", "create", "reason"),
    [
        ("gone.png", lambda path: path.symlink_to("nowhere.png"), "a link to a file that is gone"),
        ("again.png", lambda path: path.symlink_to("again.png"), "a link to itself"),
        ("null.png", lambda path: path.symlink_to("/dev/null"), "a device"),
        ("socket.png", bind, "a socket"),
        # Reading a pipe that nobody writes to would wait for ever.
        ("2.png", os.mkfifo, "a pipe"),
        ("\udcff.png", lambda path: path.write_bytes(b"x"), "its name is not valid Unicode"),
    ],
)
def test_what_is_no_file_is_named_and_skipped(make, name, create, reason, monkeypatch):
    root = make("sketches/a/1.png", "sketches/b/1.png", "images/b/1.png")
    monkeypatch.chdir(root)  # the address of a socket is at most 107 bytes long
    create(root / "images" / "b" / name)
    data_set = Folder(root=root)
    assert len(data_set.table(root)) == 3
    shown = "images/b/" + name.replace("\udcff", "\\xff")
    assert f"Skipped 1 picture in images that cannot be read: {shown} ({reason})." in (
        data_set.findings(root)
    )


def test_paths_that_are_too_long_are_named_and_skipped(make):
    root = make("sketches/a/1.png", "images/a/1.png", "sketches/b/1.png", "images/b/1.png")
    here = os.open(root / "images" / "a", os.O_RDONLY)
    try:
        for _ in range(17):
            os.mkdir("n" * 250, dir_fd=here)
            below = os.open("n" * 250, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(os.open("deep.png", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    finally:
        os.close(here)
    data_set = Folder(root=root)
    assert len(data_set.table(root)) == 4
    (finding,) = data_set.findings(root)
    assert "(its path is too long)" in finding


def test_a_folder_of_nothing_else_says_what_is_there(make):
    root = make("sketches/a/1.png", "images/a/1.png")
    (root / "images/a/1.png").unlink()
    os.mkfifo(root / "images/a/1.png")
    with pytest.raises(
        InputError, match=r"holds no pictures that can be read, but .*1\.png \(a p"
    ):
        table_of(root)


def test_what_may_not_be_read_is_named(make, monkeypatch):
    root = make("sketches/a/1.png", "sketches/b/1.png", "images/b/1.png")

    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files.hashlib, "file_digest", refuse)
    with pytest.raises(InputError, match=r"1\.png: not allowed to read it"):
        table_of(root)
    monkeypatch.setattr(files.os, "scandir", refuse)
    with pytest.raises(InputError, match="sketches: not allowed to list it"):
        table_of(root)


def test_names_in_two_unicode_forms_are_named(make):
    root = make("sketches/a/é.png", f"sketches/a/{unicodedata.normalize('NFD', 'é')}.png")
    make("images/a/1.png")
    with pytest.raises(InputError, match="same name in two Unicode forms"):
        table_of(root)


def test_text_in_drawings_is_named(make):
    root = make("sketches/a/1.svg", "sketches/b/1.svg", "images/a/1.png", "images/b/1.png")
    start = '<svg xmlns="http://www.w3.org/2000/svg">'
    (root / "sketches/a/1.svg").write_text(f"{start}<rect/><text x='1'>A</text></svg>")
    (root / "sketches/b/1.svg").write_text(f"{start}<title>text</title><textPath/></svg>")
    (finding,) = Folder(root=root).findings(root)
    assert finding.startswith("1 drawing in sketches with text, which is not drawn: sketches/a/1")


def test_images_only_takes_any_layout(make):
    root = make("1.png", "cat/2.png", "cat/x/3.jpg", "Thumbs.db")
    table = images_only(root)
    assert table.ids == ("image/1.png", "image/cat/2.png", "image/cat/x/3.jpg")
    assert table.paths == ("1.png", "cat/2.png", "cat/x/3.jpg")
    assert table.labels == ("", "cat", "cat")
    assert table.groups == table.ids
    assert set(table.modality) == {"image"}
