"""Every published data set: fetched, added from what people have, checked, read and split."""

from __future__ import annotations

import errno
import io
import os
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from cppcl.datasets import DATASETS
from cppcl.datasets.acquisition.adding import alone
from cppcl.datasets.acquisition.download import DiskFullError, Patience
from cppcl.datasets.acquisition.layout import key_of, part_of
from cppcl.datasets.acquisition.mirrors import Listener
from cppcl.errors import DataUnavailableError, InputError
from tests.cppcl.datasets.conftest import OFFICIAL, Answer, jpeg, png, write_folder, write_zip

NAMES = sorted(OFFICIAL)
OF_SEVERAL_CLASSES = [name for name in NAMES if name not in ("qmul-chair-v2", "qmul-shoe-v2")]
SILENT = Listener(patience=Patience(tries=1))


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def files(name):
    return OFFICIAL[name]()


def offline(name, **options):
    """The data set without addresses: nothing may leave this machine."""
    made = DATASETS[name]
    parts = tuple(replace(part, archives=()) for part in made.parts)
    return type(made.__name__, (made,), {"parts": parts})(**options)


@pytest.fixture
def data_set(name):
    return offline(name)


def counts(data_set, directory):
    return data_set.status(directory).found


def all_files(root):
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())


@pytest.mark.parametrize("form", ["folder", "zip", "zip in zip", "root"])
def test_all_forms_give_the_same_table(form, name, files, tmp_path):
    reference = offline(name)
    reference.add(tmp_path / "reference", write_folder(tmp_path / "plain", files))
    expected = reference.table(reference.fetch(tmp_path / "reference"))
    data_set = offline(name)
    if form == "root":
        data_set = offline(name, root=tmp_path / "plain")
    else:
        source = write_folder(tmp_path / "mine" / "é è", files)
        if form != "folder":
            source = write_zip(tmp_path / "archive.zip", files)
        if form == "zip in zip":
            source = write_zip(tmp_path / "outer.zip", {"inner.zip": source.read_bytes()})
        added = data_set.add(tmp_path / "data", source)
        found = counts(data_set, tmp_path / "data")
        assert {name: added.new[name] for name in found} == found
    root = data_set.fetch(tmp_path / "data")
    table = data_set.table(root)
    assert table.digest() == expected.digest()
    assert all((root / path).is_file() for path in table.paths)
    assert {"sketch", "image"} == set(table.modality)


def test_its_own_layout_is_one_that_it_knows(data_set, files, tmp_path):
    known = 0
    for path in files:
        if (found := part_of(f"a/b/{path}", data_set.parts)) is not None:
            part, place = found
            again = part_of(f"any/where/{place}", data_set.parts)
            assert again is not None
            assert (again[0].name, key_of(again[1])) == (part.name, key_of(place))
            known += 1
    assert known >= 10


def test_adding_again_changes_nothing(data_set, files, tmp_path):
    source = write_zip(tmp_path / "a.zip", files)
    first = data_set.add(tmp_path / "data", source)
    before = all_files(tmp_path / "data")
    second = data_set.add(tmp_path / "data", source)
    assert (second.known, second.new, second.place) == (sum(first.new.values()), {}, None)
    assert all_files(tmp_path / "data") == before


def test_halves_add_up(data_set, files, tmp_path):
    """A missing half is told, with where to get it, until the other half is added."""
    parts = [part for part in data_set.parts if part.modality == "sketch"]
    sketches = {path: c for path, c in files.items() if part_of(path, parts)}
    data_set.add(tmp_path / "data", write_zip(tmp_path / "a.zip", sketches))
    status = data_set.status(tmp_path / "data")
    assert status.state == "partly"
    missing = {part.name for part in data_set.needed if part.modality != "sketch"}
    assert {part.name for part in status.missing} == missing
    with pytest.raises(DataUnavailableError) as error:
        data_set.fetch(tmp_path / "data", SILENT)
    for part in missing:
        assert f"Missing: {part}" in str(error.value)
    assert f"cppcl data add {data_set.name}" in str(error.value)
    rest = {path: c for path, c in files.items() if path not in sketches}
    data_set.add(tmp_path / "data", write_folder(tmp_path / "b", rest))
    assert data_set.status(tmp_path / "data").state == "complete"
    assert data_set.fetch(tmp_path / "data", SILENT) == tmp_path / "data" / data_set.name


def test_another_data_sets_archive_is_refused(data_set, name, tmp_path):
    other = NAMES[NAMES.index(name) - 1] if name != "qmul" else "pacs"
    source = write_zip(tmp_path / "other.zip", OFFICIAL[other]())
    if name.startswith("tuberlin"):
        source = write_zip(tmp_path / "other.zip", OFFICIAL["pacs"]())
    with pytest.raises(InputError, match=r"other\.zip holds nothing of this data set, which is"):
        data_set.add(tmp_path / "data", source)
    assert all_files(tmp_path / "data") == [f"{name}/.lock"]


@pytest.mark.parametrize("damage", ["cut", "flipped", "listing"])
def test_a_damaged_archive_leaves_nothing(damage, data_set, files, name, tmp_path):
    content = bytearray(write_zip(tmp_path / "a.zip", files).read_bytes())
    if damage == "cut":
        del content[len(content) // 2 :]
    elif damage == "listing":
        content = content.replace(b"PK\x01\x02", b"PK\x01\x03")
    else:
        last = next(c for path, c in reversed(files.items()) if part_of(path, data_set.parts))
        at = content.index(last) + len(last) // 2
        content[at] ^= 0xFF
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(InputError, match="get it again"):
        data_set.add(tmp_path / "data", tmp_path / "a.zip")
    assert all_files(tmp_path / "data") == [f"{name}/.lock"]


def test_a_full_disk_leaves_nothing(data_set, files, name, tmp_path, monkeypatch):
    source = write_zip(tmp_path / "a.zip", files)
    written = 0

    def write_some(member, target, limit):
        nonlocal written
        written += 1
        if written > 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with member.open() as file:
            target.write_bytes(content := file.read())
        return content[:16]

    monkeypatch.setattr("cppcl.datasets.acquisition.adding.copy", write_some)
    with pytest.raises(DiskFullError, match=r"the disk is full.*nothing was added"):
        data_set.add(tmp_path / "data", source)
    assert all_files(tmp_path / "data") == [f"{name}/.lock"]


def test_a_read_only_data_folder_is_used_but_not_changed(
    data_set, files, name, tmp_path, monkeypatch
):
    data = tmp_path / "data"
    data_set.add(data, write_zip(tmp_path / "a.zip", files))
    before = data_set.table(data / name)

    def refuse(*arguments, **options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    open_path = Path.open

    def open_to_read(path, mode="r", *arguments, **options):
        return open_path(path, mode, *arguments, **options) if "r" in mode else refuse()

    with monkeypatch.context() as patch:
        for function in ("mkdir", "unlink", "rename", "replace", "chmod", "write_text"):
            patch.setattr(Path, function, refuse)
        patch.setattr(Path, "open", open_to_read)
        patch.setattr("tempfile.mkdtemp", refuse)
        assert data_set.table(data_set.fetch(data)) == before
        assert data_set.status(data).state == "complete"
        with pytest.raises(
            DataUnavailableError, match=r"not allowed to write there .* CPPCL_DATA"
        ):
            data_set.add(data, tmp_path / "a.zip")


def test_counts_that_differ_are_told(data_set, files, tmp_path):
    data_set.add(tmp_path / "data", write_zip(tmp_path / "a.zip", files))
    found = data_set.findings(data_set.fetch(tmp_path / "data"))
    for part in data_set.needed:
        n = counts(data_set, tmp_path / "data")[part.name]
        expected = f"{part.name}: {n:,} of {part.expected:,} files are here."
        assert (expected in found) == (n != part.expected)


def sketch_files(data_set, files):
    sketches = [part for part in data_set.parts if part.modality == "sketch"]
    return [path for path in files if part_of(path, sketches)]


@pytest.mark.parametrize("name", OF_SEVERAL_CLASSES, indirect=True)
def test_a_class_without_images_is_told(data_set, files, name, tmp_path):
    source = write_folder(tmp_path / "plain", files)
    data_set.add(tmp_path / "data", source)
    whole = data_set.table(data_set.fetch(tmp_path / "data"))
    shutil.rmtree(tmp_path / "data")
    label = sorted(whole.column("labels", "image"))[0]
    gone = {
        (tmp_path / "data" / name / path).name
        for path, m, x in zip(whole.paths, whole.modality, whole.labels, strict=True)
        if m == "image" and x == label
    }
    images = [part for part in data_set.parts if part.modality == "image"]
    for path in files:
        found = part_of(path, images)
        if (
            found
            and Path(found[1]).name in gone
            and label.replace(" ", "_")[:3] in path.replace(" ", "_").replace("Images", "")
        ):
            (source / path).unlink()
    if name == "flickr15k":
        shutil.rmtree(source / "images/source/big_ben")
        shutil.rmtree(source / "images/source/london_bridge")
        label = "03 big_ben"
    if name == "qmul":
        for path in (source / "VOCdevkit/VOC2010/JPEGImages").glob("2008_000*"):
            path.unlink()
    data_set.add(tmp_path / "data", source)
    found = data_set.findings(data_set.fetch(tmp_path / "data"))
    assert any(label in line and "but no image" in line for line in found), found
    assert label not in data_set.table(tmp_path / "data" / name).column("labels", "image")


def test_the_same_sample_in_two_folders_is_told(name, files, tmp_path):
    write_folder(tmp_path / "root" / "a", files)
    write_folder(tmp_path / "root" / "b", files)
    data_set = offline(name, root=tmp_path / "root")
    plain = offline(name, root=tmp_path / "root" / "a")
    table = data_set.table(data_set.fetch(tmp_path))
    assert table.digest() == plain.table(plain.fetch(tmp_path)).digest()
    assert any("another one has the same name" in f for f in data_set.findings(tmp_path / "root"))


def test_versions_are_not_mixed(data_set, files, name, tmp_path):
    paths = sketch_files(data_set, files)
    size = (200, 250) if name == "cufs" else (8, 6)
    changed = {path: png(60_000 + k, size) for k, path in enumerate(paths)}
    half = {path: files[path] for path in paths[::2]}
    data_set.add(tmp_path / "data", write_zip(tmp_path / "a.zip", half))
    before = all_files(tmp_path / "data")
    with pytest.raises(InputError, match="two versions would be mixed"):
        data_set.add(tmp_path / "data", write_zip(tmp_path / "b.zip", changed))
    assert all_files(tmp_path / "data") == before
    # A version that brings nothing new is left aside, and said to be.
    only = {path: changed[path] for path in half}
    added = data_set.add(tmp_path / "data", write_zip(tmp_path / "c.zip", only))
    assert "other than those of the same name here" in added.findings()[0]
    assert all_files(tmp_path / "data") == before


def test_files_that_are_no_pictures_are_left_out(data_set, files, tmp_path):
    first, *_ = sketch_files(data_set, files)
    pointer = b"version https://git-lfs.github.com/spec/v1\n"
    added = data_set.add(
        tmp_path / "data", write_zip(tmp_path / "a.zip", files | {first: pointer})
    )
    assert len(added.no_pictures) == 1
    assert "1 file named as pictures but holding something else" in " ".join(added.findings())


def test_links_in_archives_are_not_followed(data_set, files, tmp_path):
    import tarfile

    first, *others = sketch_files(data_set, files)
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        entry = tarfile.TarInfo(first)
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
        for path in others:
            write_folder(tmp_path / "plain", {path: files[path]})
            archive.add(tmp_path / "plain" / path, path)
    added = data_set.add(tmp_path / "data", tmp_path / "a.tar")
    assert sum(added.new.values()) == len(others)
    assert [path for path in added.others if path.endswith(first)]
    assert not any(p.is_symlink() for p in (tmp_path / "data").rglob("*"))


def test_a_folder_can_be_used_where_it_lies(data_set, files, name, tmp_path):
    source = write_folder(tmp_path / "mine", files)
    added = data_set.add(tmp_path / "data", source, link=True)
    assert added.place == tmp_path / "data" / name / "mine"
    assert added.place.is_symlink()
    copied = offline(name)
    copied.add(tmp_path / "other", source)
    table = data_set.table(data_set.fetch(tmp_path / "data"))
    assert table.digest() == copied.table(copied.fetch(tmp_path / "other")).digest()
    with pytest.raises(InputError, match="only a folder"):
        data_set.add(tmp_path / "data", write_zip(tmp_path / "a.zip", files), link=True)


def test_what_a_killed_process_left_is_swept(data_set, files, name, tmp_path):
    home = tmp_path / "data" / name
    write_folder(home, {".PACS.partial-x/sketch/dog/1.png": b"1", ".nested-y/a.zip": b"2"})
    with alone(home):
        assert all_files(home) == [".lock"]
    assert data_set.status(tmp_path / "data").state == "missing"


@pytest.mark.parametrize("content", ["nothing", "file"])
def test_root_must_be_a_folder_that_holds_it(content, name, tmp_path):
    root = tmp_path / "root"
    if content == "file":
        root.write_text("x")
        with pytest.raises(InputError, match="is not a folder"):
            offline(name, root=root).fetch(tmp_path)
    else:
        root.mkdir()
        with pytest.raises(DataUnavailableError, match="is not complete in"):
            offline(name, root=root).fetch(tmp_path)


@pytest.mark.parametrize("path", ["nowhere", "notes.txt"])
def test_what_is_neither_folder_nor_archive_is_refused(path, data_set, tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(InputError, match=r"does not exist|neither a folder nor a ZIP"):
        data_set.add(tmp_path / "data", tmp_path / path)


def served(name, server, *answers):
    """The data set with one archive for all parts, on the server."""
    made = DATASETS[name]
    archive = replace(
        made.parts[0].archives[0],
        file="all.zip",
        addresses=(server.put("all.zip", *answers),),
        checksum=None,
    )
    parts = tuple(replace(part, archives=(archive,)) for part in made.parts)
    return type(made.__name__, (made,), {"parts": parts})()


def test_downloaded_unpacked_and_read(name, files, server, tmp_path):
    content = write_zip(tmp_path / "a.zip", files).read_bytes()
    drop = Answer(content, headers={"ETag": '"1"'}, drop=len(content) // 2)
    data_set = served(name, server, drop, Answer(content, headers={"ETag": '"1"'}))
    said = []
    listener = Listener(log=said.append, patience=Patience(sleep=lambda seconds: None))
    root = data_set.fetch(tmp_path / "data", listener)
    assert data_set.terms in said[0]  # before anything is fetched
    assert server.sent["/all.zip"] == len(content)
    copied = offline(name)
    copied.add(tmp_path / "other", tmp_path / "a.zip")
    table = data_set.table(root)
    assert table.digest() == copied.table(copied.fetch(tmp_path / "other")).digest()
    assert all_files(root / ".downloads") == ["checksums.json"]
    n = len(server.requests)
    assert data_set.fetch(tmp_path / "data", listener) == root
    assert len(server.requests) == n


def test_a_wrong_archive_from_a_server_is_not_kept(name, server, tmp_path):
    other = write_zip(tmp_path / "o.zip", {"a.txt": b"x"}).read_bytes()
    data_set = served(name, server, Answer(other))
    with pytest.raises(InputError, match="holds nothing of this data set"):
        data_set.fetch(tmp_path / "data", SILENT)
    assert "all.zip" not in " ".join(all_files(tmp_path / "data"))


def test_a_server_without_it_says_how_to_get_it(name, server, tmp_path):
    data_set = served(name, server, Answer(status=404))
    said = []
    with pytest.raises(DataUnavailableError, match="Missing: "):
        data_set.fetch(tmp_path / "data", Listener(log=said.append, patience=Patience(tries=1)))
    assert any("404" in line for line in said)
    assert [path for path, _ in server.requests] == ["/all.zip"]


def test_pictures_are_those_of_the_archive(data_set, files, tmp_path):
    data_set.add(tmp_path / "data", write_zip(tmp_path / "a.zip", files))
    root = data_set.fetch(tmp_path / "data")
    contents = set(files.values())
    table = data_set.table(root)
    assert all((root / path).read_bytes() in contents for path in table.paths)
    assert len(set(table.sha256)) == len(table)
    assert jpeg(1) != jpeg(2)


def test_a_download_brings_only_what_is_missing(name, files, server, tmp_path):
    """Another version of what is here, which an archive of all holds too, is left alone."""
    sketches = sketch_files(DATASETS[name](), files)
    size = (200, 250) if name == "cufs" else (8, 6)
    mine = {path: png(60_000 + k, size) for k, path in enumerate(sketches[::2])}
    content = write_zip(tmp_path / "all.zip", files).read_bytes()
    data_set = served(name, server, Answer(content))
    data_set.add(tmp_path / "data", write_zip(tmp_path / "mine.zip", mine))
    root = data_set.fetch(tmp_path / "data", SILENT)
    assert data_set.status(tmp_path / "data").state == "complete"
    table = data_set.table(root)
    held = {(root / p).read_bytes() for p in table.column("paths", "sketch")}
    assert held <= set(mine.values())


def test_a_mirror_is_given_by_its_address(server, tmp_path):
    name, files = "quickdraw-ext", OFFICIAL["quickdraw-ext"]()
    content = write_zip(tmp_path / "a.zip", files).read_bytes()
    address = server.put("my%20copy.zip", Answer(content))
    home = offline(name).fetch_from(tmp_path / "data", address, SILENT)
    assert offline(name).status(tmp_path / "data").state == "complete"
    assert all_files(home / ".downloads") == ["checksums.json"]
    said = " ".join(offline(name).how_to_get(offline(name).status(tmp_path / "empty")))
    assert f"cppcl data get {name} --from ADDRESS" in said
    for wrong in ("a.zip", "http://host/file?id=7"):
        with pytest.raises(InputError, match="is no address of a ZIP or TAR archive"):
            offline(name).fetch_from(tmp_path / "data", wrong, SILENT)


def test_counts_of_unseen_classes_that_differ_are_told(tmp_path):
    root = write_folder(tmp_path, OFFICIAL["sketchy-ext"]())
    found = " ".join(DATASETS["sketchy-ext"](root=root).findings(root))
    assert (
        "sketchy-ext-25: 24 sketches and 18 photos of its 25 unseen classes are here; "
        "publications count 15,229 and 17,101."
    ) in found
    assert "sketchy-ext-21: no pictures of cabin, cow" in found


@pytest.mark.parametrize("label", [os.fsdecode(b"ca\xff"), "c" * 300])
def test_names_that_no_file_or_text_can_have_are_left_out(label, tmp_path):
    data_set = offline("sketchy-ext", extended=False)
    files = OFFICIAL["sketchy-ext"]()
    some = next(name for name in files if part_of(name, data_set.parts[:1]))
    folder, _, name = some.rpartition("/")
    odd = f"{folder.rpartition('/')[0]}/{label}/{name}"
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w") as tar:
        for each, content in {**files, odd: files[some]}.items():
            entry = tarfile.TarInfo(each)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    added = data_set.add(tmp_path / "data", archive)
    "\n".join(added.findings()).encode()
    assert any(("ca\\xff" in other) or ("ccc" in other) for other in added.others)
    table = data_set.table(data_set.home(tmp_path / "data"))
    assert not any(label in i for i in table.ids)
    if len(label) < 9:
        place = tmp_path / "plain" / "sketch" / label
        place.mkdir(parents=True)
        write_folder(tmp_path / "plain", files)
        (place / name).write_bytes(files[some])
        there = offline("sketchy-ext", extended=False, root=tmp_path / "plain")
        assert not any(label in i for i in there.table(tmp_path / "plain").ids)
