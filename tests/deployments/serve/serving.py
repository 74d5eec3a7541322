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


def train_shapes(place: Workspace, root: Path, *, name: str = "shapes", share: float = 0.5) -> Any:
    """Store and record what a run on class folders leaves; returns the codes' reference.

    Features are to be extracted in this process, see `extracting_here`.
    """
    from tasks.stages.encode import encode_features
    from tasks.stages.extract import extract_features
    from tasks.stages.fetch import fetch_data
    from tasks.stages.split import split_table
    from tasks.stages.train import train_method, training_recipe

    options = {"root": root, "pairing": "name"}
    table = fetch_data(workspace=place, name="folder", options=options, key_parameters={})
    split = split_table(
        workspace=place,
        table=table.reference,
        rule="category",
        options={"train_share": share, "minimum_groups": 2},
        seed=0,
    )
    features = {
        f"{modality}_features": extract_features(
            workspace=place,
            table=table.reference,
            modality=modality,
            extractor="hog",
            options={},
            longest_side=40,
            block_rows=5,
            max_bad_share=0.5,
        ).reference
        for modality in ("sketch", "image")
    }
    recipe = training_recipe(
        table=table.reference,
        split=split.reference,
        **features,
        curricula=None,
        method="centred_cosine",
        options={},
        target="labels",
    )
    trained = train_method(workspace=place, recipe=recipe)
    codes = encode_features(workspace=place, model=trained.reference, **features)
    made = [table.reference, split.reference, *features.values(), trained.reference]
    record(place, name, [*made, codes.reference])
    return codes.reference


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
def in_thread(app: Any) -> Iterator[int]:
    """Serve an application in a thread of this process; gives its port."""
    import uvicorn

    from deployments.web.listening import SETTINGS, listening_socket

    with listening_socket("127.0.0.1", 0) as listener:
        settings = SETTINGS | {"log_level": "error"}
        server = uvicorn.Server(uvicorn.Config(app, **settings))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(60)
