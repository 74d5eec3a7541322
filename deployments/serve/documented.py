"""Descriptions of answers in the OpenAPI document, beside what types give."""

from __future__ import annotations

from typing import Any

from deployments.serve import interface as out

Responses = dict[int | str, dict[str, Any]]


def refusals(*statuses: int) -> Responses:
    """Refusals in JSON."""
    return {status: {"model": out.Refusal} for status in statuses}


def shown_refusals(*statuses: int) -> Responses:
    """Refusals in JSON, or as a page where a browser asks for something to be shown."""
    page: dict[str, Any] = {"content": {"text/html": {}}}
    return {status: refusal | page for status, refusal in refusals(*statuses).items()}


def content(description: str, *media_types: str) -> Responses:
    """What is found, which is no JSON."""
    return {200: {"description": description, "content": {name: {} for name in media_types}}}


STRANGERS: Responses = {
    status: refusal | {"content": {"text/plain": {}}}
    for status, refusal in refusals(401, 403, 421).items()
}
"""Answers at any address to a client that is not let in."""
UNCHANGED: Responses = {304: {"description": "The client has it already."}}
SEARCHED = refusals(403, 408, 409, 413, 415, 422, 500, 503)
SKETCH = (
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgAQAAAABbAUdZAAAAdUlEQVR42m2OoQ0CQRQFZx/kFAkSBMlSwnXAlYKkDATl"
    "UATuLBJFsBgCCLJHfvIQqyCYUS/zJhkQPxiW4MPIoj+Dc7G8braEvVLAJQ23yb6O39AKYMz823IP1JxeR7F4Qnn0OUXM"
    "Wmk37aqUzbUe4ZKd/rR8AF0DK1u4/DHTAAAAAElFTkSuQmCC"
)
"""A face in a few lines, to try a search with."""


def query() -> dict[str, Any]:
    """What may be asked, with the rule that one of three is given and that it is no null."""
    row = {"type": "integer", "minimum": 0}
    kinds: dict[str, Any] = {"picture": {"type": "string"}, "example": row, "image": row}
    ways = []
    for name, kind in kinds.items():
        others: dict[str, Any] = {other: {"type": "null"} for other in kinds if other != name}
        photo = {} if name == "picture" else {"photo": {"const": False}}
        given = {name: kind, **others, **photo}
        ways.append({"title": f"By {name}", "required": [name], "properties": given})
    return out.Query.model_json_schema() | {"oneOf": ways}


BODY: dict[str, Any] = {
    "required": True,
    "content": {"application/json": {"schema": query(), "example": {"picture": SKETCH, "k": 5}}},
}
