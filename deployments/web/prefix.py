"""Where a page lies under the address of a reverse proxy, such as ``/cppcl``."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import Any

_HEADER = b"x-forwarded-prefix"
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+){1,8}/?")
_root: ContextVar[str] = ContextVar("root", default="")


class ProxyPrefix:
    """Middleware that takes the prefix from ``X-Forwarded-Prefix``, else the server's root path.

    Whether the proxy removes the prefix from the path or leaves it there is all the same.
    """

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on."""
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(_HEADER, b"").decode("latin-1")
            root = given if _PREFIX.fullmatch(given) else str(scope.get("root_path", ""))
            scope = {**scope, "root_path": root.rstrip("/")}
            _root.set(scope["root_path"])
        await self.app(scope, receive, send)


def root() -> str:
    """Prefix of the request that is being answered, without a slash at its end."""
    return _root.get()


def rooted(address: str) -> str:
    """Address for a browser of what lies at a path of this server."""
    return root() + address


def route_path(scope: Any) -> str:
    """Path of a request within this server."""
    path, prefix = str(scope["path"]), str(scope.get("root_path", ""))
    inside = bool(prefix) and (path == prefix or path.startswith(prefix + "/"))
    return path[len(prefix) :] or "/" if inside else path
