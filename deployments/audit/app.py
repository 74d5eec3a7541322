"""The page and its addresses."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from cppcl.audit.suspects import Suspect
from cppcl.curriculum.annotation.answers import check_annotator
from deployments.audit.database import OtherVerdictError
from deployments.audit.session import AuditSession
from deployments.web.head import HeadAsGet
from deployments.web.kept import A_DAY, ASK_AGAIN, kept
from deployments.web.pictures import PictureFile, PictureReader
from deployments.web.prefix import ProxyPrefix, rooted
from deployments.web.refusals import add_refusals
from deployments.web.requests import read_form
from deployments.web.security import Access, guard
from deployments.web.templating import environment
from tasks.audit import Audit

STATIC = {
    "asking.css": ("deployments.web", "text/css; charset=utf-8"),
    "audit.js": ("deployments.audit", "text/javascript"),
}


def make_app(session: AuditSession, access: Access) -> FastAPI:
    """Web application around a session.

    Parameters
    ----------
    session : AuditSession
        Suspects and verdicts.
    access : Access
        Who is let in.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.middleware("http")(guard(access))
    app.add_middleware(HeadAsGet)
    app.add_middleware(ProxyPrefix)
    audit = session.audit
    pictures = pictures_of(audit)
    templates = environment("deployments.audit")
    static = {
        name: ((resources.files(package) / "static" / name).read_bytes(), kind)
        for name, (package, kind) in STATIC.items()
    }

    def page(
        template: str, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any
    ) -> Response:
        text = templates.get_template(template).render(
            experiment=audit.experiment, kind=audit.kind, protocol=audit.protocol, **values
        )
        return HTMLResponse(text, status, headers)

    def next_question(annotator: str) -> Response:
        return RedirectResponse(rooted(f"/ask?{urlencode({'annotator': annotator})}"), 303)

    @app.get("/")
    def start() -> Response:
        return page("start.html", progress=session.progress(), expected=audit.n_expected)

    @app.get("/ask")
    def ask(request: Request) -> Response:
        annotator = check_annotator(request.query_params.get("annotator", ""))
        suspect = session.question(annotator)
        return page(
            "ask.html",
            annotator=annotator,
            question=None if suspect is None else question_for_page(audit, suspect),
            progress=session.progress(annotator),
        )

    @app.post("/answer")
    async def answer(request: Request) -> Response:
        form = await read_form(request)
        annotator = check_annotator(form.get("annotator", ""))
        names = ("sketch", "image", "given", "verdict", "seconds")
        given = (form.get(name, "") for name in names)
        await run_in_threadpool(session.answer, annotator, *given)
        return next_question(annotator)

    @app.post("/undo")
    async def undo(request: Request) -> Response:
        form = await read_form(request)
        annotator = check_annotator(form.get("annotator", ""))
        if not await run_in_threadpool(session.undo, annotator):
            raise HTTPException(409, "There is no verdict of yours to take back.")
        return next_question(annotator)

    @app.get("/picture")
    def picture(request: Request) -> Response:
        name = request.query_params.get("id", "")
        if name not in pictures:
            raise HTTPException(404, "There is no such picture.")
        content, media_type = pictures[name]
        return kept(request, content, media_type, A_DAY)

    @app.get("/verdicts.csv")
    def export() -> Response:
        name = f"{audit.experiment}-verdicts.csv"
        disposition = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
        kind = "text/csv; charset=utf-8"
        return Response(session.export(), media_type=kind, headers=disposition)

    @app.get("/static/{name}")
    def static_file(name: str, request: Request) -> Response:
        if name not in static:
            raise HTTPException(404, "There is no such file.")
        content, kind = static[name]
        return kept(request, content, kind, ASK_AGAIN)

    @app.get("/favicon.ico")
    def icon() -> Response:
        return Response(status_code=204)

    add_refusals(app, page, OtherVerdictError)
    return app


def pictures_of(audit: Audit) -> PictureReader[str]:
    """Training pictures by the ids of their samples."""
    samples = (sample for side in audit.samples.values() for sample in side)
    return PictureReader(audit.root, {s.id: PictureFile(s.path, s.sha256) for s in samples})


def question_for_page(audit: Audit, suspect: Suspect) -> dict[str, Any]:
    """Suspect as plain data, with the addresses of its pictures."""
    sketch, image, given = audit.item_of(suspect)
    return {
        "sketch": sketch,
        "image": image,
        "given": given,
        "suggested": suspect.suggested,
        "wrong": f"{100 * suspect.probability_wrong:.0f} %",
        "pictures": [
            (rooted(f"/picture?{urlencode({'id': sample.id})}"), text)
            for sample, text in audit.pictures_of(suspect)
        ],
    }
