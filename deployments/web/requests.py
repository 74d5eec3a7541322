"""What a request holds, within bounds."""

from __future__ import annotations

import asyncio

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from cppcl.errors import InputError


def wants_json(request: Request) -> bool:
    """Whether the script of the page asks, and not a browser for a page."""
    return "application/json" in request.headers.get("accept", "")


async def read_body(request: Request, largest: int, seconds: float | None = None) -> bytes:
    """Body of a request.

    Raises
    ------
    HTTPException
        It is larger than allowed (413), took longer (408), or whoever sent it has gone (400).
    """
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                body += part
                if len(body) > largest:
                    raise HTTPException(413, f"More than {largest} bytes were sent.")
    except TimeoutError as error:
        raise HTTPException(408, f"The request was not whole after {seconds} s.") from error
    except ClientDisconnect as error:
        raise HTTPException(400, "The connection ended before the request was whole.") from error
    return bytes(body)


def decode(body: bytes) -> str:
    """Text of UTF-8 bytes."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"what was sent is no UTF-8 text ({error})") from error
