"""``cppcl audit`` on a run: what it writes and says, and what the next run leaves out."""

from __future__ import annotations

import csv

import pytest

from cppcl.audit.verdicts import Verdict
from deployments.audit.database import VerdictDatabase
from tasks.samples import open_pictures, open_split

pytestmark = pytest.mark.flow


def test_pairs_and_labels_of_a_run_are_ranked(finished_run, cppcl, tmp_path):
    given = ("tiny", "--workspace", finished_run.workspace.root, "--output", tmp_path)
    said = cppcl("audit", *given, "--json", code=0).json()
    assert (said["protocol"], said["kind"], said["judged"]) == ("instance", "pairs", 7)
    assert 0 <= said["wrong_share"] <= 1
    rows = list(csv.DictReader((tmp_path / "audit.csv").read_text().splitlines()))
    assert len(rows) == 7
    assert all(row["sketch"] and row["image"] for row in rows)
    wrong = [float(row["probability_wrong"]) for row in rows]
    assert wrong == sorted(wrong, reverse=True)
    page = (tmp_path / "audit.html").read_text()
    assert page.count("<li>") == 7
    assert page.count("data:image/png") == 14
    shown = cppcl("audit", *given, "--protocol", "category", "--shown", 1, code=0).stdout
    assert "category: of 12 labels about" in shown
    assert (tmp_path / "audit.html").read_text().count("<li>") == 1


def test_what_is_not_there_is_refused(finished_run, cppcl, tmp_path):
    given = ("tiny", "--workspace", finished_run.workspace.root, "--output", tmp_path)
    for more, message in (
        (("--protocol", "instances"), "the run has instance, category; did you mean"),
        (("--method", "cca"), "--method cca: the run has cprl, centred_cosine"),
        (("--split", "0000"), "names no one split"),
        (("--shown", "0"), "--shown 0 must be at least 1"),
        (("--export", "verdicts.txt"), "give a .csv file"),
    ):
        assert message in cppcl("audit", *given, *more, code=2).stderr


def test_the_next_run_leaves_out_what_was_judged_wrong(copied_run, finished_run, cppcl, tmp_path):
    place = copied_run
    _, record = place.find_run("tiny", "split")
    table = open_pictures(place.store, place.store.resolve(record["artifacts"]["fetch"], "fetch"))
    split = place.store.resolve(record["artifacts"]["split"], "split")
    row = int(open_split(place.store, split).train_sketches[0])
    sketch = table.table.column("ids", "sketch")[row]
    group = table.table.column("groups", "sketch")[row]
    at = table.table.column("groups", "image").index(group)
    image = table.table.column("ids", "image")[at]
    database = VerdictDatabase(place.root / "audits" / "tiny.sqlite", "tiny")
    database.add(Verdict(sketch, image, group, "wrong", "", "Ada"))
    database.close()
    file = tmp_path / "verdicts.csv"
    given = ("--workspace", place.root)
    cppcl("audit", "tiny", *given, "--export", file, code=0)
    audited = ("--set", f"instance.split.audit={file}", "--json", "--until", "split")
    run = cppcl("run", finished_run.file, *given, *audited, code=0)
    assert "2 training samples are left out, 0 get another label" in run.stderr
    left = open_split(place.store, place.store.resolve(run.json()["artifacts"]["split"], "split"))
    assert row not in left.train_sketches
    assert at not in left.train_images
    assert len(left.train_sketches) == len(left.train_images) == 6
