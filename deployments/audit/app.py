"""The page and its addresses."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from cppcl.audit.suspects import Suspect
from cppcl.curriculum.annotation.answers import check_annotator
from deployments.audit.database import OtherVerdictError
from deployments.audit.session import AuditSession
from deployments.web.asking import download, make_asking_app, picture_address
from deployments.web.pictures import PictureFile, PictureReader
from deployments.web.prefix import rooted
from deployments.web.requests import read_form
from deployments.web.security import Access
from tasks.audit import Audit


def make_app(session: AuditSession, access: Access) -> FastAPI:
    """Web application around a session.

    Parameters
    ----------
    session : AuditSession
        Suspects and verdicts.
    access : Access
        Who is let in.
    """
    audit = session.audit
    app, page = make_asking_app(
        access,
        "deployments.audit",
        "audit.js",
        pictures_of(audit),
        OtherVerdictError,
        experiment=audit.experiment,
        kind=audit.kind,
        protocol=audit.protocol,
    )

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

    @app.get("/verdicts.csv")
    def export() -> Response:
        name = f"{audit.experiment}-verdicts.csv"
        return download(session.export(), name, "text/csv; charset=utf-8")

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
            (picture_address(sample.id), text) for sample, text in audit.pictures_of(suspect)
        ],
    }
