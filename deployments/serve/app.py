"""The page, its JSON interface and what watches over it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import resources
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from cppcl.modality import Modality
from deployments.serve import documented
from deployments.serve import interface as out
from deployments.serve.answers import ChangedError, answered, describe_model, error_text
from deployments.serve.live import Live
from deployments.serve.maps import Maps
from deployments.serve.metrics import MEDIA_TYPE, Metrics, MetricsMiddleware
from deployments.serve.originals import SHOWN_AS_THEY_ARE, original
from deployments.serve.served_model import PictureRow, ServedModel
from deployments.serve.uploads import LARGEST_FILE, UploadError
from deployments.serve.work import BusyError, WorkQueue
from deployments.web.head import HeadAsGet
from deployments.web.kept import FOR_EVER, kept
from deployments.web.prefix import ProxyPrefix, rooted
from deployments.web.refusals import add_refusals
from deployments.web.requests import read_body
from deployments.web.security import Access, guard
from deployments.web.static_files import add_static_files
from deployments.web.templating import environment

LARGEST_BODY = LARGEST_FILE * 4 // 3 + 4096
BODY_SECONDS = 15.0
RETRY_SECONDS = "1"
Row = Annotated[int, Path(ge=0)]


def make_app(live: Live, access: Access, work: WorkQueue | None = None) -> FastAPI:
    """Web application around models.

    Parameters
    ----------
    live : Live
        What is searched.
    access : Access
        Who is let in.
    work : WorkQueue, optional
        Where searches run.
    """
    work, metrics, maps = work or WorkQueue(), Metrics(), Maps(live)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        live.idle = work.idle
        preparing = live.prepare()
        yield
        live.stopping.set()
        work.close()
        maps.close()
        preparing.join()

    app = FastAPI(
        title="cppcl serve",
        version="1",
        description="Pictures that a sketch means.",
        root_path_in_servers=False,  # it would keep what any client names as the prefix
        servers=[{"url": "."}],
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        responses=documented.STRANGERS,
        lifespan=lifespan,
    )
    app.middleware("http")(guard(access))
    app.add_middleware(MetricsMiddleware, metrics=metrics)
    app.add_middleware(HeadAsGet)
    app.add_middleware(ProxyPrefix)
    templates = environment("deployments.serve", "serve.css")
    add_static_files(app, *(resources.files("deployments.serve") / "static").iterdir())

    def page(
        template: str, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any
    ) -> Response:
        return HTMLResponse(templates.get_template(template).render(**values), status, headers)

    @app.get("/", include_in_schema=False)
    def start() -> Response:
        live.look_for_newer()
        names = [(text, live.get(text).n_pictures) for text in live.texts]
        return page("search.html", models=names)

    @app.get("/map", include_in_schema=False)
    def map_page() -> Response:
        return page("map.html", models=live.texts)

    @app.get("/api/map/{key}", responses=documented.refusals(404, 500, 503))
    def map_of(key: str) -> out.MapOut:
        model = live.by_key(key)
        if model is None:
            raise HTTPException(404, "There is no such gallery; ask /api/models for its key.")
        return maps.get(model)

    @app.get("/api/models", responses=documented.refusals(500))
    def models() -> out.ModelsOut:
        live.look_for_newer()
        found = [describe_model(live.get(text)) for text in live.texts]
        for model in found:
            place_under_proxy(model.examples)
        return out.ModelsOut(models=found)

    @app.post(
        "/api/search",
        responses=documented.SEARCHED,
        openapi_extra={"requestBody": documented.BODY},
    )
    async def search(request: Request) -> out.Answer:
        begun = time.perf_counter()
        live.look_for_newer()
        body = await read_body(request, LARGEST_BODY, BODY_SECONDS)
        answer = await work.run(answered, live, body)
        place_under_proxy(answer.matches)
        answer.seconds = time.perf_counter() - begun
        return answer

    def place(key: str, modality: Modality, row: int) -> tuple[ServedModel, PictureRow]:
        model = live.by_key(key)
        if model is None or (modality, row) not in model.small[modality]:
            raise HTTPException(404, "There is no such picture; search again.")
        return model, (modality, row)

    @app.get(
        "/pictures/{key}/{modality}/{row}",
        response_class=Response,
        responses=documented.content("A small picture.", "image/png", "image/jpeg")
        | documented.UNCHANGED
        | documented.shown_refusals(404, 422, 500),
    )
    def thumbnail(key: str, modality: Modality, row: Row, request: Request) -> Response:
        model, found = place(key, modality, row)
        content, media_type = model.small[modality][found]
        return kept(request, content, media_type, FOR_EVER)

    @app.get(
        "/originals/{key}/{modality}/{row}",
        response_class=Response,
        responses=documented.content("A picture.", *SHOWN_AS_THEY_ARE.values())
        | documented.UNCHANGED
        | documented.shown_refusals(404, 422, 500),
    )
    def large(key: str, modality: Modality, row: Row, request: Request) -> Response:
        model, found = place(key, modality, row)
        content, media_type = original(model.large[modality], found)
        return kept(request, content, media_type, FOR_EVER)

    @app.get("/healthz", responses=documented.shown_refusals(500))
    def health() -> out.Health:
        live.look_for_newer()
        states = {
            text: out.ServedOut(
                key=served.model.reference.key,
                n_pictures=served.model.n_pictures,
                seconds_since_loaded=time.time() - served.model.loaded_at,
                problem=served.problem,
            )
            for text, served in live.served.items()
        }
        well = all(state.problem is None for state in states.values())
        return out.Health(status="ok" if well else "degraded", models=states)

    @app.get(
        "/metrics",
        response_class=Response,
        responses=documented.content("Text format of Prometheus.", "text/plain")
        | documented.shown_refusals(500),
    )
    def measured() -> Response:
        return Response(metrics.text(), headers={"Content-Type": MEDIA_TYPE})

    failed = add_refusals(app, page, ChangedError)

    @app.exception_handler(RequestValidationError)
    def malformed(request: Request, error: RequestValidationError) -> Response:
        return failed(request, 422, error_text(error.errors()))

    @app.exception_handler(BusyError)
    def busy(request: Request, error: BusyError) -> Response:
        return failed(request, 503, str(error), {"Retry-After": RETRY_SECONDS})

    @app.exception_handler(UploadError)
    def unusable(request: Request, error: UploadError) -> Response:
        return failed(request, error.status, str(error))

    return app


def place_under_proxy(shown: Sequence[out.MatchOut | out.ExampleOut]) -> None:
    """Let the addresses of pictures begin with the prefix of a reverse proxy."""
    for one in shown:
        one.thumbnail, one.original = rooted(one.thumbnail), rooted(one.original)
