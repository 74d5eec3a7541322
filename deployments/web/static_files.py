"""Style sheets and scripts of a page."""

from __future__ import annotations

from importlib.resources.abc import Traversable

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from deployments.web.kept import ASK_AGAIN, kept

KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript"}


def add_static_files(app: FastAPI, *files: Traversable) -> None:
    """Serve these files under ``/static/``, and no icon.

    Parameters
    ----------
    app : FastAPI
        The application.
    *files : Traversable
        Files whose names end with one of `KINDS`.
    """
    static = {
        file.name: (file.read_bytes(), KINDS[file.name.rpartition(".")[2]]) for file in files
    }

    @app.get("/static/{name}", include_in_schema=False)
    def static_file(name: str, request: Request) -> Response:
        if name not in static:
            raise HTTPException(404, "There is no such file.")
        return kept(request, *static[name], ASK_AGAIN)

    @app.get("/favicon.ico", include_in_schema=False)
    def icon() -> Response:
        return Response(status_code=204)
