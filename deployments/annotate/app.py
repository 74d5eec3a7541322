"""The page and its addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.exceptions import HTTPException

from cppcl.curriculum.annotation.answers import TableFormat, check_annotator
from cppcl.errors import InputError
from cppcl.modality import Modality
from deployments.annotate.database import ContradictionError
from deployments.annotate.samples import AnnotationSet
from deployments.annotate.session import Question, Session
from deployments.web.asking import download, make_asking_app, picture_address
from deployments.web.pictures import PictureFile, PictureReader
from deployments.web.prefix import rooted
from deployments.web.requests import decode, read_body, read_form, wants_json
from deployments.web.security import Access

LARGEST_IMPORT = 32 * 2**20
IMPORT_SECONDS = 120.0
LONGEST_ID = 1024
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
    annotated = session.annotated
    modalities = tuple(annotated.modalities)
    app, page = make_asking_app(
        access,
        "deployments.annotate",
        "annotate.js",
        pictures_of(annotated),
        ContradictionError,
        experiment=annotated.experiment,
        plurals=PLURALS,
    )

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

    @app.get("/answers.{kind}")
    def export(kind: str, request: Request) -> Response:
        if kind not in KINDS:
            raise HTTPException(404, "Answers come as answers.csv or answers.jsonl.")
        chosen = modality_of(request.query_params) if "modality" in request.query_params else None
        text = session.export(cast(TableFormat, kind), chosen)
        name = f"{annotated.experiment}-{chosen or 'all'}-answers.{kind}"
        return download(text, name, KINDS[kind])

    @app.post("/import")
    async def take_in(request: Request) -> Response:
        kind = request.query_params.get("kind", "")
        if kind not in KINDS:
            raise InputError(f"kind={kind!r:.200} must be one of {', '.join(KINDS)}")
        text = decode(await read_body(request, LARGEST_IMPORT, IMPORT_SECONDS))
        report = await run_in_threadpool(session.take_in, text, cast(TableFormat, kind))
        return JSONResponse(vars(report))

    return app


def pictures_of(annotated: AnnotationSet) -> PictureReader[str]:
    """Training pictures by the ids of their samples."""
    samples = (sample for side in annotated.modalities.values() for sample in side.samples)
    return PictureReader(annotated.root, {s.id: PictureFile(s.path, s.sha256) for s in samples})


def question_for_page(question: Question) -> dict[str, Any]:
    """Question as plain data, with the addresses of its pictures."""
    shown = {
        side: {"id": sample.id, "address": picture_address(sample.id)}
        for side, sample in (("left", question.left), ("right", question.right))
    }
    return {**shown, "label": question.left.label, "proposed": question.proposed}
