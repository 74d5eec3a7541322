"""HEAD, which frameworks leave to each address."""

from __future__ import annotations

from typing import Any


class HeadAsGet:
    """Middleware that answers HEAD as GET is answered, without the body."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_head = scope["method"] == "HEAD"

        async def answered(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*map(_with_head, message.get("headers", ()))]}
            elif is_head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self.app({**scope, "method": "GET"} if is_head else scope, receive, answered)


def _with_head(header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Add HEAD to a header ``Allow`` that has GET."""
    name, value = header
    methods = value.split(b", ")
    if name.lower() != b"allow" or b"GET" not in methods or b"HEAD" in methods:
        return header
    return name, value + b", HEAD"
