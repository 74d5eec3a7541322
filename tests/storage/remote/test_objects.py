"""What is sent to a remote comes back byte for byte, or not at all."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import obstore
import pytest

from storage import (
    DamagedArtifactError,
    MissingArtifactError,
    Recipe,
    Reference,
    Remote,
    Store,
    UnknownReferenceError,
    Writer,
)
from storage.remote.inventory import Inventory
from storage.remote.objects import PART_BYTES
from storage.remote.transfer import send
from tests.storage.artifacts import interrupted, tree
from tests.storage.remote.remotes import objects, problems_there


def put(remote: Remote, name: str, data: bytes) -> None:
    obstore.put(remote._objects, name, data)


@pytest.fixture
def here(store, remote) -> Store:
    """The store of this machine."""
    return Store(store.root, remote=remote)


@pytest.fixture
def there(remote, tmp_path) -> Store:
    """The store of another machine with the same remote."""
    return Store(tmp_path / "another machine", remote=remote)


def counted(monkeypatch: pytest.MonkeyPatch, method: str) -> list[str]:
    """Names of the files that are sent, or of the objects that are fetched, from now on."""
    names: list[str] = []
    original: Any = getattr(Remote, method)

    def call(self: Remote, name: str, *arguments: Any) -> Any:
        names.append(name.split("/", 3)[3])
        return original(self, name, *arguments)

    monkeypatch.setattr(Remote, method, call)
    return names


class TestRoundTrip:
    def test_every_byte_comes_back(self, here, there, artifact, remote):
        (sent,) = here.push([artifact.reference])
        (fetched,) = there.pull([artifact.reference])
        n_files = len(tree(artifact.path)) - 1
        assert (sent.outcome, sent.n_files) == ("moved", n_files)
        assert fetched == sent
        assert tree(there.path(artifact.reference)) == tree(artifact.path)
        assert there.verify() == []
        assert problems_there(here) == []
        assert not list(there.root.rglob("*.partial"))

    def test_files_of_several_parts(self, here, there, remote):
        data = np.random.default_rng(0).bytes(2 * PART_BYTES + 5)
        recipe = Recipe("large", "1")
        here.get_or_create(recipe, lambda writer: writer.put_bytes("data", data))
        assert there.open(recipe.reference).bytes("data") == data
        name = next(name for name in objects(remote) if name.endswith("files/data"))
        put(remote, name, data[:-7] + b"\0" + data[-6:])
        (problem,) = problems_there(there)
        assert problem.message == f"{remote.url_of(name)} was altered"

    def test_arrays_can_be_read_where_they_are(self, here, artifact, remote, contents):
        import zarr

        list(here.push())
        folder = f"{artifact.reference}/{Inventory.of(artifact).folder}"
        group = zarr.storage.ObjectStore(remote._objects, read_only=True)
        for name, values in contents.items():
            array = zarr.open_array(group, path=f"{folder}/arrays/{name}", mode="r")
            np.testing.assert_array_equal(array[...], values)

    def test_the_manifest_is_the_last(self, here, artifact, remote, monkeypatch):
        seen = []
        seal = Remote.seal

        def look(self: Remote, *arguments: Any, **options: Any) -> bool:
            seen.append(set(objects(remote)))
            return seal(self, *arguments, **options)

        monkeypatch.setattr(Remote, "seal", look)
        list(here.push())
        manifest = f"{artifact.reference}/manifest.json"
        assert set(objects(remote)) - seen[0] == {manifest}

    def test_a_second_push_reads_and_sends_nothing(self, here, artifact, monkeypatch):
        list(here.push())
        sends = counted(monkeypatch, "send")
        monkeypatch.delattr("storage.remote.transfer.problems")
        monkeypatch.delattr("storage.remote.inventory.sha256_of_file")
        assert [t.outcome for t in here.push()] == ["there"]
        assert sends == []

    def test_what_is_not_there_is_not_found(self, there, recipe):
        assert there.find(recipe.reference) is None
        assert not there.root.exists()
        for ask in (there.pull, there.verify_remote):
            with pytest.raises(MissingArtifactError, match=r"is not in \S+; see what is there"):
                list(ask([recipe.reference]))
        with pytest.raises(MissingArtifactError, match="could not be fetched from"):
            there.open(recipe.reference)

    def test_inputs_come_first(self, here, there):
        chain = chain_of(here, 3)
        for store, move in ((here, here.push), (there, there.pull)):
            assert [t.reference for t in move([chain[-1]])] == chain
            assert all(store.find_here(reference) for reference in chain)

    def test_an_input_that_is_gone_is_passed_over(self, here, there):
        first, second = chain_of(Store(here.root), 2)
        (here.path(first)).rename(here.root.parent / "gone")
        assert [t.outcome for t in here.push()] == ["missing", "moved"]
        assert [t.outcome for t in there.pull([second])] == ["missing", "moved"]

    def test_keys_are_resolved_in_the_remote(self, here, there):
        first, second = chain_of(here, 2)
        assert there.resolve(first.key[:10]) == first
        assert there.resolve(str(second), "chain") == second
        with pytest.raises(UnknownReferenceError, match=rf"no artifact in {there.root}:"):
            there.resolve(str(second), here=True)
        assert sorted(here.remote.references()) == sorted([first, second])
        assert dict(here.remote.inventories("chain")).keys() == {first, second}
        assert list(here.remote.references("other")) == []


def chain_of(store: Store, length: int) -> list[Reference]:
    """Artifacts of which each was made from the one before."""
    made: list[Reference] = []
    for number in range(length):
        inputs = {"before": made[-1]} if made else {}
        recipe = Recipe("chain", "1", {"number": number}, inputs)
        store.get_or_create(recipe, lambda writer: writer.put_text("text", "x"))
        made.append(recipe.reference)
    return made


class TestInARun:
    def test_what_another_machine_made_is_not_made_again(self, here, there, recipe, create):
        first = here.get_or_create(recipe, create)
        second = there.get_or_create(recipe, not_wanted)
        assert (first.cached, second.cached) == (False, True)
        assert tree(second.artifact.path) == tree(first.artifact.path)
        assert there.open(recipe.reference).text("pages/report.html") == "<p>ä</p>"

    def test_what_workers_made_is_sent_with_what_is_made_from_it(self, here, there):
        chain = chain_of(Store(here.root), 3)  # without the remote, as on a worker
        recipe = Recipe("result", "1", {}, {"input": chain[-1]})
        here.get_or_create(recipe, lambda writer: writer.put_text("text", "y"))
        assert [t.reference for t in there.pull([recipe.reference])] == [*chain, recipe.reference]

    def test_what_an_interrupted_run_left_is_not_mixed_with_it(self, here, there, recipe, create):
        def begin(writer: Writer) -> None:
            writer.array("features", shape=(10, 3), dtype="float32", rows_per_block=4)
            writer.put_array("labels", np.zeros(7, np.int64), rows_per_block=3)

        interrupted(Store(there.root), recipe, begin)
        made = here.get_or_create(recipe, create).artifact
        fetched = there.get_or_create(recipe, not_wanted).artifact
        assert tree(fetched.path) == tree(made.path)
        assert not list(there.root.rglob("*.partial"))

    def test_force_makes_it_anew(self, here, there, recipe):
        remarks: list[str] = []
        there.log = remarks.append
        here.get_or_create(recipe, lambda writer: writer.put_text("text", "first"))
        outcome = there.get_or_create(recipe, lambda w: w.put_text("text", "second"), force=True)
        assert outcome.artifact.text("text") == "second"
        assert len(remarks) == 1
        assert "with other values, which stay" in remarks[0]
        elsewhere = Store(there.root / "third", remote=there.remote)
        assert elsewhere.open(recipe.reference).text("text") == "first"

    def test_what_is_damaged_here_is_fetched_after_a_repair(self, here, recipe, create):
        made = here.get_or_create(recipe, create).artifact
        whole = tree(made.path)
        (made.path / "arrays" / "features" / "c.1.0").write_bytes(b"x")
        (repaired,) = here.repair()
        assert not repaired.whole
        assert tree(here.get_or_create(recipe, not_wanted).artifact.path) == whole
        assert not list(here.root.rglob("*.partial"))

    def test_collecting_fetches_nothing(self, here, there):
        first, second = chain_of(here, 2)
        there.open(second)
        assert there.gc([second]) == []
        assert there.find_here(first) is None


def not_wanted(writer: Writer) -> None:
    raise AssertionError("made although the remote has it")


class TestTwoMachines:
    """The same recipe, published with other bytes: another device, another time."""

    @pytest.fixture
    def recipe(self) -> Recipe:
        return Recipe("race", "1")

    def make(self, store: Store, recipe: Recipe, values: str) -> Reference:
        alone = Store(store.root)
        made = alone.get_or_create(recipe, lambda writer: writer.put_text("values", values))
        return made.artifact.reference

    def test_who_comes_first_stays(self, here, there, recipe):
        self.make(here, recipe, "one")
        reference = self.make(there, recipe, "two")
        assert [t.outcome for t in here.push()] == ["moved"]
        assert [t.outcome for t in there.push()] == ["other"]
        assert self.as_a_third_machine_sees(here, reference) == "one"

    def test_replacing_is_asked_for(self, here, there, recipe):
        self.make(here, recipe, "one")
        reference = self.make(there, recipe, "two")
        list(here.push())
        assert [t.outcome for t in there.push([reference], replace=True)] == ["moved"]
        assert self.as_a_third_machine_sees(here, reference) == "two"

    def test_both_at_once_end_with_one(self, here, there, recipe, monkeypatch):
        self.make(here, recipe, "one")
        reference = self.make(there, recipe, "two")
        both_have_sent = threading.Barrier(2, timeout=30)
        seal = Remote.seal

        def wait(self: Remote, *arguments: Any, **options: Any) -> bool:
            both_have_sent.wait()
            return seal(self, *arguments, **options)

        monkeypatch.setattr(Remote, "seal", wait)
        outcomes: dict[str, str] = {}

        def push(store: Store, name: str) -> None:
            (outcomes[name],) = (t.outcome for t in store.push([reference]))

        threads = [
            threading.Thread(target=push, args=arguments)
            for arguments in ((here, "one"), (there, "two"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes.values()) == ["moved", "other"]
        winner = self.as_a_third_machine_sees(here, reference)
        assert outcomes[winner] == "moved"
        assert problems_there(here) == []

    def test_the_same_values_are_the_same(self, here, there, recipe):
        def create(writer: Writer) -> None:
            writer.put_text("values", "one")
            writer.note(device="another")

        reference = self.make(here, recipe, "one")
        Store(there.root).get_or_create(recipe, create)
        ours, theirs = (Inventory.of(store.open(reference)) for store in (here, there))
        assert ours.folder != theirs.folder
        list(here.push())
        assert [t.outcome for t in there.push()] == ["there"]

    def as_a_third_machine_sees(self, store: Store, reference: Reference) -> str:
        third = Store(store.root / "third", remote=store.remote)
        assert third.verify([r.reference for r in third.pull([reference])]) == []
        return third.open(reference).text("values")


class TestDamage:
    @pytest.fixture(autouse=True)
    def sent(self, here, artifact) -> None:
        list(here.push())

    @pytest.fixture
    def damaged(self, artifact) -> str:
        """Object that is damaged."""
        return f"{artifact.reference}/{Inventory.of(artifact).folder}/arrays/features/c.1.0"

    @pytest.mark.parametrize("data", [b"", b"other bytes", None])
    def test_it_is_named_and_not_published(self, data, damaged, here, there, artifact):
        remote = here.remote
        if data is None:
            obstore.delete(remote._objects, damaged)
        else:
            put(remote, damaged, data)
        with pytest.raises(DamagedArtifactError) as caught:
            list(there.pull([artifact.reference]))
        first, hint = str(caught.value).splitlines()
        assert first.startswith(remote.url_of(damaged))
        assert f"cppcl store push {artifact.reference} --replace" in hint
        assert there.find_here(artifact.reference) is None
        (problem,) = problems_there(there)
        assert problem.message == first

        list(here.push([artifact.reference], replace=True))
        assert problems_there(there) == []
        assert tree(there.open(artifact.reference).path) == tree(artifact.path)

    def test_all_of_it_is_named(self, here, there, artifact):
        for name in objects(here.remote):
            if "/arrays/" in name:
                put(here.remote, name, b"x")
        with pytest.raises(DamagedArtifactError) as caught:
            list(there.pull([artifact.reference]))
        n_damaged = sum("/arrays/" in name for name in objects(here.remote))
        assert n_damaged > 10
        assert f"and {n_damaged - 10} more" in str(caught.value)

    @pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"sha256": ""}', b"\xff"])
    def test_a_manifest_that_is_none(self, data, here, there, artifact):
        place = f"{artifact.reference}/manifest.json"
        put(here.remote, place, data)
        with pytest.raises(DamagedArtifactError, match="is not as it was published"):
            list(there.pull([artifact.reference]))
        (problem,) = problems_there(here)
        assert (problem.reference, problem.name) == (artifact.reference, "manifest.json")
        list(here.push([artifact.reference], replace=True))
        assert there.open(artifact.reference).manifest == artifact.manifest

    def test_a_manifest_of_another_artifact(self, here, there, artifact):
        (other,) = chain_of(here, 1)
        manifest = objects(here.remote)[f"{artifact.reference}/manifest.json"]
        put(here.remote, f"{other}/manifest.json", manifest)
        with pytest.raises(DamagedArtifactError, match=f"does not describe {other}"):
            list(there.pull([other]))

    def test_a_run_goes_on_without_it(self, here, there, recipe, create):
        name = next(name for name in objects(here.remote) if name.endswith("c.1.0"))
        put(here.remote, name, b"x")
        remarks: list[str] = []
        there.log = remarks.append
        outcome = there.get_or_create(recipe, create)
        assert not outcome.cached
        assert there.verify() == []
        assert remarks
        assert remarks[0].startswith("going on without the remote: ")
        assert name in remarks[0]

    def test_what_was_not_whole_where_it_came_from(self, here, there, artifact):
        chunks = artifact.path / "arrays" / "features"
        (chunks / "c.1.0").write_bytes((chunks / "c.0.0").read_bytes())
        send(here.remote, artifact, replace=True)
        assert problems_there(here) == []  # every object is as it was sent
        with pytest.raises(DamagedArtifactError, match=r"features: .* values are not those"):
            list(there.pull([artifact.reference]))
        assert list(there.references()) == []

    def test_what_is_damaged_here_is_not_sent(self, here, artifact, remote):
        before = objects(remote)
        (artifact.path / "files" / "picture.png").write_bytes(b"x")
        with pytest.raises(DamagedArtifactError, match=r"damaged here, so it is not sent: .*png"):
            list(here.push([artifact.reference], replace=True))
        assert objects(remote) == before

    def test_a_wrong_byte_that_an_interrupted_push_left_is_sent_again(
        self, here, there, artifact, remote
    ):
        obstore.delete(remote._objects, f"{artifact.reference}/manifest.json")
        name = next(name for name in objects(remote) if name.endswith("picture.png"))
        data = objects(remote)[name]
        # S3 tells the MD5, others only the size.
        put(remote, name, bytes(len(data)) if remote.url.startswith("s3:") else data[:-1])
        assert [t.n_files for t in here.push()] == [1]
        assert tree(there.open(artifact.reference).path) == tree(artifact.path)
