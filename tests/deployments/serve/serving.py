"""A small trained model, pictures to search with, and servers of it."""

from __future__ import annotations

import base64
import io
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from storage import Reference
from tasks.workspace import STAMP, Workspace
from tests.deployments.processes import started


def extract_shapes(
    place: Workspace,
    root: Path,
    *,
    shares: tuple[float, ...] = (0.5,),
    extractor: str = "hog",
    options: dict[str, Any] | None = None,
) -> tuple[Reference, list[Reference], dict[str, Reference]]:
    """Store table, splits and features of class folders, as a run does.

    Features are to be extracted in this process, see `extracting_here`.
    """
    from tasks.stages.extract import extract_features
    from tasks.stages.fetch import fetch_data
    from tasks.stages.split import split_table

    given = {"root": root, "pairing": "name"}
    table = fetch_data(workspace=place, name="folder", options=given, key_parameters={}).reference
    of_table: dict[str, Any] = {"workspace": place, "table": table}
    splits = [
        split_table(
            **of_table,
            rule="category",
            options={"train_share": share, "minimum_groups": 2},
            seed=0,
        ).reference
        for share in shares
    ]
    features = {
        f"{modality}_features": extract_features(
            **of_table,
            modality=modality,
            extractor=extractor,
            options=options or {},
            longest_side=40,
            block_rows=5,
            max_bad_share=0.5,
        ).reference
        for modality in ("sketch", "image")
    }
    return table, splits, features


def train_shapes(
    place: Workspace, root: Path, *, name: str = "shapes", **described: Any
) -> Reference:
    """Store and record what a run on class folders leaves; returns the codes' reference."""
    from tasks.stages.encode import encode_features
    from tasks.stages.train import train_method, training_recipe

    table, (split,), features = extract_shapes(place, root, **described)
    recipe = training_recipe(
        table=table,
        split=split,
        **features,
        curricula=None,
        method="centred_cosine",
        options={},
        target="labels",
    )
    model = train_method(workspace=place, recipe=recipe).reference
    codes = encode_features(workspace=place, model=model, **features).reference
    record(place, name, [table, split, *features.values(), model, codes])
    return codes


def record(place: Workspace, name: str, references: list[Reference]) -> None:
    """Record a run that made these artifacts."""
    place.record_run(
        name,
        datetime.now(UTC).strftime(STAMP),
        {
            "experiment": name,
            "artifacts": {reference.stage: reference.key for reference in references},
            "all_artifacts": [str(reference) for reference in references],
            "configuration": {"evaluation": {"metric": "cosine"}},
        },
    )


def encoded(content: bytes) -> str:
    """Base64 of bytes."""
    return base64.b64encode(content).decode()


def saved(picture: np.ndarray | Image.Image, form: str = "PNG", **options: Any) -> bytes:
    """File of a picture."""
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    file = io.BytesIO()
    image.save(file, format=form, **options)
    return file.getvalue()


@contextmanager
def serving(place: Workspace, *arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start ``cppcl serve`` as a user does; gives its process and its address."""
    with started("serve", *arguments, "--port", "0", "--workspace", place.root) as found:
        yield found


@contextmanager
def in_thread(app: Any, port: int = 0) -> Iterator[int]:
    """Serve an application in a thread of this process; gives its port."""
    import uvicorn

    from deployments.web.listening import SETTINGS, listening_socket

    with listening_socket("127.0.0.1", port) as listener:
        settings = SETTINGS | {"log_level": "error"}
        server = uvicorn.Server(uvicorn.Config(app, **settings))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(60)
