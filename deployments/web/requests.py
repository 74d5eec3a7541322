"""Bodies of requests, within limits, and the form in which a client wants errors."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from cppcl.errors import InputError
from deployments.web.prefix import route_path

LARGEST_FORM = 16 * 2**10
FORM_SECONDS = 15.0


def wants_json(request: Request) -> bool:
    """True if the script of the page sent this request, rather than a browser for a page."""
    return "application/json" in request.headers.get("accept", "")


def wants_page(request: Request) -> bool:
    """True if a browser wants a page; errors are JSON for all other clients."""
    is_interface = route_path(request.scope).startswith("/api/")
    return not is_interface and "text/html" in request.headers.get("accept", "")


async def read_body(request: Request, largest: int, seconds: float) -> bytes:
    """Body of a request.

    Raises
    ------
    HTTPException
        It is compressed (415), too large (413), not complete in time (408), or the client
        disconnected (400).
    """
    if codings := _codings(request):
        raise HTTPException(
            415,
            f"Content-Encoding {codings!r:.100} is not supported; send the body uncompressed.",
            {"Accept-Encoding": "identity"},
        )
    too_large = HTTPException(413, f"The body has more than {largest} bytes; send less.")
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
        raise HTTPException(408, f"The request was not complete after {seconds:g} s.") from error
    except ClientDisconnect as error:
        raise HTTPException(400, "The connection ended before the body was complete.") from error
    return bytes(body)


async def read_form(request: Request) -> dict[str, str]:
    """Fields of a form, of each name the last."""
    text = decode(await read_body(request, LARGEST_FORM, FORM_SECONDS))
    try:
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=20, errors="strict")
    except ValueError as error:
        raise InputError(f"the form cannot be read ({error})") from error
    return {name: values[-1] for name, values in fields.items()}


def decode(body: bytes) -> str:
    """Text of UTF-8 bytes."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"the body is not UTF-8 text ({error})") from error


def _codings(request: Request) -> str:
    """Codings of the body, other than identity."""
    named = ",".join(request.headers.getlist("content-encoding")).lower().split(",")
    return ", ".join(name.strip() for name in named if name.strip() not in ("", "identity"))
