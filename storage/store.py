"""The store: a folder of artifacts, addressed by what they were made from."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from storage import collection, verification
from storage.artifact import Artifact
from storage.errors import DamagedArtifactError, MissingArtifactError, UnknownReferenceError
from storage.files import TEMPORARY_SUFFIX, discard, locked, publish
from storage.recipe import KEY_LENGTH, Recipe, Reference, check_stage, is_key, is_stage
from storage.remote import exchange
from storage.remote.objects import Remote
from storage.remote.transfer import Transfer
from storage.repair import Repair, finish_sealed, repair
from storage.verification import Problem
from storage.writer import Writer

logger = logging.getLogger(__name__)


class Outcome(NamedTuple):
    """What `Store.get_or_create` returns.

    Attributes
    ----------
    artifact : Artifact
        The published artifact.
    cached : bool
        Whether it was there already (made earlier, or by a run that was waited for).
    """

    artifact: Artifact
    cached: bool


class Store:
    """Artifacts below one folder, ``<root>/<stage>/<key>/``.

    Any number of processes, on any machines that share the file system, may use a store at the
    same time. Reading needs no write permission.

    Parameters
    ----------
    root : str or Path
        The folder; it is made by the first write.
    remote : Remote, optional
        Keeps artifacts elsewhere too: what is not here is fetched from it, and what is made here
        is sent to it. Where that fails, work goes on with what is here.
    remark : callable, optional
        Is told, in a line, where work goes on without the remote; by default, a warning is logged.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        remote: Remote | None = None,
        remark: Callable[[str], None] = logger.warning,
    ) -> None:
        self.root, self.remote, self.remark = Path(root), remote, remark

    def __repr__(self) -> str:
        return f"Store({str(self.root)!r})"

    def path(self, reference: Reference) -> Path:
        """Return where the artifact of `reference` lies, or would."""
        return self.root / reference.stage / reference.key

    def find(self, reference: Reference) -> Artifact | None:
        """Return the artifact, or None if it was not made yet; fetch it if the remote has it.

        Raises
        ------
        DamagedArtifactError
            It is here, but its manifest is damaged.
        StoreAccessError
            It is to be fetched, and the disk is full or may not be written.
        """
        return self.find_here(reference) or exchange.fetched(self, reference)

    def find_here(self, reference: Reference) -> Artifact | None:
        """Return the artifact, or None if it is not in this folder, whatever the remote has.

        Raises
        ------
        DamagedArtifactError
            It is here, but its manifest is damaged.
        """
        artifact = Artifact(reference, self.path(reference))
        if not artifact.path.is_dir():
            return None
        try:
            _ = artifact.manifest
        except DamagedArtifactError:
            if not artifact.path.is_dir():  # collected this very moment
                return None
            raise
        return artifact

    def open(self, reference: Reference) -> Artifact:
        """Return the artifact.

        Raises
        ------
        MissingArtifactError
            It is not there; the message names the folder and the stage to run.
        DamagedArtifactError
            It is there, but its manifest is damaged.
        """
        artifact = self.find(reference)
        if artifact is None:
            message = (
                f"{reference} is not in the store: {self.path(reference)} does not exist. Make it "
                f"with 'cppcl run EXPERIMENT --from {reference.stage}', or see what is there with "
                f"'cppcl store ls'."
            )
            if self.remote:
                message += f" Nor was it to be had from {self.remote.url}."
            raise MissingArtifactError(message)
        return artifact

    def resolve(self, text: str, stage: str | None = None, *, here: bool = False) -> Reference:
        """Return the one published artifact that `text` names, here or else in the remote.

        Parameters
        ----------
        text : str
            ``stage/key`` or ``key``; the key may be abbreviated while it is the only match.
        stage : str, optional
            Look only at this stage.
        here : bool
            Look only into this folder.

        Raises
        ------
        UnknownReferenceError
            Nothing matches, or more than one artifact; the message lists which.
        RemoteError
            Nothing here matches, and the remote cannot be read.
        """
        before, _, prefix = text.strip().lower().rpartition("/")
        stages = {name for name in (before, stage) if name}

        def is_named(reference: Reference) -> bool:
            named = bool(prefix) and reference.key.startswith(prefix)
            return named and stages <= {reference.stage}

        matches = [reference for reference in self.references() if is_named(reference)]
        remote = None if here else self.remote
        if not matches and remote:
            matches = [reference for reference in remote.references() if is_named(reference)]
        if len(matches) == 1:
            return matches[0]
        where = f"{self.root} or {remote.url}" if remote else str(self.root)
        if not matches:
            kind = f"{stage} artifact" if stage else "artifact"
            raise UnknownReferenceError(
                f"{text!r} names no {kind} in {where}: give a key, or the beginning of one, "
                f"as 'cppcl store ls' lists them"
            )
        listing = ", ".join(map(str, matches[:10])) + (", ..." if len(matches) > 10 else "")
        raise UnknownReferenceError(
            f"{text!r} names {len(matches)} artifacts in {where}: {listing}; give more of the "
            f"{KEY_LENGTH} digits of the key"
        )

    def get_or_create(
        self, recipe: Recipe, create: Callable[[Writer], None], *, force: bool = False
    ) -> Outcome:
        """Return the artifact of `recipe`, making it if it is not there.

        Of several runs that want the same artifact at the same time one makes it and the others
        wait for it, without a time limit; the lock goes when its holder ends, however it ends.
        If `create` raises or is killed, what it wrote stays in ``<key>.partial`` and the next
        call goes on from there.

        Parameters
        ----------
        recipe : Recipe
            What to make it from.
        create : callable
            Given a `Writer`, puts arrays and files; must depend on `recipe` alone.
        force : bool
            Make it anew from the beginning and replace the one there in one step.

        Raises
        ------
        BlockError, RecipeError
            `create` left blocks out or gave something that cannot be stored.
        DamagedArtifactError
            The artifact there is damaged, or a block changed between writing and publishing.
        StoreAccessError
            The disk is full or may not be written.
        """
        reference = recipe.reference
        if not force and (found := self.find(reference)):
            return Outcome(found, cached=True)
        with self.in_use(), locked(self.lock(reference)):
            if not force and (found := self.find_here(reference)):
                return Outcome(found, cached=True)
            destination = self.path(reference)
            partial = destination.with_name(reference.key + TEMPORARY_SUFFIX)
            if force and partial.exists():
                discard(partial, self.trash)
            if not finish_sealed(reference, partial):
                writer = Writer(partial, recipe)
                create(writer)
                writer.seal()
            publish(partial, destination, self.trash)
        exchange.sent(self, reference)
        return Outcome(self.open(reference), cached=False)

    def lock(self, reference: Reference) -> Path:
        """Return the file that whoever makes or changes an artifact holds."""
        return self.root / "locks" / f"{reference.stage}-{reference.key}.lock"

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the store from being collected, for example between the stages of a run.

        Shared by any number of runs; freed by the operating system if the process is killed.
        """
        with locked(self.run_lock, shared=True):
            yield

    def references(self, stage: str | None = None) -> Iterator[Reference]:
        """Iterate over what is published, by stage and key, without opening anything."""
        if stage is not None:
            check_stage(stage)
        if not self.root.is_dir():
            return
        for folder in sorted(self.root.iterdir()):
            if is_stage(folder.name) and folder.is_dir() and stage in (None, folder.name):
                for path in sorted(folder.iterdir()):
                    if is_key(path.name) and path.is_dir():
                        yield Reference(folder.name, path.name)

    def artifacts(self, stage: str | None = None) -> Iterator[Artifact]:
        """Iterate over the published artifacts, by stage and key.

        Damaged ones are included: asking one for its manifest raises `DamagedArtifactError`.
        """
        for reference in self.references(stage):
            yield Artifact(reference, self.path(reference))

    def verify(self, references: Iterable[Reference] | None = None) -> list[Problem]:
        """Check every byte of the given artifacts, or of all, and return what is wrong."""
        chosen = list(self.references()) if references is None else list(references)
        return [p for r in chosen for p in verification.problems(Artifact(r, self.path(r)))]

    def repair(self, references: Iterable[Reference] | None = None) -> list[Repair]:
        """Mend what `verify` finds in the given artifacts, or in all.

        Files that do not belong there are removed, and Zarr metadata is written anew: then the
        artifact is whole. Of an artifact that was made in blocks, those that are broken are
        removed and it becomes an unfinished one, so that the next run of its stage makes those
        blocks alone. Any other is removed, and the next run makes it again.

        Raises
        ------
        StoreAccessError
            The disk is full or may not be written.
        """
        chosen = list(self.references()) if references is None else list(references)
        done = []
        with self.in_use():
            for reference in chosen:
                with locked(self.lock(reference)):
                    if mended := repair(self, reference):
                        done.append(mended)
        return done

    def push(
        self, references: Iterable[Reference] | None = None, *, replace: bool = False
    ) -> Iterator[Transfer]:
        """Send artifacts to the remote, or all, each after what it was made from.

        What is there already is not sent, nor is any file that an interrupted call sent.

        Parameters
        ----------
        references : iterable of Reference, optional
            All of this store by default.
        replace : bool
            Send these anew although they are there, for example because they are damaged there.

        Raises
        ------
        RemoteError
            The remote cannot be reached, or refuses.
        DamagedArtifactError
            An artifact is damaged here.
        """
        chosen = self.references() if references is None else references
        return exchange.push(self, chosen, replace=replace)

    def pull(self, references: Iterable[Reference]) -> Iterator[Transfer]:
        """Fetch artifacts from the remote, each after what it was made from.

        Every byte is checked before an artifact is published here. What an interrupted call has
        fetched is not fetched again.

        Raises
        ------
        MissingArtifactError
            One of them is not in the remote.
        RemoteError
            The remote cannot be reached, or refuses.
        DamagedArtifactError
            Objects of the remote are missing or damaged; the message names them.
        """
        return exchange.pull(self, references)

    def verify_remote(
        self, references: Iterable[Reference] | None = None
    ) -> Iterator[tuple[Reference, list[Problem]]]:
        """Read every byte that the remote has of artifacts, or of all; give what is wrong.

        Raises
        ------
        MissingArtifactError
            One of those that are given is not in the remote.
        RemoteError
            The remote cannot be reached, or refuses.
        """
        return exchange.verify(self, references)

    def gc(self, keep: Iterable[Reference], *, dry_run: bool = False) -> list[Path]:
        """Remove what nothing in `keep` was made from, and what interrupted runs left.

        Parameters
        ----------
        keep : iterable of Reference
            Stay, with everything they were made from, directly or not.
        dry_run : bool
            Remove nothing, only say what would be removed.

        Returns
        -------
        list of Path
            The folders removed, or to be removed.

        Raises
        ------
        StoreInUseError
            A run is using the store.
        DamagedArtifactError
            What an artifact to keep was made from cannot be read.
        """
        return collection.collect(self, keep, dry_run=dry_run)

    @property
    def trash(self) -> Path:
        """Where folders go, by one rename, before they are deleted."""
        return self.root / ".trash"

    @property
    def run_lock(self) -> Path:
        """Held, shared, by every run that writes and, alone, by the garbage collection."""
        return self.root / "locks" / "runs.lock"
