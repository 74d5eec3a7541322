"""Base of the published data sets: downloaded or added by hand, checked and read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from cppcl.datasets.acquisition.adding import Added, add_files, alone, link_folder
from cppcl.datasets.acquisition.archives import is_archive
from cppcl.datasets.acquisition.download import DiskFullError
from cppcl.datasets.acquisition.layout import Contents, Part, first_paths, read_layout
from cppcl.datasets.acquisition.mirrors import Archive, Listener, obtain
from cppcl.datasets.files import file_sha256
from cppcl.datasets.folder import of_one_modality
from cppcl.datasets.table import SampleTable
from cppcl.errors import DataUnavailableError, InputError
from cppcl.modality import MODALITIES, Modality
from cppcl.validation import counted

DOWNLOADS = ".downloads"


@dataclass(frozen=True)
class SampleRow:
    """Key, label and group of one picture."""

    key: str
    label: str
    group: str


@dataclass(frozen=True)
class Status:
    """Which parts of a data set are present.

    Parameters
    ----------
    home : Path
        Folder where it is kept.
    found : dict of str to int
        Files by the name of the part.
    missing : tuple of Part
        Parts without any file.
    """

    home: Path
    found: dict[str, int]
    missing: tuple[Part, ...]

    @property
    def state(self) -> str:
        """``complete``, ``partly`` or ``missing``."""
        if not self.missing:
            return "complete"
        return "partly" if any(self.found.values()) else "missing"


@dataclass(frozen=True, kw_only=True)
class PublishedSet:
    """A data set that is downloaded, or added from what the user has.

    Parameters
    ----------
    root : Path, optional
        Folder that holds it, in any layout in which it is published; where None, the folder of
        its name in ``$CPPCL_DATA`` or the workspace, where it is downloaded to.

    Attributes
    ----------
    title, page, terms, citation : str
        Its name, its web page, its terms of use, and the publication to cite.
    parts : tuple of Part
        Its parts.
    remarks : tuple of str
        Differences from the publications.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    has_pictures: ClassVar[bool] = True
    title: ClassVar[str]
    page: ClassVar[str]
    terms: ClassVar[str]
    citation: ClassVar[str]
    parts: ClassVar[tuple[Part, ...]]
    remarks: ClassVar[tuple[str, ...]] = ()

    root: Path | None = None

    @property
    def licence(self) -> str:
        """Attribution and terms, for reports that show the pictures."""
        return f"{self.title}: {self.citation}. {self.terms}"

    @property
    def needed(self) -> tuple[Part, ...]:
        """Parts that these options need."""
        return self.parts

    def home(self, directory: Path) -> Path:
        """Folder that holds, or will hold, the data set."""
        return Path(self.root) if self.root is not None else Path(directory) / self.name

    def status(self, directory: Path) -> Status:
        """Count the files that are present; changes nothing."""
        home = self.home(directory)
        files = self._contents(home).files if home.is_dir() else {}
        found = {part.name: len(files.get(part.name, ())) for part in self.needed}
        return Status(home, found, tuple(p for p in self.needed if not found[p.name]))

    def check(self) -> None:
        """Refuse a `root` that is no folder; what is missing may still be downloaded."""
        if self.root is not None and not Path(self.root).is_dir():
            raise InputError(f"root {str(self.root)!r} is not a folder; give that of the data")

    def fetch(self, directory: Path, listener: Listener | None = None) -> Path:
        """Download what is missing into ``<directory>/<name>`` and unpack it.

        Raises
        ------
        DataUnavailableError
            A part is missing and no address works: the message says where to get it and where to
            put it.
        InputError
            `root` is given and is no folder.
        """
        status = self.status(directory)
        self.check()
        if self.root is None and status.missing:
            listener = listener or Listener()
            listener.log(f"{self.title}: {self.terms}")
            with alone(status.home):
                self._download(directory, listener)
            status = self.status(directory)
        if status.missing:
            raise DataUnavailableError("\n".join(self.how_to_get(status)))
        return status.home

    def fetch_from(self, directory: Path, address: str, listener: Listener | None = None) -> Path:
        """Download an archive from an address that the user knows, and add what it holds.

        Raises
        ------
        DataUnavailableError
            The address does not work.
        InputError
            The address names no file, or the archive is not of this data set.
        """
        file = PurePosixPath(unquote(urlsplit(address).path)).name
        if urlsplit(address).scheme not in ("http", "https", "ftp") or not is_archive(file):
            raise InputError(
                f"{address!r} is no address of a ZIP or TAR archive; where its name does not end "
                f"so, download it yourself and give cppcl data add {self.name} FILE"
            )
        home = self.home(directory)
        listener = listener or Listener()
        with alone(home):
            archive = obtain(Archive(file, (address,)), home / DOWNLOADS, listener)
            try:
                add_files(archive, home, self.parts, listener=listener)
            finally:
                archive.unlink()
        return home

    def add(
        self,
        directory: Path,
        source: Path,
        *,
        link: bool = False,
        listener: Listener | None = None,
    ) -> Added:
        """Put an archive or folder that the user has into ``<directory>/<name>``.

        Parameters
        ----------
        directory : Path
            Folder of all data sets.
        source : Path
            Archive or folder.
        link : bool
            Use a folder in place instead of copying its files.
        listener : Listener, optional
            Reports progress.

        Raises
        ------
        InputError
            `source` is not of this data set, damaged, or differs from what is here.
        """
        home = self.home(directory)
        with alone(home):
            if link:
                return link_folder(Path(source), home, self.parts)
            return add_files(Path(source), home, self.parts, listener=listener or Listener())

    def table(self, root: Path) -> SampleTable:
        """Return one row a picture, sketches first, ordered by key."""
        rows = list(self._rows(Path(root)))
        return SampleTable(
            ids=tuple(f"{modality}/{sample.key}" for modality, sample, _ in rows),
            sha256=tuple(file_sha256(Path(root) / path) for _, _, path in rows),
            paths=tuple(path for _, _, path in rows),
            modality=tuple(modality for modality, _, _ in rows),
            labels=tuple(sample.label for _, sample, _ in rows),
            groups=tuple(sample.group for _, sample, _ in rows),
        )

    def findings(self, root: Path) -> list[str]:
        """Counts that differ from the published ones, and files that were ignored."""
        contents = self._contents(Path(root))
        found = [
            f"{part.name}: {len(contents.files[part.name]):,} of {part.expected:,} files are here."
            for part in self.needed
            if len(contents.files[part.name]) != part.expected
        ]
        for names, noun, problem in (
            (contents.repeated, "file", "ignored, as another one has the same name"),
            (contents.other_sizes, "picture", "of another size ignored"),
        ):
            if names:
                found.append(f"{counted(len(names), noun)} {problem}: {first_paths(names)}.")
        rows = list(self._rows(Path(root)))
        found += of_one_modality("class", {(m, s.key): s.label for m, s, _ in rows})
        return found + list(self.remarks)

    def how_to_get(self, status: Status) -> list[str]:
        """Sentences that say what is missing, where to get it and where to put it."""
        lines = [f"{self.title} is not complete in {status.home}."]
        serves: dict[Archive, list[str]] = {}
        for part in status.missing:
            lines.append(f"Missing: {part.name}, {counted(part.expected, 'file')}.")
            for archive in part.archives:
                serves.setdefault(archive, []).append(part.name)
        for archive, names in serves.items():
            size = f", about {archive.n_bytes / 1e6:,.0f} MB" if archive.n_bytes else ""
            remark = f"; {archive.remark}" if archive.remark else ""
            end = ":" if archive.addresses else "."
            lines.append(f"{archive.file} has {', '.join(names)}{size}{remark}{end}")
            lines += [f"  {address}" for address in archive.addresses]
        lines += [
            f"About it: {self.page}",
            f"To put in place what you have: cppcl data add {self.name} ARCHIVE_OR_FOLDER, in any "
            "layout in which it is published; or use a folder as it is: --set root=FOLDER.",
            f"To download it from a mirror: cppcl data get {self.name} --from ADDRESS.",
        ]
        return lines

    def describe(self, part: Part, key: str) -> SampleRow:
        """Key, label and group of a picture; here ``<folder>/<label>/<name>``, no instances."""
        _, label, name = key.split("/")
        return SampleRow(f"{label}/{name}", label, "")

    def _rows(self, root: Path) -> Iterator[tuple[Modality, SampleRow, str]]:
        """Samples with their paths, in the order of the table."""
        contents = self._contents(root)
        samples = self._samples(root, contents)
        for modality in MODALITIES:
            rows = [
                (samples[key], path)
                for part in self.needed
                if part.modality == modality
                for key, path in contents.files[part.name].items()
                if key in samples
            ]
            for sample, path in sorted(rows, key=lambda row: row[0].key):
                group = sample.group or f"{modality}/{sample.key}"
                yield modality, SampleRow(sample.key, sample.label, group), path

    def _samples(self, root: Path, contents: Contents) -> dict[str, SampleRow]:
        """Samples by the key of their file; files without one are left out of the table."""
        return {
            key: self.describe(part, key)
            for part in self.needed
            if part.modality is not None
            for key in contents.files[part.name]
        }

    def _contents(self, root: Path) -> Contents:
        return read_layout(root, self.parts)

    def _download(self, directory: Path, listener: Listener) -> None:
        """Download archives until no part is missing that one of them has."""
        home = self.home(directory)
        tried: set[str] = set()
        for part in self.status(directory).missing:
            for archive in part.archives:
                missing = self.status(directory).missing
                if archive.file not in tried and part in missing:
                    tried.add(archive.file)
                    self._unpack(home, archive, missing, listener)

    def _unpack(
        self, home: Path, archive: Archive, missing: tuple[Part, ...], listener: Listener
    ) -> None:
        folder = home / DOWNLOADS
        try:
            file = obtain(archive, folder, listener)
        except DiskFullError:
            raise
        except DataUnavailableError as error:
            listener.log(str(error))
            return
        try:
            add_files(file, home, missing, listener=listener)
        except InputError:  # Another download may bring what this one did not.
            file.unlink()
            raise
        file.unlink()
