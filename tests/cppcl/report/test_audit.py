"""The page and the table of an audit."""

from __future__ import annotations

import numpy as np

from cppcl.audit.verdicts import read_verdicts
from cppcl.report.audit import ShownSuspect, SuspectRow, audit_csv, render_audit

ROWS = [SuspectRow("s/1", "", "<cat>", "dog", -3.25, 0.875), SuspectRow("", "i/2", "d", "", 1, 0)]


def test_the_table_can_be_filled_in_by_hand():
    lines = audit_csv(ROWS).splitlines()
    assert lines[1] == "s/1,,<cat>,dog,-3.25,0.8750,,"
    filled = "\n".join([lines[0], f"{lines[1][:-1]}wrong,dog", lines[2]])
    first, second = read_verdicts(filled)
    assert (first.sketch, first.verdict, first.label) == ("s/1", "wrong", "dog")
    assert second.verdict == "skip"


def test_the_page_says_how_many_are_expected_and_shows_the_worst():
    shown = [ShownSuspect(ROWS[0], [(np.zeros((3, 5, 3), np.uint8), "s/1")])]
    page = render_audit(
        experiment="shapes",
        protocol="category",
        kind="labels",
        shown=shown,
        n_judged=200,
        wrong_share=0.105,
    )
    assert "Of 200 labels about 21 (10.5 %) are expected to be wrong; the 1 most" in page
    assert "&lt;cat&gt;</strong> → dog?" in page
    assert page.count("data:image/png") == 1
    assert "probability of being wrong 88 %, score -3.250" in page
