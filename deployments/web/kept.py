"""Content that a browser keeps, and asks for again only if it changed."""

from __future__ import annotations

import hashlib

from fastapi import Request, Response

ASK_AGAIN = "no-cache"
A_DAY = "private, max-age=86400"
FOR_EVER = "private, max-age=31536000, immutable"


def kept(request: Request, content: bytes, media_type: str, cached: str) -> Response:
    """Content with an ETag; 304 without it where the browser has it.

    Parameters
    ----------
    request : Request
        What is answered.
    content : bytes
        The body.
    media_type : str
        Its type.
    cached : str
        Header ``Cache-Control``.
    """
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"Cache-Control": cached, "ETag": tag}
    held = [part.strip() for part in request.headers.get("if-none-match", "").split(",")]
    if "*" in held or tag in [part.removeprefix("W/") for part in held]:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)
