"""What a page answers where it cannot do what was asked: a page or, to programs, JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from cppcl.errors import CppclError, InputError, PictureError
from deployments.web.requests import wants_page
from deployments.web.security import BROKEN, broken


def add_refusals(
    app: FastAPI,
    page: Callable[..., Response],
    conflict: type[CppclError],
) -> Callable[..., Response]:
    """Let an application explain every error.

    Parameters
    ----------
    app : FastAPI
        The application.
    page : callable
        Renders a template: ``page(template, status, headers, **values)``.
    conflict : type
        Error of a request that does not fit what is there by now; its status is 409.

    Returns
    -------
    callable
        What errors of a page's own are answered with: ``failed(request, status, message,
        headers)``.
    """

    def failed(
        request: Request, status: int, message: str, headers: Mapping[str, str] | None = None
    ) -> Response:
        if not wants_page(request):
            return JSONResponse({"error": message}, status, headers)
        title = HTTPStatus(status).phrase
        return page("error.html", status, headers, title=title, message=message)

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        return failed(request, error.status_code, str(error.detail), error.headers)

    @app.exception_handler(CppclError)
    def wrong(request: Request, error: CppclError) -> Response:
        statuses = {conflict: 409, PictureError: 404, InputError: 422}
        kinds = (statuses[kind] for kind in statuses if isinstance(error, kind))
        return failed(request, next(kinds, 500), str(error))

    @app.exception_handler(Exception)
    def unforeseen(request: Request, error: Exception) -> Response:
        return broken(failed(request, 500, BROKEN))

    return failed
