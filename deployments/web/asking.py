"""What pages share that ask people about the training pictures of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from cppcl.errors import InputError
from deployments.web.head import HeadAsGet
from deployments.web.kept import A_DAY, kept
from deployments.web.pictures import PictureReader
from deployments.web.prefix import ProxyPrefix, rooted
from deployments.web.refusals import add_refusals
from deployments.web.security import Access, guard
from deployments.web.static_files import add_static_files
from deployments.web.templating import environment


def make_asking_app(
    access: Access,
    package: str,
    script: str,
    pictures: PictureReader[str],
    contradiction: type[InputError],
    **common: Any,
) -> tuple[FastAPI, Callable[..., Response]]:
    """Application that shows pictures, its files and its errors.

    Parameters
    ----------
    access : Access
        Who is let in.
    package : str
        Package of the page, with folders ``templates`` and ``static``.
    script : str
        Its file of JavaScript.
    pictures : PictureReader
        What ``/picture?id=`` shows.
    contradiction : type
        Error of an answer that contradicts one given before; its status is 409.
    **common
        Values that every template takes.

    Returns
    -------
    app : FastAPI
        The application.
    page : callable
        Renders a template: ``page(template, status, headers, **values)``.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.middleware("http")(guard(access))
    app.add_middleware(HeadAsGet)
    app.add_middleware(ProxyPrefix)
    templates = environment(package, "asking.css")
    shared = resources.files("deployments.web") / "static" / "asking.css"
    add_static_files(app, shared, resources.files(package) / "static" / script)

    def page(
        template: str, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any
    ) -> Response:
        text = templates.get_template(template).render(**common, **values)
        return HTMLResponse(text, status, headers)

    @app.get("/picture")
    def picture(request: Request) -> Response:
        name = request.query_params.get("id", "")
        if name not in pictures:
            raise HTTPException(404, "There is no such picture.")
        content, media_type = pictures[name]
        return kept(request, content, media_type, A_DAY)

    add_refusals(app, page, contradiction)
    return app, page


def picture_address(sample_id: str) -> str:
    """Where a page shows the picture of a sample."""
    return rooted(f"/picture?{urlencode({'id': sample_id})}")


def download(text: str, name: str, media_type: str) -> Response:
    """A file to be saved under a name."""
    disposition = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
    return Response(text, media_type=media_type, headers=disposition)
