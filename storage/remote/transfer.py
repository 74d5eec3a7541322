"""Transfer of artifacts between a folder and a remote; an interrupted call can be repeated.

`fetch_for_run` and `send_for_run` serve a run, which goes on if the remote fails. `push`, `pull`
and `verify` raise errors.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from storage.artifact import MANIFEST, Artifact, contents
from storage.errors import DamagedArtifactError, MissingArtifactError, RemoteError
from storage.files import (
    TEMPORARY_SUFFIX,
    discard,
    explained,
    locked,
    publish,
    sealed,
    sha256_of_file,
    write_atomically,
)
from storage.folder import StoreFolder
from storage.recipe import Reference
from storage.remote.inventory import FileEntry, Inventory
from storage.remote.objects import N_CONNECTIONS, FlawedObjectError, Remote, StoredObject
from storage.verification import Problem, problems, remove_strays

T = TypeVar("T")
_MD5 = re.compile(r"[0-9a-f]{32}")
_LISTED = 10


class Transfer(NamedTuple):
    """What became of the transfer of an artifact.

    Attributes
    ----------
    reference : Reference
        The artifact.
    outcome : {'moved', 'there', 'other', 'missing'}
        Sent or fetched; there before; there before with other values; not found.
    n_files, n_bytes : int
        Files and bytes sent or fetched now.
    """

    reference: Reference
    outcome: Literal["moved", "there", "other", "missing"]
    n_files: int = 0
    n_bytes: int = 0


def fetch_for_run(
    folder: StoreFolder, remote: Remote, reference: Reference, log: Callable[[str], None]
) -> Artifact | None:
    """Fetch an artifact for a run; None if it is not there or that fails."""
    if remote.rests("read"):
        return None
    try:
        inventory = remote.inventory(reference)
        if inventory is not None:
            _pull(folder, remote, reference, inventory)
        remote.worked("read")
    except (RemoteError, DamagedArtifactError) as error:
        if isinstance(error, RemoteError):
            remote.failed("read")
        log(f"going on without the remote: {error}")
        return None
    return folder.find_here(reference) if inventory else None


def send_for_run(
    folder: StoreFolder, remote: Remote, reference: Reference, log: Callable[[str], None]
) -> None:
    """Send an artifact that a run published, and its inputs; log it if that fails."""
    if remote.rests("write"):
        return
    try:
        for step in _in_order([reference], lambda r: _inputs_to_send(folder, remote, r)):
            if step in remote.known and step != reference:
                continue
            if _push(folder, remote, step).outcome == "other":
                log(
                    f"{step} is in {remote.url} with other values, which stay; to replace them: "
                    f"cppcl store push {step} --replace"
                )
        remote.worked("write")
    except (RemoteError, DamagedArtifactError) as error:
        if isinstance(error, RemoteError):
            remote.failed("write")
        log(f"kept here alone, send it later with 'cppcl store push': {error}")


def _inputs_to_send(
    folder: StoreFolder, remote: Remote, reference: Reference
) -> Iterable[Reference]:
    # An artifact that is there was sent after its inputs.
    if reference in remote.known or remote.inventory(reference) is not None:
        return ()
    here = folder.find_here(reference)
    return here.inputs.values() if here else ()


def push(
    folder: StoreFolder, remote: Remote, references: Iterable[Reference], *, replace: bool
) -> Iterator[Transfer]:
    """Send artifacts, each after its inputs, as `Store.push` documents."""
    chosen = list(references)

    def inputs(reference: Reference) -> Iterable[Reference]:
        here = folder.find_here(reference)
        return here.inputs.values() if here else ()

    for reference in _in_order(chosen, inputs):
        yield _push(folder, remote, reference, check=True, replace=replace and reference in chosen)


def pull(
    folder: StoreFolder, remote: Remote, references: Iterable[Reference]
) -> Iterator[Transfer]:
    """Fetch artifacts, each after its inputs, as `Store.pull` documents."""
    chosen, inventories = list(references), dict[Reference, Inventory | None]()

    def inputs(reference: Reference) -> Iterable[Reference]:
        here = folder.find_here(reference)
        if here is not None:
            return here.inputs.values()
        found = inventories[reference] = remote.inventory(reference)
        if found is None and reference in chosen:
            raise _missing(remote, reference)
        return found.inputs if found else ()

    for reference in _in_order(chosen, inputs):
        inventory = inventories.get(reference)
        if inventory is not None:
            yield _pull(folder, remote, reference, inventory)
        else:
            here = folder.find_here(reference) is not None
            yield Transfer(reference, "there" if here else "missing")


def verify(
    remote: Remote, references: Iterable[Reference] | None
) -> Iterator[tuple[Reference, list[Problem]]]:
    """Check artifacts in the remote, as `Store.verify_remote` documents."""
    for reference in remote.references() if references is None else references:
        try:
            inventory = remote.inventory(reference)
        except DamagedArtifactError as error:
            yield reference, [Problem(reference, MANIFEST, str(error))]
            continue
        if inventory is not None:
            yield reference, _remote_problems(remote, reference, inventory)
        elif references is not None:
            raise _missing(remote, reference)


def _push(
    folder: StoreFolder,
    remote: Remote,
    reference: Reference,
    *,
    check: bool = False,
    replace: bool = False,
) -> Transfer:
    with folder.in_use(), locked(folder.lock(reference)):
        artifact = folder.find_here(reference)
        if artifact is None:
            return Transfer(reference, "missing")
        return send(remote, artifact, check=check, replace=replace)


def _pull(
    folder: StoreFolder, remote: Remote, reference: Reference, inventory: Inventory
) -> Transfer:
    with folder.in_use(), locked(folder.lock(reference)):
        if folder.find_here(reference) is not None:
            return Transfer(reference, "there")
        destination = folder.path(reference)
        # Not the folder of an interrupted run, which would mix files of two machines.
        arriving = destination.with_name(f"{reference.key}.fetched{TEMPORARY_SUFFIX}")
        done = fetch(remote, reference, inventory, arriving)
        publish(arriving, destination, folder.trash)
        unfinished = folder.partial(reference)
        if unfinished.exists():
            discard(unfinished, folder.trash)
        return done


def _missing(remote: Remote, reference: Reference) -> MissingArtifactError:
    return MissingArtifactError(
        f"{reference} is not in {remote.url}; see what is there with 'cppcl store ls --remote "
        f"{remote.url}'"
    )


def _in_order(
    references: Iterable[Reference], inputs: Callable[[Reference], Iterable[Reference]]
) -> list[Reference]:
    """Return the references and all their inputs, each once and after its own inputs."""
    order: dict[Reference, None] = {}
    seen: set[Reference] = set()
    pending = [(reference, False) for reference in reversed(list(references))]
    while pending:
        reference, its_inputs_are_done = pending.pop()
        if its_inputs_are_done:
            order[reference] = None
        elif reference not in seen:
            seen.add(reference)
            pending.append((reference, True))
            pending.extend((other, False) for other in inputs(reference))
    return list(order)


def send(
    remote: Remote, artifact: Artifact, *, check: bool = False, replace: bool = False
) -> Transfer:
    """Send an artifact, its manifest last; the caller keeps it from being changed meanwhile.

    Parameters
    ----------
    remote : Remote
        Where to.
    artifact : Artifact
        What is here.
    check : bool
        Read it back first; not needed right after it was published.
    replace : bool
        Send every file even if it is there, and replace the manifest.

    Raises
    ------
    DamagedArtifactError
        It is damaged here, or its manifest in the remote is.
    """
    reference = artifact.reference
    if not replace and (other := remote.inventory(reference)):
        same = contents(artifact.manifest) == contents(other.manifest)
        return Transfer(reference, "there" if same else "other")
    if check and (found := problems(artifact)):
        raise DamagedArtifactError(
            f"{reference} is damaged here, so it is not sent: {found[0].message}. {artifact.hint}"
        )
    inventory = Inventory.of(artifact)
    folder = f"{reference}/{inventory.folder}"
    there = {} if replace else remote.listing(folder)
    missing = [
        name
        for name, entry in inventory.files.items()
        if name not in there or not _is_whole(there[name], entry, artifact.path / name)
    ]
    _each(lambda name: remote.send(f"{folder}/{name}", artifact.path / name), missing)
    if not remote.seal(reference, inventory, replace=replace):
        # Another machine was faster.
        return send(remote, artifact)
    n_bytes = sum(inventory.files[name].n_bytes for name in missing)
    return Transfer(reference, "moved", len(missing), n_bytes)


def _is_whole(stored: StoredObject, entry: FileEntry, path: Path) -> bool:
    """True if an object that an interrupted call left has the bytes of the file.

    They are compared by size and, where the entity tag is one, by MD5.
    """
    if stored.n_bytes != entry.n_bytes:
        return False
    if not _MD5.fullmatch(stored.tag):
        return True
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest() == stored.tag


def fetch(remote: Remote, reference: Reference, inventory: Inventory, path: Path) -> Transfer:
    """Fetch an artifact into a folder, which may hold files of an interrupted call.

    Raises
    ------
    DamagedArtifactError
        Objects are missing, cut short or altered; the message names their URLs.
    StoreAccessError
        The disk is full or may not be written.
    """
    missing = [
        name
        for name, entry in inventory.files.items()
        if not (path / name).is_file() or sha256_of_file(path / name) != entry
    ]
    folder = f"{reference}/{inventory.folder}"

    def receive(name: str) -> str | None:
        return _receive(remote, f"{folder}/{name}", inventory.files[name], path / name)

    with explained(path):
        damage = list(filter(None, _each(receive, missing)))
        if not damage:
            write_atomically(path / MANIFEST, sealed(inventory.manifest))
            remove_strays(path, inventory.manifest)
            # It may have been sent damaged, with digests that agree.
            found = problems(Artifact(reference, path))
            damage = [f"{problem.name}: {problem.message}" for problem in found]
    if damage:
        raise DamagedArtifactError(_listed(damage, remote.hint(reference)))
    n_bytes = sum(inventory.files[name].n_bytes for name in missing)
    return Transfer(reference, "moved", len(missing), n_bytes)


def _remote_problems(remote: Remote, reference: Reference, inventory: Inventory) -> list[Problem]:
    """Read every object of an artifact back, and return the problems."""
    folder = f"{reference}/{inventory.folder}"

    def check(name: str) -> Problem | None:
        message = _receive(remote, f"{folder}/{name}", inventory.files[name], None)
        return Problem(reference, name, message) if message else None

    return list(filter(None, _each(check, inventory.files)))


def _receive(remote: Remote, name: str, entry: FileEntry, path: Path | None) -> str | None:
    """Fetch one object, to `path` if given; return its problem, if there is one."""
    digest = hashlib.sha256()
    try:
        with _written(path) as write:
            for part in remote.parts(name, entry.n_bytes):
                digest.update(part)
                write(part)
            if digest.hexdigest() != entry.sha256:
                raise FlawedObjectError("was altered")
    except FlawedObjectError as error:
        return f"{remote.url_of(name)} {error}"
    return None


@contextlib.contextmanager
def _written(path: Path | None) -> Iterator[Callable[[bytes], object]]:
    """Write a file in parts; it is there when the block ends without an exception."""
    if path is None:
        yield len
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}")
    try:
        with temporary.open("wb") as stream:
            yield stream.write
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _each(function: Callable[[str], T], names: Iterable[str]) -> list[T]:
    with ThreadPoolExecutor(N_CONNECTIONS) as pool:
        return list(pool.map(function, names))


def _listed(damage: list[str], hint: str) -> str:
    more = [f"and {len(damage) - _LISTED} more"] if len(damage) > _LISTED else []
    return "\n".join([*damage[:_LISTED], *more, hint])
