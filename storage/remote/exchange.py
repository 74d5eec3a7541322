"""What a store and its remote give each other, for a run and for who asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from storage.artifact import MANIFEST, Artifact
from storage.errors import (
    DamagedArtifactError,
    MissingArtifactError,
    RemoteError,
    RemoteURLError,
)
from storage.files import TEMPORARY_SUFFIX, discard, locked, publish
from storage.recipe import Reference
from storage.remote.inventory import Inventory
from storage.remote.objects import Remote
from storage.remote.transfer import Transfer, fetch, remote_problems, send
from storage.verification import Problem

if TYPE_CHECKING:
    from storage.store import Store


def fetched(store: Store, reference: Reference) -> Artifact | None:
    """Fetch what a run looks for and the remote has; where that fails, go on without."""
    remote = store.remote
    if remote is None or remote.rests("read"):
        return None
    try:
        inventory = remote.inventory(reference)
        if inventory is not None:
            _pull(store, remote, reference, inventory)
        remote.worked("read")
    except (RemoteError, DamagedArtifactError) as error:
        if isinstance(error, RemoteError):
            remote.failed("read")
        store.remark(f"going on without the remote: {error}")
        return None
    return store.find_here(reference) if inventory else None


def sent(store: Store, reference: Reference) -> None:
    """Send what a run published, and what it was made from; where that fails, go on without."""
    remote = store.remote
    if remote is None or remote.rests("write"):
        return
    try:
        for step in _in_order([reference], lambda r: _inputs_to_send(store, remote, r)):
            if step in remote.known and step != reference:
                continue
            if _push(store, remote, step).outcome == "other":
                store.remark(
                    f"{step} is in {remote.url} with other values, which stay; to replace them: "
                    f"cppcl store push {step} --replace"
                )
        remote.worked("write")
    except (RemoteError, DamagedArtifactError) as error:
        if isinstance(error, RemoteError):
            remote.failed("write")
        store.remark(f"kept here alone, send it later with 'cppcl store push': {error}")


def _inputs_to_send(store: Store, remote: Remote, reference: Reference) -> Iterable[Reference]:
    # What is there was sent after what it was made from.
    if reference in remote.known or remote.inventory(reference) is not None:
        return ()
    here = store.find_here(reference)
    return here.inputs.values() if here else ()


def push(
    store: Store, references: Iterable[Reference], *, replace: bool = False
) -> Iterator[Transfer]:
    """Send artifacts, each after what it was made from, as `Store.push` says."""
    remote = _remote(store)
    chosen = list(references)

    def inputs(reference: Reference) -> Iterable[Reference]:
        here = store.find_here(reference)
        return here.inputs.values() if here else ()

    for reference in _in_order(chosen, inputs):
        yield _push(store, remote, reference, check=True, anew=replace and reference in chosen)


def pull(store: Store, references: Iterable[Reference]) -> Iterator[Transfer]:
    """Fetch artifacts, each after what it was made from, as `Store.pull` says."""
    remote = _remote(store)
    chosen, inventories = list(references), dict[Reference, Inventory | None]()

    def inputs(reference: Reference) -> Iterable[Reference]:
        here = store.find_here(reference)
        if here is not None:
            return here.inputs.values()
        found = inventories[reference] = remote.inventory(reference)
        if found is None and reference in chosen:
            raise _missing(remote, reference)
        return found.inputs if found else ()

    for reference in _in_order(chosen, inputs):
        inventory = inventories.get(reference)
        if inventory is not None:
            yield _pull(store, remote, reference, inventory)
        else:
            here = store.find_here(reference) is not None
            yield Transfer(reference, "there" if here else "missing")


def verify(
    store: Store, references: Iterable[Reference] | None
) -> Iterator[tuple[Reference, list[Problem]]]:
    """Read artifacts of the remote back, as `Store.verify_remote` says."""
    remote = _remote(store)
    for reference in remote.references() if references is None else references:
        try:
            inventory = remote.inventory(reference)
        except DamagedArtifactError as error:
            yield reference, [Problem(reference, MANIFEST, str(error))]
            continue
        if inventory is not None:
            yield reference, remote_problems(remote, reference, inventory)
        elif references is not None:
            raise _missing(remote, reference)


def _push(
    store: Store, remote: Remote, reference: Reference, *, check: bool = False, anew: bool = False
) -> Transfer:
    with store.in_use(), locked(store.lock(reference)):
        artifact = store.find_here(reference)
        if artifact is None:
            return Transfer(reference, "missing")
        return send(remote, artifact, check=check, anew=anew)


def _pull(store: Store, remote: Remote, reference: Reference, inventory: Inventory) -> Transfer:
    with store.in_use(), locked(store.lock(reference)):
        if store.find_here(reference) is not None:
            return Transfer(reference, "there")
        destination = store.path(reference)
        # Not the folder of an interrupted run: what is fetched is of one origin.
        arriving = destination.with_name(f"{reference.key}.fetched{TEMPORARY_SUFFIX}")
        done = fetch(remote, reference, inventory, arriving)
        publish(arriving, destination, store.trash)
        unfinished = destination.with_name(reference.key + TEMPORARY_SUFFIX)
        if unfinished.exists():
            discard(unfinished, store.trash)
        return done


def _missing(remote: Remote, reference: Reference) -> MissingArtifactError:
    return MissingArtifactError(
        f"{reference} is not in {remote.url}; see what is there with 'cppcl store ls --remote "
        f"{remote.url}'"
    )


def _remote(store: Store) -> Remote:
    if store.remote is None:
        raise RemoteURLError("this store has no remote: set CPPCL_REMOTE, or give --remote URL")
    return store.remote


def _in_order(
    references: Iterable[Reference], inputs: Callable[[Reference], Iterable[Reference]]
) -> list[Reference]:
    """Return the references and what they were made from, each once and after its inputs."""
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
