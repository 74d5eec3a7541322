"""Who may use a page, and what a browser may do with it."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from deployments.web.prefix import rooted, route_path
from deployments.web.requests import wants_page

BROKEN = "Something went wrong; the server's log says what."
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; img-src 'self' blob:; style-src 'self'; script-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE_METHODS = frozenset({"GET", "HEAD"})
YEAR_SECONDS = 365 * 86_400

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Access:
    """Who is let in.

    Attributes
    ----------
    token : str or None
        What a browser must show, in the address once and in a cookie from then on, and a program
        in the header ``Authorization: Bearer TOKEN``; None lets everyone in who reaches the
        server.
    hosts : frozenset of str or None
        Names by which the server may be addressed; None for any. A web site whose name is made to
        point here must not be able to read what the server says.
    cookie : str
        Name of the cookie; browsers share cookies between the ports of a host.
    command : str
        What printed the address with the token.
    """

    token: str | None
    hosts: frozenset[str] | None
    cookie: str
    command: str = "cppcl"


def access_for(host: str, port: int, command: str = "annotate") -> Access:
    """Everyone on this machine where the address is local, else those who have the token."""
    cookie, command = f"cppcl-{command}-{port}", f"cppcl {command}"
    if is_local(host):
        return Access(None, LOCAL_NAMES | {host}, cookie, command)
    return Access(secrets.token_urlsafe(24), None, cookie, command)


def is_local(host: str) -> bool:
    """True if only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def guard(access: Access) -> Callable[[Request, Handler], Awaitable[Response]]:
    """Middleware that refuses strangers and adds the headers that browsers keep to."""

    async def middleware(request: Request, handle: Handler) -> Response:
        response = refusal(request, access) or await handle(request)
        for name, value in HEADERS.items():
            response.headers[name] = value
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware


def broken(response: Response) -> Response:
    """Answer to a request that failed unexpectedly, with the headers that `guard` adds.

    It is made outside all middleware.
    """
    response.headers.update(HEADERS | {"Cache-Control": "no-store"})
    return response


def refusal(request: Request, access: Access) -> Response | None:
    """Answer to a request that is not let in; None for one that is."""
    host = request.headers.get("host", "")
    if access.hosts is not None and _name(host) not in access.hosts:
        return _refused(request, 421, "This server is for this machine alone.")
    # A link from elsewhere may be followed; nothing else may be asked for by another web site.
    followed = request.headers.get("sec-fetch-mode", "navigate") == "navigate"
    safe = request.method in SAFE_METHODS
    if not (safe and followed) and not _same_site(request, host):
        return _refused(request, 403, "Another web site asked for this; it was refused.")
    if access.token is None:
        return None
    kind, _, borne = request.headers.get("authorization", "").partition(" ")
    if same(request.cookies.get(access.cookie, ""), access.token) or (
        kind.lower() == "bearer" and same(borne.strip(), access.token)
    ):
        return None
    shown = request.query_params.get("token", "")
    if request.method in SAFE_METHODS and same(shown, access.token):
        # The token leaves the address, and so the history of the browser.
        rest = urlencode([p for p in parse_qsl(request.url.query) if p[0] != "token"])
        path = rooted(route_path(request.scope))
        response = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
        response.set_cookie(
            access.cookie,
            access.token,
            max_age=YEAR_SECONDS,
            httponly=True,
            # Not 'strict', which would hold it back when the address is followed from a mail.
            samesite="lax",
        )
        return response
    message = f"Open the address with the token that {access.command} printed when it started."
    return _refused(request, 401, message, {"WWW-Authenticate": "Bearer"})


def same(given: str, expected: str) -> bool:
    """Compare two texts in constant time."""
    return secrets.compare_digest(given.encode(), expected.encode())


def _refused(
    request: Request, status: int, message: str, headers: dict[str, str] | None = None
) -> Response:
    if wants_page(request):
        # A page would ask for a style that is refused too.
        return PlainTextResponse(message + "\n", status, headers)
    return JSONResponse({"error": message}, status, headers)


def _name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _same_site(request: Request, host: str) -> bool:
    """True if a page of this server sent the request; only browsers name another site."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    return origin is None or origin.partition("://")[2] == host
