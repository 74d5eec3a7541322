"""The Dask cluster: what workers offer and hold, and what a wrong address says."""

import os
import subprocess
import sys
from concurrent.futures import CancelledError, Future
from functools import partial
from threading import Event
from typing import Any

import pytest

from cppcl.errors import CppclError, InputError
from tasks.cluster.jobs import hearing, run_jobs
from tasks.cluster.session import (
    Cluster,
    await_worker,
    check_pythons,
    check_workers,
    children_uninterrupted,
    cluster_session,
    current_cluster,
    starting_ahead,
)
from tasks.workspace import Workspace
from tests.tasks.conftest import extract_pictures


class Offering(Cluster):
    """A cluster whose workers offer given resources."""

    def __init__(self, *offers: dict[str, float]) -> None:
        super().__init__("local", 1, "1GiB")
        self.offers = offers

    def client(self) -> Any:
        offers = self.offers

        class Client:
            def scheduler_info(self, n_workers: int) -> Any:
                assert n_workers == -1  # the default leaves workers out beyond the fifth
                return {"workers": {str(n): {"resources": o} for n, o in enumerate(offers)}}

        return Client()


@pytest.mark.parametrize(
    ("offers", "device", "expected"),
    [
        ([{"CPU": 1}, {"CPU": 1}], "cpu", {"CPU": 1}),
        ([{"CPU": 1}, {"GPU": 1}], "cpu", {"CPU": 1}),
        ([{"CPU": 1}, {"GPU": 1}], "gpu", {"GPU": 1}),
        ([{"CPU": 1}], "gpu", {"CPU": 1}),
        ([{}, {}], "gpu", {}),
        ([{}], "cpu", {}),
    ],
)
def test_blocks_ask_for_the_device_if_a_worker_has_it(offers, device, expected):
    assert Offering(*offers).resource(device) == expected


@pytest.mark.parametrize(
    ("where", "offers", "device", "expected"),
    [
        ("tcp://h:1", [{"CPU": 1}] * 3 + [{"GPU": 1}], "cpu", 3),
        ("tcp://h:1", [{"CPU": 1}] * 3 + [{"GPU": 1}], "gpu", 1),
        ("tcp://h:1", [{"CPU": 1}] * 3, "gpu", 3),
        ("tcp://h:1", [{}] * 4, "cpu", 4),
        ("tcp://h:1", [], "cpu", 1),
        ("local", [{"CPU": 1}], "cpu", 5),
        ("local", [{"CPU": 1}, {"GPU": 1}], "gpu", 1),
    ],
)
def test_workers_are_counted_by_what_blocks_ask_for(where, offers, device, expected):
    found = Offering(*offers)
    found.where, found.workers = where, 5  # of which one may be up
    assert found.n_workers(device) == expected


def test_nothing_is_started_before_it_is_needed():
    with cluster_session("tcp://127.0.0.1:1") as outer:
        assert current_cluster() is outer
        with cluster_session() as inner:
            assert current_cluster() is inner
            assert inner.workers >= 1
        assert current_cluster() is outer


class Closable:
    closed = False

    def close(self):
        self.closed = True


@pytest.mark.parametrize(("asked", "taken"), [("2GiB", True), ("3GiB", False)])
def test_a_session_takes_the_like_cluster_that_was_started_ahead(monkeypatch, asked, taken):
    started = []

    def connect(cluster):
        started.append(Closable())
        cluster._exit.callback(started[-1].close)
        return started[-1]

    monkeypatch.setattr(Cluster, "_connect", connect)
    with starting_ahead("local", 2, "2GiB"):
        with cluster_session("local", 2, asked) as session:
            first = session.client()
            assert first is (started[0] if taken else started[1])
        assert first.closed
        assert started[0].closed is taken
    assert all(client.closed for client in started)


def test_what_goes_wrong_ahead_is_raised_where_the_cluster_is_needed(monkeypatch):
    monkeypatch.setattr(Cluster, "_connect", lambda cluster: 1 / 0)
    with (
        starting_ahead("local", 2, "2GiB"),
        cluster_session("local", 2, "2GiB") as session,
    ):
        with pytest.raises(ZeroDivisionError):
            session.client()
        monkeypatch.setattr(Cluster, "_connect", lambda cluster: Closable())
        assert isinstance(session.client(), Closable)  # a retry tries again


def test_workers_of_a_cluster_that_is_not_wanted_are_not_waited_for(monkeypatch):
    asked = Event()

    class WithoutWorkers:
        def wait_for_workers(self, n: int, timeout: float) -> None:
            asked.set()
            raise TimeoutError

    monkeypatch.setattr(
        Cluster,
        "_connect",
        lambda cluster: await_worker(WithoutWorkers(), "local", cluster._unwanted),
    )
    with starting_ahead("local", 2, "2GiB"):  # its end waits for two minutes otherwise
        assert asked.wait(10)


def test_no_workers_are_started_that_are_not_wanted_any_more(monkeypatch):
    monkeypatch.setattr("tasks.cluster.kinds.start", lambda wanted: pytest.fail("started"))
    cluster = Cluster("local", 2, "2GiB")
    cluster._unwanted.set()
    with pytest.raises(CancelledError):
        cluster.client()


def test_a_cluster_is_closed_whose_start_was_not_awaited(monkeypatch):
    """As when Ctrl-C comes while a stage waits for it."""
    cluster, client = Cluster("local", 2, "2GiB"), Closable()
    begun = Event()

    def connect(cluster):
        begun.wait(10)
        cluster._exit.callback(client.close)
        return client

    def interrupt(starting):
        begun.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(Cluster, "_connect", connect)
    cluster.start()
    with monkeypatch.context() as context:
        context.setattr(Future, "result", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cluster.client()
    cluster.close()
    assert client.closed


def test_other_clusters_are_not_started_ahead(monkeypatch):
    monkeypatch.setattr(Cluster, "_connect", lambda cluster: pytest.fail("started"))
    with starting_ahead("tcp://127.0.0.1:1", None, "2GiB"):
        pass


def test_what_is_started_for_a_cluster_is_spared_the_signals_of_a_terminal():
    told = "import signal; print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())))"
    with children_uninterrupted():
        blocked = subprocess.run(
            [sys.executable, "-c", told], capture_output=True, text=True, check=True
        ).stdout
    assert "SIGINT" in blocked
    assert "SIGHUP" in blocked


def test_extraction_without_a_session_says_what_to_do(monkeypatch):
    monkeypatch.setattr("tasks.cluster.session._sessions", [])
    with pytest.raises(RuntimeError, match="cluster_session"):
        current_cluster()


def test_no_jobs_need_no_cluster(monkeypatch):
    monkeypatch.setattr("tasks.cluster.session._sessions", [])
    assert list(run_jobs(str, [], device="cpu", name="x", hint="")) == []


def test_a_wrong_address_is_named():
    with (
        cluster_session("carrier-pigeon://127.0.0.1:8786") as session,
        pytest.raises(InputError, match=r"compute\.cluster 'carrier-pigeon://127\.0\.0\.1:8786'"),
    ):
        session.client()


@pytest.mark.flow
def test_workers_have_the_memory_and_threads_that_were_declared(dask_cluster):
    workers = dask_cluster.client().scheduler_info(n_workers=-1)["workers"].values()
    assert len(workers) == 2
    for worker in workers:
        assert worker["memory_limit"] == 2 * 2**30
        assert worker["nthreads"] == 1
        assert worker["resources"] == {"CPU": 1}
    threads = dask_cluster.client().run(lambda: __import__("os").environ["OMP_NUM_THREADS"])
    assert set(threads.values()) == {"1"}
    trims = dask_cluster.client().run(
        lambda: __import__("os").environ.get("MALLOC_TRIM_THRESHOLD_")
    )
    assert set(trims.values()) == {os.environ.get("MALLOC_TRIM_THRESHOLD_")}
    assert dask_cluster.resource("gpu") == {"CPU": 1}


@pytest.mark.flow
def test_results_come_with_the_place_of_their_job(dask_cluster):
    jobs = [f"{number:x}" for number in range(30)]  # more than are in flight at once
    done = run_jobs(partial(int, base=16), jobs, device="cpu", name="int", hint="")
    assert sorted(done) == [(number, number) for number in range(30)]


@pytest.mark.flow
def test_workers_extract_without_prefect(dask_cluster, workspace, shapes, extracting_here, said):
    def extract(place: Workspace) -> Any:
        given = {"modality": "image", "extractor": "hog", "options": {}, "block_rows": 2}
        return place.store.open(extract_pictures(place, shapes, **given).reference)

    artifact = extract(workspace)
    assert said == [f"Dask dashboard: {dask_cluster.client().dashboard_link}"]
    assert artifact.run["notes"]["worker_seconds"] > 0
    loaded = dask_cluster.client().run(lambda: set(__import__("sys").modules))
    assert any("tasks.workers.blocks" in names for names in loaded.values())
    assert not any("prefect" in names for names in loaded.values())
    with extracting_here():
        alone = extract(Workspace(workspace.root / "alone"))
    assert alone.manifest == artifact.manifest


@pytest.mark.flow
def test_workers_elsewhere_are_asked_what_they_have(dask_address, monkeypatch):
    with cluster_session(dask_address) as session:
        session.client()  # they have what is here
    monkeypatch.setattr("importlib.metadata.version", lambda name: "99.0")
    with (
        cluster_session(dask_address) as session,
        pytest.raises(
            CppclError, match=r"need cppcl, version 99\.0, as here, but tcp://.*: version"
        ),
    ):
        session.client()


def test_workers_without_cppcl_are_named():
    class Client:
        def run(self, found: Any) -> dict[str, str]:
            return {"tcp://a": found(), "tcp://b": "cannot import it (No module named 'tasks')"}

    with pytest.raises(
        CppclError, match=r"as here, but tcp://b: cannot import it \(No module"
    ) as e:
        check_workers(Client(), "tcp://there:8786")
    assert "tcp://a" not in str(e.value)
    assert "install the same there" in str(e.value)


@pytest.mark.flow
def test_every_message_of_a_worker_is_heard_in_order(dask_cluster):
    def send_numbers(first: int) -> int:  # within the test: workers have no `tests` to import
        from tasks.cluster.jobs import send_event

        for number in range(first, first + 50):
            send_event("numbers", {"number": number})
        return first

    heard: list[dict[str, Any]] = []
    with hearing("numbers", heard.append):
        done = list(run_jobs(send_numbers, [0, 100], device="cpu", name="send", hint=""))
    assert sorted(done) == [(0, 0), (1, 100)]
    for first in (0, 100):
        of_it = [message for message in heard if first <= message["number"] < first + 50]
        assert of_it == [{"number": number} for number in range(first, first + 50)]
    assert len(heard) == 100


@pytest.mark.parametrize("python", ["3.9.18.final.0", "3.14.0.candidate.1"])
def test_workers_of_another_python_are_named_before_anything_is_sent(python):
    class Client:
        def get_versions(self) -> Any:
            here = "{}.{}.99.final.0".format(*sys.version_info)
            of = {"tcp://a": here, "tcp://b": python}
            return {"workers": {name: {"host": {"python": p}} for name, p in of.items()}}

    short = python.rsplit(".", 3)[0]
    with pytest.raises(CppclError, match=rf"another \(tcp://b: {short}\); start them") as caught:
        check_pythons(Client(), "tcp://there:8786")
    assert "tcp://a" not in str(caught.value)


@pytest.mark.flow
def test_workers_elsewhere_load_the_plugins_of_the_run(dask_address, monkeypatch, tmp_path):
    here = tmp_path / "plugin_of_a_run.py"
    here.write_text("LOADED = True\n")
    monkeypatch.setenv("CPPCL_PLUGINS", str(here))
    with cluster_session(dask_address) as session:
        found = session.client().run(lambda: "plugin_of_a_run" in __import__("sys").modules)
        assert len(found) == 2
        assert all(found.values())
    here.unlink()
    monkeypatch.setenv("CPPCL_PLUGINS", str(tmp_path / "absent.py"))
    with (
        cluster_session(dask_address) as session,
        pytest.raises(CppclError, match=r"workers of .*absent.py.*no such file on this machine"),
    ):
        session.client()
    monkeypatch.setenv("CPPCL_PLUGINS", "")
    with cluster_session(dask_address) as session:
        client = session.client()
        client.unregister_worker_plugin("cppcl-plugins")
        client.run(lambda: __import__("os").environ.pop("CPPCL_PLUGINS", None))


@pytest.mark.parametrize(
    ("worker", "stays"),
    [
        ({"metrics": {"memory": 300}, "memory_limit": 1000}, True),
        ({"metrics": {"memory": 400}, "memory_limit": 1000}, False),
        ({"metrics": {}, "memory_limit": 0}, True),
        ({"metrics": {}, "memory_limit": 1000, "resources": {"GPU": 1}}, False),
    ],
)
def test_workers_that_hold_much_are_not_given_other_work(worker, stays, monkeypatch):
    cluster = Cluster("local", 1, "1GiB")
    cluster.close_if_laden()  # never started
    monkeypatch.setattr(cluster, "_client", "a client")
    monkeypatch.setattr(cluster, "_workers", lambda: [worker])
    cluster.close_if_laden()
    assert (cluster._client is not None) == stays
