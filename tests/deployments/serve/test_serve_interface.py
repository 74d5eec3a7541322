"""The interface of the search page is as it is described, whatever is sent to it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import settings
from pydantic import BaseModel
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import positive_data_acceptance

from deployments.serve import documented, interface
from deployments.serve.app import make_app
from deployments.serve.work import WorkQueue
from deployments.web.security import access_for
from tests.deployments.processes import SECONDS
from tests.deployments.serve.serving import in_thread

ACCESS = access_for("127.0.0.1", 0, "serve")
# What is described does not depend on what is served.
DESCRIPTION = make_app(None, ACCESS).openapi()
described = schemathesis.openapi.from_dict(DESCRIPTION, config=SchemathesisConfig())
SEARCH = "/api/search"
# Which names and rows there are, and what is a picture, no description can say.
UNKNOWN = (
    r"model='.*' must be one of shapes|.* as base64 .*|the picture is none of PNG, .*|"
    r"(?s:no picture has .* in its name, .*)|"
    r"(image|liked|disliked)=\d+ is no picture of .*|.*row \d+ is both .*|"
    r"example=\d+ is none of the example sketches .*"
)


PAGE = (Path(__file__).parents[3] / "docs/search-page.md").read_text()


@pytest.fixture(scope="module")
def address(live) -> Iterator[str]:
    with in_thread(make_app(live, ACCESS, WorkQueue(seconds=SECONDS))) as port:
        yield f"http://127.0.0.1:{port}"


def refused_for_what_no_description_says(context: Any, response: Any, case: Any) -> None:
    """Check of what is asked as it is described."""
    if case.path == SEARCH and case.meta.generation.mode.is_positive:
        if response.status_code in (415, 422):
            assert re.fullmatch(UNKNOWN, response.json()["error"])
        else:
            assert response.status_code in (200, 409)


@described.parametrize()
@settings(max_examples=40, derandomize=True, deadline=None, database=None)
def test_answers_are_as_described(case, address):
    case.call_and_validate(
        address,
        additional_checks=[refused_for_what_no_description_says],
        excluded_checks=[positive_data_acceptance],
    )


def test_what_is_found_is_as_described(address, live):
    """What is asked for at random is hardly ever there."""
    model = live.get(None)
    for body in (
        *({"image": row, "k": k} for row, k in ((0, 1), (59, 100))),
        *({"example": row, "model": "shapes"} for row in model.examples[:2]),
        {"picture": documented.SKETCH, "key": model.reference.key, "photo": True},
        documented.BODY["content"]["application/json"]["example"],
    ):
        case = described[SEARCH]["POST"].Case(body=body, media_type="application/json")
        response = case.call_and_validate(address)
        assert response.status_code == 200
        assert response.json()["matches"]
    for kind in ("pictures", "originals"):
        operation = described[f"/{kind}/{{key}}/{{modality}}/{{row}}"]["GET"]
        for modality, row in (("image", 0), ("sketch", model.examples[0])):
            asked = {"key": model.reference.key, "modality": modality, "row": row}
            response = operation.Case(path_parameters=asked).call_and_validate(address)
            assert response.status_code == 200
            assert response.content.startswith(b"\x89PNG")


def test_the_documented_command_asks_for_what_it_says(address, live, tmp_path):
    """In the shell that POSIX describes, with the `base64` of any system."""
    model = live.get(None)
    content = model.small["sketch"].content(("sketch", model.examples[0]))
    (tmp_path / "sketch.png").write_bytes(content)
    (command,) = re.findall(r"(?ms)^```\n(printf .*?)^```$", PAGE)
    # The options of `base64` differ between systems, and wrapped lines do not.
    shell = 'base64() { [ $# = 0 ] && command base64; }; curl() { echo "$*" >&2; cat; }; '
    ran = subprocess.run(
        ["sh", "-c", shell + command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stderr.split()[-1].endswith(SEARCH)
    asked = json.loads(ran.stdout)
    case = described[SEARCH]["POST"].Case(body=asked, media_type="application/json")
    answer = case.call_and_validate(address).json()
    assert [m["row"] for m in answer["matches"]] == [
        found.row for found in model.by_example(model.examples[0], 5)
    ]


def test_every_field_is_documented():
    models = [
        one
        for one in vars(interface).values()
        if isinstance(one, type) and issubclass(one, BaseModel) and one is not BaseModel
    ]
    fields = {name for model in models for name in model.model_fields}
    assert {"rank", "reason", "seconds_since_loaded"} <= fields
    said = PAGE.split("## For programs")[1]
    assert {
        name for name in fields if f"`{name}`" not in said and f'"{name}"' not in said
    } == set()
