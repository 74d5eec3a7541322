"""What tests of drawings share."""

import pytest

from cppcl.pictures.svg.render import render_svg


@pytest.fixture(params=["apart", "here"])
def drawn_apart_or_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawings are rendered alike in the process of their own and in that of the test."""
    if request.param == "here":
        monkeypatch.setattr("cppcl.pictures.svg.process.render_apart", render_svg)
