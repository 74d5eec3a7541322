"""The store: makes, finds, checks, repairs, collects and exchanges artifacts in a folder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from storage.artifact import Artifact
from storage.collection import collect
from storage.errors import MissingArtifactError, RemoteURLError, UnknownReferenceError
from storage.files import discard, identity, locked, publish
from storage.folder import StoreFolder
from storage.recipe import KEY_LENGTH, Recipe, Reference
from storage.remote import transfer
from storage.remote.objects import Remote
from storage.remote.transfer import Transfer
from storage.repair import Repair, finish_sealed, repair
from storage.verification import Problem, problems
from storage.writer import Writer

logger = logging.getLogger(__name__)


class Outcome(NamedTuple):
    """What `Store.get_or_create` returns.

    Attributes
    ----------
    artifact : Artifact
        The published artifact.
    cached : bool
        True if it was there already (made earlier, or by a run that was waited for).
    """

    artifact: Artifact
    cached: bool


class Store(StoreFolder):
    """A folder of artifacts, ``<root>/<stage>/<key>/``, and all that can be done with them.

    Any number of processes, on any machines that share the file system, may use a store at the
    same time. Reading needs no write permission.

    Parameters
    ----------
    root : str or Path
        The folder; it is made by the first write.
    remote : Remote, optional
        A second place for artifacts: those that are missing here are fetched from it, and those
        made here are sent to it. If that fails, work goes on without it.
    log : callable, optional
        Called with a line if work goes on without the remote; a warning is logged by default.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        remote: Remote | None = None,
        log: Callable[[str], None] = logger.warning,
    ) -> None:
        super().__init__(root)
        self.remote, self.log = remote, log

    def find(self, reference: Reference) -> Artifact | None:
        """Return the artifact, or None if it was not made yet; fetch it if the remote has it.

        Raises
        ------
        DamagedArtifactError
            It is here, but its manifest is damaged.
        StoreAccessError
            It could not be fetched: the disk is full or not writable.
        """
        if found := self.find_here(reference):
            return found
        return (
            transfer.fetch_for_run(self, self.remote, reference, self.log) if self.remote else None
        )

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
                message += f" It could not be fetched from {self.remote.url} either."
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
            partial = self.partial(reference)
            if force and partial.exists():
                discard(partial, self.trash)
            if not finish_sealed(reference, partial):
                writer = Writer(partial, recipe)
                create(writer)
                writer.seal()
            publish(partial, self.path(reference), self.trash)
        if self.remote:
            transfer.send_for_run(self, self.remote, reference, self.log)
        return Outcome(self.open(reference), cached=False)

    def verify(self, references: Iterable[Reference] | None = None) -> list[Problem]:
        """Check every byte of the given artifacts, or of all, and return the problems."""
        if references is not None:
            return [p for r in references for p in problems(Artifact(r, self.path(r)))]
        return [p for r in list(self.references()) for p in self._problems_if_there(r)]

    def _problems_if_there(self, reference: Reference) -> list[Problem]:
        """Problems of an artifact that no other process removed or replaced meanwhile."""
        path = self.path(reference)
        while (before := identity(path)) is not None:
            try:
                found = problems(Artifact(reference, path))
            except FileNotFoundError:
                if identity(path) == before:
                    raise
            else:
                if not found or identity(path) == before:
                    return found
        return []

    def repair(self, references: Iterable[Reference] | None = None) -> list[Repair]:
        """Repair what `verify` finds in the given artifacts, or in all.

        Files that do not belong there are removed, and Zarr metadata is written anew; if that is
        enough, the artifact is whole. Otherwise, an artifact that was made in blocks loses its
        broken blocks and becomes unfinished, so that the next run of its stage makes only those.
        Any other artifact is removed, and the next run makes it again.

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
                    if repaired := repair(self, reference):
                        done.append(repaired)
        return done

    def push(
        self, references: Iterable[Reference] | None = None, *, replace: bool = False
    ) -> Iterator[Transfer]:
        """Send artifacts to the remote, each after its inputs.

        Artifacts that are there already are not sent, nor are files that an interrupted call sent.

        Parameters
        ----------
        references : iterable of Reference, optional
            All of this store by default.
        replace : bool
            Send the given ones even if they are there, for example because they are damaged.

        Raises
        ------
        RemoteError
            The remote cannot be reached, or refuses.
        DamagedArtifactError
            An artifact is damaged here.
        """
        chosen = self.references() if references is None else references
        return transfer.push(self, self._chosen_remote(), chosen, replace=replace)

    def pull(self, references: Iterable[Reference]) -> Iterator[Transfer]:
        """Fetch artifacts from the remote, each after its inputs.

        Every byte is checked before an artifact is published here. Files that an interrupted call
        fetched are not fetched again.

        Raises
        ------
        MissingArtifactError
            One of them is not in the remote.
        RemoteError
            The remote cannot be reached, or refuses.
        DamagedArtifactError
            Objects of the remote are missing or damaged; the message names them.
        """
        return transfer.pull(self, self._chosen_remote(), references)

    def verify_remote(
        self, references: Iterable[Reference] | None = None
    ) -> Iterator[tuple[Reference, list[Problem]]]:
        """Check every byte of artifacts in the remote, or of all; yield the problems of each.

        Raises
        ------
        MissingArtifactError
            A given artifact is not in the remote.
        RemoteError
            The remote cannot be reached, or refuses.
        """
        return transfer.verify(self._chosen_remote(), references)

    def gc(self, keep: Iterable[Reference], *, dry_run: bool = False) -> list[Path]:
        """Remove artifacts that nothing in `keep` was made from, and what interrupted runs left.

        Parameters
        ----------
        keep : iterable of Reference
            These stay, with everything that they were made from, directly or not.
        dry_run : bool
            Remove nothing, only return what would be removed.

        Returns
        -------
        list of Path
            The folders removed, or to be removed.

        Raises
        ------
        StoreInUseError
            A run is using the store.
        DamagedArtifactError
            An artifact to keep, or one that it was made from, cannot be read.
        """
        return collect(self, keep, dry_run=dry_run)

    def _chosen_remote(self) -> Remote:
        if self.remote is None:
            raise RemoteURLError(
                "this store has no remote: set CPPCL_REMOTE, or give --remote URL"
            )
        return self.remote
