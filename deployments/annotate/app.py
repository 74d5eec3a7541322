"""The page and its addresses."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any, cast
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from starlette.exceptions import HTTPException

from cppcl.curriculum.annotation.answers import TableFormat, check_annotator
from cppcl.errors import InputError
from cppcl.modality import Modality
from deployments.annotate.database import ContradictionError
from deployments.annotate.samples import AnnotationSet
from deployments.annotate.session import Question, Session
from deployments.web.head import HeadAsGet
from deployments.web.kept import A_DAY, ASK_AGAIN, kept
from deployments.web.pictures import PictureFile, PictureReader
from deployments.web.prefix import ProxyPrefix, rooted
from deployments.web.refusals import add_refusals
from deployments.web.requests import decode, read_body, read_form, wants_json
from deployments.web.security import Access, guard
from deployments.web.templating import environment

LARGEST_IMPORT = 32 * 2**20
IMPORT_SECONDS = 120.0
LONGEST_ID = 1024
STATIC = {
    "asking.css": ("deployments.web", "text/css; charset=utf-8"),
    "annotate.js": ("deployments.annotate", "text/javascript"),
}
KINDS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
PLURALS = {"sketch": "sketches", "image": "images"}


def make_app(session: Session, access: Access) -> FastAPI:
    """Web application around a session.

    Parameters
    ----------
    session : Session
        Pictures, pairs and answers.
    access : Access
        Who is let in.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.middleware("http")(guard(access))
    app.add_middleware(HeadAsGet)
    app.add_middleware(ProxyPrefix)
    pictures = pictures_of(session.annotated)
    templates = environment("deployments.annotate")
    static = {
        name: ((resources.files(package) / "static" / name).read_bytes(), kind)
        for name, (package, kind) in STATIC.items()
    }
    modalities = tuple(session.annotated.modalities)

    def page(
        template: str, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any
    ) -> Response:
        text = templates.get_template(template).render(
            experiment=session.annotated.experiment, plurals=PLURALS, **values
        )
        return HTMLResponse(text, status, headers)

    def modality_of(values: Mapping[str, str]) -> Modality:
        modality = values.get("modality", "")
        if modality not in modalities:
            raise InputError(f"modality={modality!r:.200} must be one of {', '.join(modalities)}")
        return modality

    def state(annotator: str, modality: Modality, *, hold: bool = False) -> dict[str, Any]:
        question = session.question(annotator, modality, hold=hold)
        progress = session.progress(annotator, modality)
        return {
            "question": None if question is None else question_for_page(question),
            "progress": {
                "proposals": progress.n_proposals,
                "answered": progress.n_answered,
                "mine": progress.n_mine,
                "seconds": progress.seconds,
                "alpha": progress.agreement.alpha,
                "shared": progress.agreement.n_pairs,
            },
        }

    def reply(request: Request, annotator: str, modality: Modality) -> Response:
        current = state(annotator, modality, hold=True)
        if wants_json(request):
            return JSONResponse(current)
        query = urlencode({"annotator": annotator, "modality": modality})
        return RedirectResponse(rooted(f"/ask?{query}"), 303)

    @app.get("/")
    def start() -> Response:
        progress = {modality: session.progress(None, modality) for modality in modalities}
        return page("start.html", progress=progress, work=session.work())

    @app.get("/ask")
    def ask(request: Request) -> Response:
        modality = modality_of(request.query_params)
        annotator = check_annotator(request.query_params.get("annotator", ""))
        current = state(annotator, modality)
        if wants_json(request):
            return JSONResponse(current)
        return page("ask.html", annotator=annotator, modality=modality, **current)

    @app.post("/ask")
    async def begin(request: Request) -> Response:
        form = await read_form(request)
        modality, annotator = modality_of(form), check_annotator(form.get("annotator", ""))
        return await run_in_threadpool(reply, request, annotator, modality)

    @app.post("/answer")
    async def answer(request: Request) -> Response:
        form = await read_form(request)
        modality, annotator = modality_of(form), check_annotator(form.get("annotator", ""))
        given = (form.get(name) for name in ("left", "right", "easier", "seconds"))
        await run_in_threadpool(session.answer, annotator, modality, *given)
        return await run_in_threadpool(reply, request, annotator, modality)

    @app.post("/undo")
    async def undo(request: Request) -> Response:
        form = await read_form(request)
        modality, annotator = modality_of(form), check_annotator(form.get("annotator", ""))
        if not await run_in_threadpool(session.undo, annotator, modality):
            raise HTTPException(409, "There is no answer of yours to take back.")
        return await run_in_threadpool(reply, request, annotator, modality)

    @app.get("/picture")
    def picture(request: Request) -> Response:
        name = request.query_params.get("id", "")
        if name not in pictures:
            raise HTTPException(404, "There is no such picture.")
        content, media_type = pictures[name]
        return kept(request, content, media_type, A_DAY)

    @app.get("/answers.{kind}")
    def export(kind: str, request: Request) -> Response:
        if kind not in KINDS:
            raise HTTPException(404, "Answers come as answers.csv or answers.jsonl.")
        chosen = modality_of(request.query_params) if "modality" in request.query_params else None
        text = session.export(cast(TableFormat, kind), chosen)
        name = f"{session.annotated.experiment}-{chosen or 'all'}-answers.{kind}"
        disposition = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
        return Response(text, media_type=KINDS[kind], headers=disposition)

    @app.post("/import")
    async def take_in(request: Request) -> Response:
        kind = request.query_params.get("kind", "")
        if kind not in KINDS:
            raise InputError(f"kind={kind!r:.200} must be one of {', '.join(KINDS)}")
        text = decode(await read_body(request, LARGEST_IMPORT, IMPORT_SECONDS))
        report = await run_in_threadpool(session.take_in, text, cast(TableFormat, kind))
        return JSONResponse(vars(report))

    @app.get("/static/{name}")
    def static_file(name: str, request: Request) -> Response:
        if name not in static:
            raise HTTPException(404, "There is no such file.")
        content, kind = static[name]
        return kept(request, content, kind, ASK_AGAIN)

    @app.get("/favicon.ico")
    def icon() -> Response:
        return Response(status_code=204)

    add_refusals(app, page, ContradictionError)
    return app


def pictures_of(annotated: AnnotationSet) -> PictureReader[str]:
    """Training pictures by the ids of their samples."""
    samples = (sample for side in annotated.modalities.values() for sample in side.samples)
    return PictureReader(annotated.root, {s.id: PictureFile(s.path, s.sha256) for s in samples})


def question_for_page(question: Question) -> dict[str, Any]:
    """Question as plain data, with the addresses of its pictures."""
    shown = {
        side: {"id": sample.id, "address": rooted(f"/picture?{urlencode({'id': sample.id})}")}
        for side, sample in (("left", question.left), ("right", question.right))
    }
    return {**shown, "label": question.left.label, "proposed": question.proposed}
