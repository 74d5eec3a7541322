"""A remote: artifacts in an object store, ``<url>/<stage>/<key>/``, ``manifest.json`` last."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal, NamedTuple

from storage.artifact import MANIFEST
from storage.errors import DamagedArtifactError, RemoteError
from storage.recipe import Reference, is_key, is_stage
from storage.remote.inventory import Inventory

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PART_BYTES = 2**23
"""Bytes that one request sends or fetches, at most."""

N_CONNECTIONS = 4
REST_S = 300.0
"""Seconds for which a run leaves a remote alone after its first failure."""

Direction = Literal["read", "write"]


class FlawedObjectError(Exception):
    """An object is missing, altered or has another size; the message follows its URL."""


class StoredObject(NamedTuple):
    """An object of a remote: its size in bytes and its entity tag, empty where it has none."""

    n_bytes: int
    tag: str


class Remote:
    """Objects of a remote; failures are a `RemoteError` that names the URL.

    It connects when it is first needed, and never deletes anything.

    Parameters
    ----------
    url : str
        Its name in messages; holds no secret.
    connect : callable
        Returns the object store of obstore, rooted at the URL.

    Attributes
    ----------
    known : set of Reference
        Artifacts that are known to be there.
    """

    def __init__(self, url: str, connect: Callable[[], ObjectStore]) -> None:
        self.url = url
        self.known: set[Reference] = set()
        self._connect = connect
        self._rest_s: dict[Direction, float] = {}
        self._rests_until: dict[Direction, float] = {}

    def __repr__(self) -> str:
        return f"Remote({self.url!r})"

    def url_of(self, name: str) -> str:
        """Return the URL of an object."""
        return f"{self.url}/{name}"

    def hint(self, reference: Reference) -> str:
        """How to repair an artifact there."""
        return (
            f"Send it anew from a workspace where it is whole, with 'cppcl store push {reference} "
            f"--replace --remote {self.url}'."
        )

    def inventory(self, reference: Reference) -> Inventory | None:
        """Return the inventory of an artifact; None if it is not there, or not whole yet.

        Raises
        ------
        DamagedArtifactError
            Its manifest there is damaged.
        RemoteError
            The remote cannot be read.
        """
        import obstore

        name = f"{reference}/{MANIFEST}"
        try:
            with self._explained():
                data = bytes(obstore.get(self._objects, name).bytes())
        except FileNotFoundError:
            return None
        found = Inventory.parse(data, reference, self.url_of(name), self.hint(reference))
        self.known.add(reference)
        return found

    def references(self, stage: str | None = None) -> Iterator[Reference]:
        """Iterate over the artifacts there, by stage; some may have no manifest yet."""
        stages = self._folders("") if stage is None else [stage]
        for name in filter(is_stage, stages):
            yield from (Reference(name, key) for key in self._folders(name) if is_key(key))

    def inventories(
        self, stage: str | None = None
    ) -> Iterator[tuple[Reference, Inventory | DamagedArtifactError]]:
        """Iterate over the artifacts there, by stage and key; damaged ones give their error."""

        def read(reference: Reference) -> Inventory | DamagedArtifactError | None:
            try:
                return self.inventory(reference)
            except DamagedArtifactError as error:
                return error

        references = list(self.references(stage))
        with ThreadPoolExecutor(N_CONNECTIONS) as pool:
            for reference, found in zip(references, pool.map(read, references), strict=True):
                if found is not None:
                    yield reference, found

    def listing(self, folder: str) -> dict[str, StoredObject]:
        """Return the objects below a folder, by name from it."""
        import obstore

        found = {}
        with self._explained():
            for objects in obstore.list(self._objects, folder):
                for entry in objects:
                    name = entry["path"].removeprefix(f"{folder}/")
                    found[name] = StoredObject(entry["size"], (entry["e_tag"] or "").strip('"'))
        return found

    def send(self, name: str, path: Path) -> None:
        """Store a file, whole or not at all."""
        import obstore

        with self._explained():
            obstore.put(
                self._objects,
                name,
                path,
                use_multipart=path.stat().st_size > PART_BYTES,
                chunk_size=PART_BYTES,
                max_concurrency=1,
            )

    def seal(self, reference: Reference, inventory: Inventory, *, replace: bool) -> bool:
        """Store the manifest, which publishes the artifact; False if there is one already."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        mode: Literal["create", "overwrite"] = "overwrite" if replace else "create"
        name, document = f"{reference}/{MANIFEST}", inventory.document()
        try:
            with self._explained():
                obstore.put(self._objects, name, document, mode=mode, use_multipart=False)
        except AlreadyExistsError:
            return False
        self.known.add(reference)
        return True

    def parts(self, name: str, n_bytes: int) -> Iterator[bytes]:
        """Iterate over the bytes of an object, a part at a time.

        Raises
        ------
        FlawedObjectError
            It is not there, or its size is not the expected `n_bytes`.
        """
        import obstore

        try:
            end = min(PART_BYTES, n_bytes)
            if not end:
                self._check_size(name, n_bytes)  # an empty range cannot be asked for
                return
            try:
                with self._explained():
                    first = obstore.get(self._objects, name, options={"range": (0, end)})
                    size, data = first.meta["size"], bytes(first.bytes())
            except RemoteError:
                self._check_size(name, n_bytes)  # nor one that begins behind the end
                raise
            if size != n_bytes:
                raise FlawedObjectError(f"has {size} bytes, not {n_bytes}")
            yield data
            for start in range(end, n_bytes, PART_BYTES):
                end = min(start + PART_BYTES, n_bytes)
                with self._explained():
                    data = bytes(obstore.get_range(self._objects, name, start=start, end=end))
                yield data
        except FileNotFoundError as error:
            raise FlawedObjectError("is missing") from error

    def _check_size(self, name: str, n_bytes: int) -> None:
        import obstore

        with self._explained():
            size = obstore.head(self._objects, name)["size"]
        if size != n_bytes:
            raise FlawedObjectError(f"has {size} bytes, not {n_bytes}")

    def failed(self, direction: Direction) -> None:
        """Leave the remote alone for a while, for reading or for writing; longer each time."""
        self._rests_until[direction] = monotonic() + self._rest_s.get(direction, REST_S)
        self._rest_s[direction] = 2 * self._rest_s.get(direction, REST_S)

    def worked(self, direction: Direction) -> None:
        """Forget earlier failures."""
        self._rest_s.pop(direction, None)

    def rests(self, direction: Direction) -> bool:
        """True while the remote is left alone."""
        return monotonic() < self._rests_until.get(direction, 0.0)

    @cached_property
    def _objects(self) -> ObjectStore:
        return self._connect()

    def _folders(self, folder: str) -> list[str]:
        import obstore

        with self._explained():
            found = obstore.list_with_delimiter(self._objects, folder)["common_prefixes"]
        return sorted(path.rpartition("/")[2] for path in found)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what the object store raises into a `RemoteError` with URL and a hint.

        Objects that are not there, or already there, are left to the caller.
        """
        from obstore.exceptions import (
            AlreadyExistsError,
            BaseError,
            PermissionDeniedError,
            UnauthenticatedError,
        )

        try:
            yield
        except AlreadyExistsError:
            raise
        except (BaseError, FileNotFoundError) as error:
            if "NoSuchBucket" in str(error):
                raise RemoteError(
                    f"{self.url}: there is no such bucket. Make it, or correct the URL."
                ) from error
            if isinstance(error, FileNotFoundError):
                raise
            if isinstance(error, PermissionDeniedError | UnauthenticatedError):
                raise RemoteError(
                    f"{self.url} refuses ({_reason(error)}). Check the credentials "
                    "(AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE) and what they "
                    "may do there."
                ) from error
            raise RemoteError(
                f"{self.url} cannot be used ({_reason(error)}). Check the network, "
                "AWS_ENDPOINT_URL and AWS_REGION, then give the same command again: what was "
                "sent or fetched stays."
            ) from error


def _reason(error: Exception) -> str:
    """What the store says, in one line."""
    text = str(error)
    if message := re.search(r"<Message>([^<]*)</Message>", text):
        return message.group(1)
    return text.partition("\n")[0].rpartition(" - ")[2].strip().rstrip(".")
