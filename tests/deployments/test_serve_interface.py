"""The interface of the search page is as it is described, whatever is sent to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import settings
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import positive_data_acceptance

from deployments.serve import documented
from deployments.serve.app import make_app
from deployments.serve.work import Work
from deployments.web.security import access_for
from tests.deployments.processes import SECONDS
from tests.deployments.serving import in_thread

ACCESS = access_for("127.0.0.1", 0, "serve")
# What is described does not depend on what is served.
DESCRIPTION = make_app(None, ACCESS).openapi()  # type: ignore[arg-type]
described = schemathesis.openapi.from_dict(DESCRIPTION, config=SchemathesisConfig())
SEARCH = "/api/search"
# Which names and rows there are, and what is a picture, no description can say.
UNKNOWN = (
    r"model='.*' must be one of shapes|.* as base64 .*|the picture is none of PNG, .*|"
    r"image=\d+ is no picture of .*|example=\d+ is none of the example sketches .*"
)


@pytest.fixture(scope="module")
def address(live: Any) -> Iterator[str]:
    with in_thread(make_app(live, ACCESS, Work(seconds=SECONDS))) as port:
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
def test_answers_are_as_described(case: Any, address: str) -> None:
    case.call_and_validate(
        address,
        additional_checks=[refused_for_what_no_description_says],
        excluded_checks=[positive_data_acceptance],
    )


def test_what_is_found_is_as_described(address: str, live: Any) -> None:
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
