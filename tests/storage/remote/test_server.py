"""An S3 server that goes away or refuses, and processes that are killed while they use it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from storage import Recipe, Reference, Remote, RemoteError, Store, open_remote
from storage.remote.inventory import Inventory
from tests.storage.remote.remotes import Server, problems_there, serving

NOWHERE = Reference("features", "0" * 32)

# Sends or fetches one object after the other, and at the third waits to be killed.
MOVE_AND_STOP = """
import sys
from storage import Reference, Remote, Store, open_remote; from storage.remote import transfer

method, root, url, reference = sys.argv[1:]
whole, calls = getattr(Remote, method), []
transfer.N_CONNECTIONS = 1

def call(self, *arguments):
    calls.append(arguments)
    if len(calls) == 3:
        print("stopped", flush=True)
        sys.stdin.readline()
    return whole(self, *arguments)

setattr(Remote, method, call)
store = Store(root, remote=open_remote(url))
list((store.push if method == "send" else store.pull)([Reference.parse(reference)]))
"""


@pytest.fixture
def there(bucket, tmp_path) -> Store:
    """Another machine's store, with a bucket."""
    return Store(tmp_path / "another machine", remote=open_remote(bucket))


@pytest.fixture
def here(store, bucket) -> Store:
    """This machine's."""
    return Store(store.root, remote=open_remote(bucket))


@pytest.mark.parametrize("method", ["send", "parts"])
def test_killed(method, here, there, artifact, bucket, child):
    if method == "parts":
        list(here.push())
    root = here.root if method == "send" else there.root
    process = child(MOVE_AND_STOP, method, root, bucket, artifact.reference)
    assert process.stdout.readline() == "stopped\n"
    process.kill()
    process.wait()
    assert list(there.references()) == []
    if method == "send":
        assert there.find(artifact.reference) is None
    (done,) = here.push() if method == "send" else there.pull([artifact.reference])
    assert done.n_files == len(Inventory.of(artifact).files) - 2
    assert there.open(artifact.reference).manifest == artifact.manifest
    assert there.verify() == []
    assert not list(there.root.rglob("*.partial"))


class TestGone:
    @pytest.fixture
    def server(self, monkeypatch) -> Iterator[Server]:
        """A server to be killed."""
        with serving() as server:
            for name, value in server.environment().items():
                monkeypatch.setenv(name, value)
            yield server

    def test_in_the_middle_of_a_push_and_from_the_beginning(
        self, server, store, artifact, recipe, monkeypatch
    ):
        here = Store(store.root, remote=open_remote(server.make_bucket()))
        kill_after(monkeypatch, "send", 2, server)
        with pytest.raises(RemoteError, match=rf"^{here.remote.url} cannot be used .*again"):
            list(here.push())
        with pytest.raises(RemoteError, match=rf"^{here.remote.url} cannot be used .*again"):
            list(here.pull([NOWHERE]))
        assert here.verify() == []

    def test_in_the_middle_of_a_run(self, server, store, create, recipe, tmp_path, monkeypatch):
        url = server.make_bucket()
        Store(store.root, remote=open_remote(url)).get_or_create(recipe, create)
        remarks: list[str] = []
        there = Store(tmp_path / "there", remote=open_remote(url), log=remarks.append)
        requests = kill_after(monkeypatch, "parts", 2, server)
        outcome = there.get_or_create(recipe, create)
        assert not outcome.cached
        assert there.verify() == []
        assert [text.partition(": ")[0] for text in remarks] == [
            "going on without the remote",
            "kept here alone, send it later with 'cppcl store push'",
        ]
        # Nothing more is asked of it for a while, so a long run waits once.
        requests.clear()
        monkeypatch.setattr(Remote, "inventory", not_wanted)
        there.get_or_create(Recipe("another", "1"), lambda writer: writer.put_text("t", "t"))
        assert len(remarks) == 2
        assert len(list(there.references())) == 2


def kill_after(
    monkeypatch: pytest.MonkeyPatch, method: str, n: int, server: Server
) -> list[object]:
    """Kill the server before the call after n calls of a method of the remote."""
    whole, lock, calls = getattr(Remote, method), threading.Lock(), list[object]()

    def call(self: Remote, *arguments: Any) -> Any:
        with lock:
            calls.append(arguments)
            if len(calls) == n + 1:
                server.kill()
        return whole(self, *arguments)

    monkeypatch.setattr(Remote, method, call)
    return calls


def not_wanted(self: Remote, reference: Reference) -> None:
    raise AssertionError(f"asked for {reference}")


def test_it_is_left_alone_for_longer_each_time(there, monkeypatch):
    remote, now = there.remote, [1000.0]
    monkeypatch.setattr("storage.remote.objects.monotonic", lambda: now[0])
    for seconds in (300.0, 600.0, 1200.0):
        remote.failed("read")
        assert (remote.rests("read"), remote.rests("write")) == (True, False)
        now[0] += seconds - 1
        assert remote.rests("read")
        now[0] += 1
        assert not remote.rests("read")
    assert there.find(NOWHERE) is None  # works again
    remote.failed("read")
    now[0] += 300
    assert not remote.rests("read")


class TestRefused:
    def test_a_bucket_that_is_not_there(self, store, artifact, bucket):
        url = "s3://never-made-this-bucket"
        here = Store(store.root, remote=open_remote(url))
        calls: list[Callable[[], Any]] = [
            lambda: list(here.push()),
            lambda: list(here.pull([NOWHERE])),
            lambda: problems_there(here),
            lambda: here.resolve("fed"),
        ]
        for call in calls:
            with pytest.raises(RemoteError, match=rf"^{url}: there is no such bucket\. Make it"):
                call()

    def test_without_permission(self, store, artifact, monkeypatch):
        # Requests are allowed to make the bucket, then nobody knows the key.
        with serving(INITIAL_NO_AUTH_ACTION_COUNT="1") as server:
            for name, value in server.environment().items():
                monkeypatch.setenv(name, value)
            here = Store(store.root, remote=open_remote(server.make_bucket()))
            with pytest.raises(RemoteError) as caught:
                list(here.push())
        text = str(caught.value)
        assert text.startswith(f"{here.remote.url} refuses (")
        assert "Check the credentials (AWS_ACCESS_KEY_ID" in text
        assert os.environ["AWS_SECRET_ACCESS_KEY"] not in text
        assert "\n" not in text
