"""Archives are read without being trusted."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
import zlib

import pytest

from cppcl.datasets.acquisition.archives import Limits, copy, members, same_content
from cppcl.datasets.acquisition.layout import Part, by_pattern, read_layout
from cppcl.errors import InputError
from tests.cppcl.datasets.conftest import write_folder, write_zip

FILES = {"top/a.txt": b"alpha", "top/ünder/b.txt": b"beta" * 1000, "c.txt": b""}


def tarred(path, files, mode):
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def content_of(source, scratch, **limits):
    """Everything that an archive holds."""
    scratch.mkdir(exist_ok=True)
    found = {}
    for member in members(source, "x", scratch, limits=Limits(**limits)):
        if not member.link:
            target = scratch / "member"
            copy(member, target, 10**6)
            found[member.name.removeprefix("x/")] = target.read_bytes()
            target.unlink()
    assert list(scratch.iterdir()) == []
    return found


def write_archive(path, files, kind):
    if kind == "folder":
        return write_folder(path, files)
    if kind == "zip":
        return write_zip(path.with_suffix(".zip"), files)
    return tarred(path.with_name(f"{path.name}.{kind}"), files, f"w:{kind.removeprefix('tar.')}")


KINDS = ("folder", "zip", "tar", "tar.gz", "tar.bz2", "tar.xz")


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_hold_the_same(kind, tmp_path):
    source = write_archive(tmp_path / "a", FILES, kind)
    assert content_of(source, tmp_path / "scratch") == FILES


@pytest.mark.parametrize("kind", KINDS)
def test_archives_in_archives_are_opened(kind, tmp_path):
    inner = write_zip(tmp_path / "inner.zip", FILES).read_bytes()
    middle = tarred(tmp_path / "middle.tar.gz", {"d/inner.zip": inner}, "w:gz").read_bytes()
    outer = {"e/middle.tar.gz": middle, "f.txt": b"f"}
    source = write_archive(tmp_path / "outer", outer, kind)
    expected = {f"e/middle.tar.gz/d/inner.zip/{name}": c for name, c in FILES.items()}
    assert content_of(source, tmp_path / "scratch") == {**expected, "f.txt": b"f"}


def test_depth_is_bounded(tmp_path):
    content = b"end"
    for level in range(6):
        content = write_zip(tmp_path / f"{level}.zip", {f"{level}.zip": content}).read_bytes()
    found = content_of(tmp_path / "5.zip", tmp_path / "scratch")
    assert list(found) == ["5.zip/4.zip/3.zip/2.zip"]


@pytest.mark.parametrize(
    ("kind", "name"),
    [(k, n) for k in ("zip", "tar") for n in ("../out", "a/../../out", "/etc/out", "C:/out")]
    + [("zip", "..\\out")],  # in a TAR archive a backslash is a letter
)
def test_names_that_lead_out_are_refused(kind, name, tmp_path):
    source = write_archive(tmp_path / "a", {"good": b"1", name: b"2"}, kind)
    with pytest.raises(InputError, match="leads out of the archive"):
        content_of(source, tmp_path / "scratch")


def test_links_are_told_apart(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for number, kind in enumerate((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE)):
            entry = tarfile.TarInfo(f"link{number}")
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry)
    found = [(m.name, m.link) for m in members(tmp_path / "a.tar", "x", tmp_path)]
    assert found == [("x/link0", True), ("x/link1", True)]
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        entry = zipfile.ZipInfo("link")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    assert [m.link for m in members(tmp_path / "a.zip", "x", tmp_path)] == [True]


def test_sizes_and_numbers_are_bounded(tmp_path):
    source = write_zip(tmp_path / "a.zip", FILES)
    with pytest.raises(InputError, match="more than 2 entries"):
        content_of(source, tmp_path / "scratch", n_files=2)
    for member in members(source, "x", tmp_path):
        if member.n_bytes > 1000:
            with pytest.raises(InputError, match="more than the 3999 bytes"):
                copy(member, tmp_path / "b", 3999)
            (tmp_path / "b").unlink()
            assert copy(member, tmp_path / "b", 4000) == b"beta" * 4


def test_a_nested_archive_is_bounded_too(tmp_path):
    inner = write_zip(tmp_path / "inner.zip", FILES).read_bytes()
    source = write_zip(tmp_path / "a.zip", {"inner.zip": inner})
    with pytest.raises(InputError, match="more than the 100 bytes"):
        content_of(source, tmp_path / "scratch", n_bytes=100)


def damage(path, position, count=20):
    content = bytearray(path.read_bytes())
    at = int(position * len(content))
    content[at : at + count] = bytes(b ^ 0xFF for b in content[at : at + count])
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.bz2", "tar.xz"])
@pytest.mark.parametrize("how", ["flipped", "cut"])
def test_damage_is_told(kind, how, tmp_path):
    noise = bytes(zlib.crc32(bytes([k % 256, k // 256])) % 256 for k in range(60_000))
    source = write_archive(tmp_path / "a", {"noise": noise, "more": noise[::-1]}, kind)
    if how == "flipped":
        damage(source, 0.4)
    else:
        source.write_bytes(source.read_bytes()[: source.stat().st_size // 2])
    with pytest.raises(InputError, match=r"get it again"):
        content_of(source, tmp_path / "scratch")


def test_what_is_no_archive_is_told(tmp_path):
    for name in ("a.zip", "b.tar", "c.tar.gz"):
        (tmp_path / name).write_bytes(b"<html>not found</html>")
        with pytest.raises(InputError, match="neither a ZIP nor a TAR archive"):
            content_of(tmp_path / name, tmp_path / "scratch")


def test_a_password_is_told(tmp_path):
    source = write_zip(tmp_path / "a.zip", {"a": b"1"})
    content = bytearray(source.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    source.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.zip.*password|x/a.*password"):
        content_of(source, tmp_path / "scratch")


def test_names_in_utf_8_without_saying_so(tmp_path):
    source = write_zip(tmp_path / "a.zip", {"Zürich/é.png": b"1"})
    content = bytearray(source.read_bytes())
    content[7] &= ~8
    content[content.index(b"PK\x01\x02") + 9] &= ~8
    source.write_bytes(content)
    assert content_of(source, tmp_path / "scratch") == {"Zürich/é.png": b"1"}


def test_backslashes_divide_folders_in_zip(tmp_path):
    source = write_zip(tmp_path / "a.zip", {"a\\b.png": b"1"})
    assert content_of(source, tmp_path / "scratch") == {"a/b.png": b"1"}


@pytest.mark.parametrize("kind", ["folder", "zip", "tar.gz"])
def test_hidden_and_system_files_are_passed_over(kind, tmp_path):
    files = {"a": b"1", ".DS_Store": b"2", "__MACOSX/b/._x.png": b"3", ".git/y": b"4"}
    source = write_archive(tmp_path / ".cache", {**files, "b/Thumbs.db": b"5"}, kind)
    assert content_of(source, tmp_path / "scratch") == {"a": b"1"}


def test_contents_are_compared(tmp_path):
    folder = write_folder(tmp_path / "f", {"a": b"12345"})
    (member,) = members(folder, "x", tmp_path)
    for other, same in ((b"12345", True), (b"1234", False), (b"123456", False), (b"12346", False)):
        (tmp_path / "other").write_bytes(other)
        assert same_content(member, tmp_path / "other") is same


@pytest.mark.parametrize("read", ["members", "layout"])
def test_a_link_to_nowhere_in_a_folder_is_named(read, tmp_path):
    folder = write_folder(tmp_path / "x", {"a.txt": b"a"})
    (folder / "gone.txt").symlink_to(tmp_path / "nowhere")
    part = Part("texts", "image", by_pattern(r"(?P<n>[^/]+\.txt)", to="{n}"), 2, size=(1, 1))
    readers = {
        "members": lambda: list(members(folder, "x", tmp_path)),
        "layout": lambda: read_layout(folder, [part]),
    }
    with pytest.raises(InputError, match=r"gone\.txt: no such file, or a link to one that is"):
        readers[read]()
