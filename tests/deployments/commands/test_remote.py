"""``cppcl store push|pull``, ``ls|verify --remote``, and runs that share a remote."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from storage import Recipe, Reference, Store
from tasks.progress import listening
from tasks.workspace import REMOTE, Workspace

Command = Callable[..., Any]
SECRET = "wJalrXUtnFEMI"


@pytest.fixture
def url(tmp_path) -> str:
    """URL of an empty folder that stands for a bucket."""
    folder = tmp_path / "bucket"
    folder.mkdir()
    return folder.as_uri()


@pytest.fixture
def chain(workspace) -> list[Reference]:
    """Artifacts of two stages, the second made from the first."""
    first = Recipe("fetch", "1", {"dataset": "shapes"})
    second = Recipe("split", "1", {"seed": 3}, {"table": first.reference})
    for recipe in (first, second):
        workspace.store.get_or_create(recipe, lambda writer: writer.put_bytes("x", bytes(2000)))
    return [first.reference, second.reference]


@pytest.fixture
def elsewhere(tmp_path) -> Workspace:
    """Workspace of another machine; nothing is there yet."""
    return Workspace(tmp_path / "elsewhere")


def test_push_and_pull_by_the_beginning_of_a_key(workspace, chain, elsewhere, url, cppcl):
    here, there = ("--workspace", workspace.root), ("--workspace", elsewhere.root)
    first, second = chain
    sent = cppcl("store", "push", second.key[:8], *here, "--remote", url)
    assert (sent.code, sent.stderr) == (0, "")
    *lines, last = sent.stdout.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [str(first), str(second)]
    assert re.fullmatch(rf"{url}: 2 artifacts sent \(\d\.\d kB\), 0 were there", last)
    again = cppcl("store", "push", *here, "--remote", url)
    assert again.stdout == f"{url}: 0 artifacts sent (0.0 kB), 2 were there\n"

    fetched = cppcl("store", "pull", second.key[:8], *there, "--remote", url)
    assert (fetched.code, fetched.stderr) == (0, "")
    assert f"{url}: 2 artifacts fetched" in fetched.stdout
    assert sorted(elsewhere.store.references()) == sorted(chain)
    assert elsewhere.store.verify() == []


def test_ls_shows_what_is_there(workspace, chain, url, tmp_path, cppcl, monkeypatch):
    here = ("--workspace", workspace.root)
    assert cppcl("store", "push", *here, "--remote", url).code == 0
    monkeypatch.setenv(REMOTE, url)
    listed = cppcl("store", "ls", "--remote", *here, code=0)
    assert f"artifacts in {url}" in listed.stdout
    assert all(str(reference) in listed.stdout for reference in chain)
    assert "dataset=shapes" in listed.stdout
    assert "2." in listed.stdout  # kB
    split = cppcl("store", "ls", "split", *here, "--remote", url)
    assert str(chain[1]) in split.stdout
    assert str(chain[0]) not in split.stdout
    (tmp_path / "bucket" / str(chain[1]) / "manifest.json").write_text("{}")
    damaged = cppcl("store", "ls", *here, "--remote", url, code=0)
    (line,) = (text for text in damaged.stdout.splitlines() if str(chain[1]) in text)
    assert "damaged: see cppcl store verify --remote" in line
    assert "dataset=shapes" in damaged.stdout
    wrong = cppcl("store", "ls", "splits", *here, "--remote", url)
    assert (wrong.code, wrong.stdout) == (2, "")


def test_verify_names_damage_and_push_replaces_it(workspace, chain, url, tmp_path, cppcl):
    here = ("--workspace", workspace.root, "--remote", url)
    assert cppcl("store", "push", *here).code == 0
    (damaged,) = (tmp_path / "bucket" / str(chain[0])).rglob("x")
    damaged.write_bytes(b"short")
    found = cppcl("store", "verify", *here, code=1)
    assert f"{chain[0]}: files/x: {damaged.as_uri()} has 5 bytes, not 2000" in found.stdout
    assert found.stdout.endswith("2 artifacts read, 1 problems\n")
    other = cppcl("store", "verify", str(chain[1]), *here)
    assert (other.code, other.stdout) == (0, f"{url}: 1 artifacts read, 0 problems\n")
    (tmp_path / "empty").mkdir()
    pulled = cppcl(
        "store", "pull", chain[1], "--workspace", tmp_path / "empty", "--remote", url, code=1
    )
    assert f"cppcl store push {chain[0]} --replace --remote {url}" in pulled.stderr

    mended = cppcl("store", "push", str(chain[0]), "--replace", *here, code=0)
    assert "1 artifacts sent" in mended.stdout
    assert cppcl("store", "verify", *here).code == 0
    for refused in (("push", "--replace"), ("verify", "--repair")):
        result = cppcl("store", *refused, *here)
        assert (result.code, result.stdout) == (2, "")


def test_what_is_refused(workspace, url, tmp_path, cppcl):
    workspace.root.mkdir()
    here = ("--workspace", workspace.root)
    for action in (["push"], ["pull", "abc"], ["ls", "--remote"], ["verify", "--remote"]):
        result = cppcl("store", *action, *here, code=2)
        assert f"there is no remote; set {REMOTE}, or give --remote URL" in result.stderr
    unknown = cppcl("store", "pull", "abcdef", *here, "--remote", url, code=2)
    assert f"names no artifact in {workspace.store.root} or {url}" in unknown.stderr
    absent = cppcl("store", "push", "--workspace", tmp_path / "typo", "--remote", url)
    assert (absent.code, absent.stdout) == (2, "")
    assert "typo' does not exist" in absent.stderr


def test_a_remote_that_is_not_there(workspace, chain, url, cppcl):
    for action in (["push"], ["pull", chain[0].key[:8]], ["ls"], ["verify"]):
        remote = ("--workspace", workspace.root, "--remote", f"{url}-unmounted")
        result = cppcl("store", *action, *remote)
        if action[0] == "pull":  # it is here, so nothing is asked
            assert result.code == 0
            continue
        assert (result.code, result.stdout) == (1, "")
        assert f"cppcl: {url}-unmounted is no folder. Make it, or mount it.\n" == result.stderr


def test_a_password_in_a_url_is_not_printed(workspace, chain, cppcl, monkeypatch):
    address = f"s3://AKIA:{SECRET}@bucket/prefix"
    for arguments, where in (
        (("store", "push", "--remote", address), "--remote"),
        (("store", "ls", "--remote", address), "--remote"),
        (("store", "ls"), REMOTE),
        (("store", "push"), REMOTE),
    ):
        if where == REMOTE:
            monkeypatch.setenv(REMOTE, address)
        result = cppcl(*arguments, "--workspace", workspace.root, code=2)
        assert result.stderr.startswith(f"cppcl: {where}: the URL of a remote must hold no user")
        assert SECRET not in result.stdout + result.stderr


def test_a_run_remarks_that_it_goes_on_alone(workspace, tmp_path, monkeypatch):
    monkeypatch.setenv(REMOTE, (tmp_path / "unmounted").as_uri())
    said: list[str] = []
    with listening(on_message=said.append):
        made = workspace.store.get_or_create(Recipe("a", "1"), lambda w: w.put_text("t", "t"))
    assert made.artifact.text("t") == "t"
    assert [text.partition(": ")[0] for text in said] == [
        "going on without the remote",
        "kept here alone, send it later with 'cppcl store push'",
    ]


@pytest.mark.flow
def test_another_machine_computes_nothing(
    finished_run, elsewhere, url, cppcl, monkeypatch, tmp_path
):
    cppcl("store", "push", "--workspace", finished_run.workspace.root, "--remote", url, code=0)
    monkeypatch.setenv(REMOTE, url)
    run = cppcl("run", finished_run.file, "--workspace", elsewhere.root, "--json", code=0)
    assert run.json()["artifacts"] == finished_run.summary["artifacts"]
    assert all(run.json()["cached"].values())
    made = set(finished_run.workspace.store.references())
    assert set(elsewhere.store.references()) < made
    assert Store(elsewhere.store.root).verify() == []

    # A third machine needs no run: the key is enough.
    model = finished_run.summary["artifacts"]["encode"]
    sketch = next((finished_run.shapes / "sketches").rglob("*.png"))
    third = Workspace(tmp_path / "third")
    found = cppcl(
        "search", model[:12], sketch, "-k", 2, "--workspace", third.root, "--json", code=0
    )
    assert len(found.json()) == 2
