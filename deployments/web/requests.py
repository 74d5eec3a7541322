"""What a request holds, within bounds, and in what form whoever sent it takes an error."""

from __future__ import annotations

import asyncio

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from cppcl.errors import InputError


def wants_json(request: Request) -> bool:
    """Whether the script of the page asks, and not a browser for a page."""
    return "application/json" in request.headers.get("accept", "")


def wants_page(request: Request) -> bool:
    """Whether a browser asks for something to be shown; errors are JSON for everyone else."""
    is_interface = request.url.path.startswith("/api/")
    return not is_interface and "text/html" in request.headers.get("accept", "")


async def read_body(request: Request, largest: int, seconds: float) -> bytes:
    """Body of a request.

    Raises
    ------
    HTTPException
        It is compressed (415), or larger than allowed (413), which its head may say already; or
        it took longer (408), or whoever sent it has gone (400).
    """
    if codings := _codings(request):
        raise HTTPException(
            415,
            f"Content-Encoding {codings!r:.100} is not taken; send the body as it is.",
            {"Accept-Encoding": "identity"},
        )
    too_large = HTTPException(413, f"At most {largest} bytes are taken; send less.")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > largest:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                body += part
                if len(body) > largest:
                    raise too_large
    except TimeoutError as error:
        raise HTTPException(408, f"The request was not whole after {seconds:g} s.") from error
    except ClientDisconnect as error:
        raise HTTPException(400, "The connection ended before the request was whole.") from error
    return bytes(body)


def decode(body: bytes) -> str:
    """Text of UTF-8 bytes."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"what was sent is no UTF-8 text ({error})") from error


def _codings(request: Request) -> str:
    """Codings of the body, but for the one that changes nothing."""
    named = ",".join(request.headers.getlist("content-encoding")).lower().split(",")
    return ", ".join(name.strip() for name in named if name.strip() not in ("", "identity"))
