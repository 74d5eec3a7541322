"""``cppcl reproduce``: what it refuses, prints and copies; the flow has tests of its own."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import deployments.commands.reproduce
import flows.reproduction.reproduce
from deployments.terminal import Terminal
from storage import Recipe, Writer

Command = Callable[..., Any]


@pytest.fixture
def asked(workspace, monkeypatch) -> Callable[..., dict[str, Any]]:
    """Let the flow end with these items failed; holds what it was asked for."""
    recipe = Recipe("reproduction", "1", {}, {})

    def write(writer: Writer) -> None:
        writer.put_text("index.html", "the page")
        writer.put_text("table1.csv", "a,b\n")

    key = workspace.store.get_or_create(recipe, write).artifact.reference.key

    def prepare(failed: list[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        items = {
            name: {
                "title": f"Title of {name}",
                "kind": "scores",
                "state": "failed" if name in failed else "done",
                "message": "cv: no space left" if name in failed else "",
            }
            for name in ("table1", "a_vs_b")
        }
        summary = {
            "experiment": "reproduce-cufs",
            "items": items,
            "failed": failed,
            "notes": [],
            "artifacts": {"reproduction": key},
            "cached": False,
        }

        def run(dataset: str, **options: Any) -> Any:
            found.update(options, dataset=dataset)
            return SimpleNamespace(result=lambda raise_on_failure: summary)

        monkeypatch.setattr(flows.reproduction.reproduce, "run_reproduction", run)
        monkeypatch.setattr(
            deployments.commands.reproduce, "prepare_prefect", lambda *a, **o: None
        )
        return found

    return prepare


def test_it_says_where_the_page_is(asked, cppcl, workspace):
    found = asked([])
    only = ("--only", "table1", "--only", "a_vs_b")
    result = cppcl("reproduce", "cufs", "--quick", *only, "--workspace", workspace.root, code=0)
    assert found == {
        "dataset": "cufs",
        "quick": True,
        "items": ["table1", "a_vs_b"],
        "anew": False,
        "workspace": workspace.root.absolute(),
        "return_state": True,
    }
    page = Path(result.stderr.splitlines()[-1].removeprefix("page: "))
    assert page.read_text() == "the page"
    assert "Title of table1" in result.stderr
    assert result.stdout == ""


def test_published_rows_are_printed_beside_ours(workspace):
    def write(writer: Writer) -> None:
        writer.put_text("x.csv", "method,mAP (%),errata,note,artifacts\nCLIP,0.25,,,\nOurs,,,,\n")
        text = 'method,score,published,Ours,errata,note,artifacts\nCLIP,mAP,0.25,"24, agrees",,,\n'
        writer.put_text("x_beside.csv", text)

    recipe = Recipe("reproduction", "1", {"x": 1}, {})
    stream = io.StringIO()
    artifact = workspace.store.get_or_create(recipe, write).artifact
    deployments.commands.reproduce.show_protocol(artifact, "x", "Sketchy", Terminal(stream))
    lines = [" ".join(line.split()) for line in stream.getvalue().splitlines()]
    assert {"CLIP 25.0", "Ours –", "CLIP mAP 25.0 24, agrees"} <= set(lines)
    assert "method mAP (%)" in lines


def test_output_and_json(asked, cppcl, workspace, tmp_path):
    found = asked([])
    options = ("--anew", "--output", tmp_path / "out", "--json", "--workspace", workspace.root)
    result = cppcl("reproduce", "cufs", *options, code=0)
    assert (found["quick"], found["items"], found["anew"]) == (False, None, True)
    assert (tmp_path / "out" / "index.html").read_text() == "the page"
    assert (tmp_path / "out" / "table1.csv").read_text() == "a,b\n"
    assert f"page: {tmp_path / 'out' / 'index.html'}" in result.stderr
    assert result.json()["experiment"] == "reproduce-cufs"


def test_items_that_fail_are_named_at_the_end(asked, cppcl, workspace):
    asked(["a_vs_b"])
    result = cppcl("reproduce", "cufs", "--workspace", workspace.root, code=1)
    assert result.stderr.splitlines()[-2:] == [
        "cppcl: 1 of 2 items failed; what was finished is kept, so give the same command again "
        "after mending:",
        "  a_vs_b: cv: no space left",
    ]
    assert "page: " in result.stderr
