"""A small experiment to annotate, and clients of its page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

STAMP = "20200101T000000000000Z"


@pytest.fixture(scope="module", autouse=True)
def undrawn(blank_figures) -> None:
    """Draw no figure: tests of reports look at them."""


@pytest.fixture(scope="session")
def record_shapes(draw_pictures, extracting_here) -> Callable[..., Any]:
    """Store what a run up to its features leaves, with an extractor, and record it."""

    def make(
        folder: Path, *, extractor: str = "hog", per_class: int = 6, spoiled: str | None = None
    ) -> Any:
        from tasks.workspace import Workspace
        from tests.deployments.serve.serving import extract_shapes

        root = draw_pictures(folder / "shapes", per_class=per_class)
        if spoiled is not None:
            (root / spoiled).write_bytes(b"no picture")
        place = Workspace(folder / "workspace")
        options: dict[str, Any] = {"size": [8, 8]} if extractor == "pixels" else {}
        with extracting_here():
            table, splits, features = extract_shapes(
                place, root, shares=(0.7, 0.5), extractor=extractor, options=options
            )
        compute = {"cluster": "local", "workers": 1, "memory_per_worker": "1GiB"}
        place.record_run(
            "shapes",
            STAMP,
            {
                "experiment": "shapes",
                "artifacts": {"fetch": table.key, "split": splits[0].key},
                "all_artifacts": [str(r) for r in (table, *splits, *features.values())],
                "configuration": {"longest_side": 40, "block_rows": 5, "compute": compute},
            },
        )
        return place

    return make


@pytest.fixture(scope="session")
def shapes_place(tmp_path_factory, record_shapes) -> Any:
    """Workspace of an experiment `shapes` that stored HOG; to be read, not changed."""
    return record_shapes(tmp_path_factory.mktemp("annotated"))


@pytest.fixture(scope="session")
def annotated(shapes_place) -> Any:
    """What is annotated of it."""
    from deployments.annotate.samples import gather

    return gather(shapes_place, "shapes")


class Browser:
    """A synchronous client of an application, with the cookies of one browser."""

    def __init__(self, app: Any, base: str = "http://127.0.0.1:8765") -> None:
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url=base)

    def get(self, address: str, **options: Any) -> httpx.Response:
        return self.request("GET", address, **options)

    def post(self, address: str, **options: Any) -> httpx.Response:
        return self.request("POST", address, **options)

    def request(
        self, method: str, address: str, *, status: int | None = None, **options: Any
    ) -> httpx.Response:
        """Ask for what is answered with the status that is expected, if one is."""
        response = asyncio.run(self.client.request(method, address, **options))
        assert status in (None, response.status_code), response.text
        return response


@pytest.fixture
def database(tmp_path, annotated) -> Any:
    """An empty database of the experiment."""
    from deployments.annotate.database import AnswerDatabase

    made = AnswerDatabase(tmp_path / "answers.sqlite", "shapes", annotated.modality_of)
    yield made
    made.close()


@pytest.fixture
def session(annotated, database) -> Any:
    """A session whose clock stands still unless it is set."""
    from deployments.annotate.session import Session

    made = Session(annotated, database, clock=lambda: made.now)
    made.now = 0.0
    return made


@pytest.fixture
def open_browser(session) -> Callable[..., Browser]:
    """Browser on the page of the session, with or without a token on the server."""
    from deployments.annotate.app import make_app
    from deployments.web.security import Access, access_for

    def make(access: Access | None = None, **options: Any) -> Browser:
        return Browser(make_app(session, access or access_for("127.0.0.1", 8765)), **options)

    return make


@pytest.fixture
def browser(open_browser) -> Browser:
    """Browser on the page of a server for this machine alone."""
    return open_browser()


@pytest.fixture(scope="session")
def served_place(tmp_path_factory, draw_pictures, extracting_here) -> Any:
    """Workspace of a trained experiment `shapes`, 60 sketches and images; to be read only."""
    from tasks.workspace import Workspace
    from tests.deployments.serve.serving import train_shapes

    folder = tmp_path_factory.mktemp("served")
    place = Workspace(folder / "workspace")
    with extracting_here():
        train_shapes(place, draw_pictures(folder / "shapes", per_class=20))
    return place


@pytest.fixture(scope="session")
def live(served_place) -> Any:
    """The galleries of it."""
    from deployments.serve.live import Live

    return Live(served_place, ["shapes"])


@pytest.fixture
def search_page(live) -> Browser:
    """Browser on the search page of a server for this machine alone."""
    from deployments.serve.app import make_app
    from deployments.serve.work import WorkQueue
    from deployments.web.security import access_for

    work = WorkQueue(seconds=120)  # a machine that does other things too
    return Browser(make_app(live, access_for("127.0.0.1", 8765, "serve"), work))
