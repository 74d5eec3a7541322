"""Add the files of an archive or folder that belong to a data set to its folder."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cppcl.datasets.acquisition.archives import (
    ARCHIVE_SUFFIXES,
    READ_ERRORS,
    Limits,
    Member,
    copy,
    is_archive,
    members,
    same_content,
)
from cppcl.datasets.acquisition.download import DiskErrors, check_room
from cppcl.datasets.acquisition.layout import (
    Part,
    can_be_kept,
    check_source,
    first_paths,
    is_picture,
    key_of,
    part_of,
    picture_size,
    read_layout,
    whole_name,
)
from cppcl.datasets.acquisition.mirrors import Listener
from cppcl.datasets.files import made_whole, printable
from cppcl.errors import InputError
from cppcl.validation import counted

_TELL_EVERY = 50


@dataclass
class Added:
    """What adding an archive or folder changed.

    Parameters
    ----------
    new : Counter of str
        Files that were put in place, by the name of the part.
    known : int
        Files that were there before, with the same content.
    differing : dict of str to list of str
        Files that are there with another content, which stays, by the name of the part.
    others : list of str
        Files that belong to no part, links among them.
    other_sizes : list of str
        Pictures of another size than the part's.
    no_pictures : list of str
        Files named as pictures whose content is something else.
    place : Path or None
        Folder that holds the new files; None where there are none.
    """

    new: Counter[str] = field(default_factory=Counter)
    known: int = 0
    differing: dict[str, list[str]] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    other_sizes: list[str] = field(default_factory=list)
    no_pictures: list[str] = field(default_factory=list)
    place: Path | None = None

    def findings(self) -> list[str]:
        """Sentences on what did not match."""
        differing = [name for names in self.differing.values() for name in names]
        lists = (
            (differing, "file", "other than those of the same name here, which stay"),
            (self.other_sizes, "picture", "of another size than the data set's left out"),
            (self.no_pictures, "file", "named as pictures but holding something else left out"),
            (self.others, "other file", "ignored"),
        )
        return [
            f"{counted(len(names), noun)} {label}: {first_paths(names)}."
            for names, noun, label in lists
            if names
        ]


def add_files(
    source: Path,
    home: Path,
    parts: Sequence[Part],
    *,
    listener: Listener,
    limits: Limits | None = None,
) -> Added:
    """Copy what belongs to a data set from an archive or folder; all of it or nothing.

    Parameters
    ----------
    source : Path
        Archive or folder, in any layout that the parts know; archives in it are opened.
    home : Path
        Folder of the data set.
    parts : sequence of Part
        What is looked for.
    listener : Listener
        Its `progress` is called with the bytes read.
    limits : Limits, optional
        What an archive may hold.

    Raises
    ------
    InputError
        `source` holds nothing of the data set, is damaged, or holds another version of files
        that are here.
    DiskFullError
        There is no room.
    """
    check_source(source, parts)
    limits = limits or Limits()
    present = _present(home, parts)
    added = Added()
    target = _bundle(home, source)
    total = max(_declared(source, parts), source.stat().st_size if source.is_file() else 0)
    check_room(home, total)
    with (
        DiskErrors(home, "nothing was added"),
        made_whole(target, unless=lambda: not added.new) as partial,
        tempfile.TemporaryDirectory(prefix=".nested-", dir=home) as scratch,
    ):
        n_bytes = n_files = 0
        for member in members(source, whole_name(source), Path(scratch), limits=limits):
            usable = not member.link and can_be_kept(member.name)
            known = part_of(member.name, parts) if usable else None
            if known is None:
                added.others.append(printable(member.name))
                continue
            part, place = known
            key = key_of(place)
            if part.size is not None and _size(member) not in (None, part.size):
                added.other_sizes.append(member.name)
                continue
            if key in present:
                if same_content(member, present[key]):
                    added.known += 1
                else:
                    added.differing.setdefault(part.name, []).append(member.name)
                continue
            written = _write(member, partial / place, part, limits.n_bytes - n_bytes, added)
            n_bytes += written
            n_files += 1
            if written and n_files % _TELL_EVERY == 0:
                listener.progress(f"unpacking {source.name}", n_bytes, total)
            if written:
                present[key] = partial / place
                added.new[part.name] += 1
        _check(source, added, parts)
    if added.new:
        added.place = target
    return added


def link_folder(source: Path, home: Path, parts: Sequence[Part]) -> Added:
    """Use a folder in place, through a symbolic link.

    Raises
    ------
    InputError
        `source` is no folder, holds nothing of the data set, or files that are here already.
    """
    check_source(source, parts)
    if not source.is_dir():
        raise InputError(f"{source} is an archive; only a folder can be used in place")
    here = read_layout(source, parts)
    present = _present(home, parts)
    new = {name: set(keys) - set(present) for name, keys in here.files.items()}
    added = Added(
        new=Counter({name: len(keys) for name, keys in new.items() if keys}),
        known=sum(len(keys) - len(new[name]) for name, keys in here.files.items()),
        others=list(here.others),
        other_sizes=list(here.other_sizes),
    )
    _check(source, added, parts)
    if added.new:
        home.mkdir(parents=True, exist_ok=True)
        added.place = _bundle(home, source)
        with DiskErrors(home, "nothing was added"):
            added.place.symlink_to(source.absolute(), target_is_directory=True)
        if len(_present(home, parts)) != len(present) + added.new.total():
            added.place.unlink()
            raise InputError(
                f"{source} is recognised by the folders around it, which a link does not keep; "
                "give a folder further up"
            )
    return added


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Lock the folder of a data set against other processes; remove leftovers of killed ones."""
    import fcntl

    with DiskErrors(home, "nothing was changed"):
        home.mkdir(parents=True, exist_ok=True)
        lock = (home / ".lock").open("w")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for stale in (*home.glob(".*.partial-*"), *home.glob(".nested-*")):
            shutil.rmtree(stale, ignore_errors=True)
        yield


def _present(home: Path, parts: Sequence[Part]) -> dict[str, Path]:
    if not home.is_dir():
        return {}
    files = read_layout(home, parts).files
    return {key: home / path for keys in files.values() for key, path in keys.items()}


def _bundle(home: Path, source: Path) -> Path:
    """A new folder for the files of an archive, named after it."""
    name = source.absolute().name
    for suffix in ARCHIVE_SUFFIXES:
        if name.casefold().endswith(suffix):
            name = name[: -len(suffix)]
            break
    name = re.sub(r"[^\w.+-]+", "_", name).strip("._") or "added"
    target, number = home / name, 1
    while target.exists() or target.is_symlink():
        number += 1
        target = home / f"{name}-{number}"
    return target


def _declared(source: Path, parts: Sequence[Part]) -> int:
    """Bytes that the wanted files of a ZIP archive say they have; 0 for anything else."""
    if not is_archive(source.name) or not zipfile.is_zipfile(source):
        return 0
    prefix = whole_name(source)
    try:
        with zipfile.ZipFile(source) as archive:
            entries = archive.infolist()
    except READ_ERRORS:  # reported when it is read
        return 0
    return sum(e.file_size for e in entries if part_of(f"{prefix}/{e.filename}", parts))


def _size(member: Member) -> tuple[int, int] | None:
    """Width and height of a picture; None if it is none or damaged, which copying reports."""
    try:
        with member.open() as file:
            return picture_size(file)
    except READ_ERRORS:
        return None


def _write(member: Member, target: Path, part: Part, limit: int, added: Added) -> int:
    """Write one file and return its size; 0 if it was left out."""
    target.parent.mkdir(parents=True, exist_ok=True)
    start = copy(member, target, limit)
    if part.modality is not None and not is_picture(start):
        added.no_pictures.append(member.name)
        target.unlink()
        return 0
    return target.stat().st_size


def _check(source: Path, added: Added, parts: Sequence[Part]) -> None:
    for name, differing in added.differing.items():
        if added.new[name]:
            raise InputError(
                f"{source}: of {name}, {counted(added.new[name], 'file')} would be new and "
                f"{len(differing)} other than those of the same name ({first_paths(differing)}): "
                "two versions would be mixed, so nothing was added. Give one version, or "
                "remove the one here"
            )
    if not added.new and not added.known and not added.differing:
        wanted = "; ".join(f"{part.expected:,} files of {part.name}" for part in parts)
        left_out = " ".join(added.findings())
        raise InputError(
            f"{source} holds nothing of this data set, which is {wanted}. {left_out}".strip()
        )
