"""What ``cppcl search`` prints of titles."""

from pathlib import Path

import pytest

from deployments.commands.search import show
from tasks.model import Match


@pytest.mark.parametrize(("title", "is_shown"), [("dog face", True), ("animal", False)])
def test_titles_are_shown_where_they_say_more_than_labels(title, is_shown, capsys):
    show(Path("sketch.svg"), [Match(1, Path("1f436.svg"), title, "animal", 0.5)])
    printed = capsys.readouterr().out
    assert ("title" in printed) == ("dog face" in printed) == is_shown
    assert "animal" in printed
