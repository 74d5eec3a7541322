"""Reading of requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import Request
from starlette.exceptions import HTTPException

from deployments.web.requests import read_body


def test_whoever_leaves_while_sending_is_no_failure_of_the_server():
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Any:
        return messages.pop(0)

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(HTTPException, match="connection") as raised:
        asyncio.run(read_body(request, 100, 5.0))
    assert raised.value.status_code == 400
