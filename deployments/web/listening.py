"""Listening on an address until a signal comes."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from cppcl.errors import CppclError, InputError
from deployments.web.security import Access, access_for

BACKLOG = 128
SETTINGS: dict[str, Any] = {
    "http": "h11",
    "h11_max_incomplete_event_size": 16 * 2**10,
    "log_level": "warning",
    "access_log": False,  # it would hold the token
    "server_header": False,
    "limit_concurrency": 256,
    "timeout_keep_alive": 30,
    "timeout_graceful_shutdown": 5,
}
"""Of uvicorn. What these do not limit, such as heads that come slowly, a reverse proxy does."""


def serve(make_app: Callable[[Access], Any], host: str, port: int, command: str) -> None:
    """Print the address and answer requests until a signal comes.

    Parameters
    ----------
    make_app : callable
        Makes the application, given who is let in.
    host, port : str, int
        Where to listen; port 0 takes any free port.
    command : str
        Name of the command of ``cppcl``.

    Raises
    ------
    InputError
        If the address is none of this machine.
    CppclError
        If the port is taken.
    """
    import uvicorn

    with listening_socket(host, port, command) as listener:
        port = listener.getsockname()[1]
        access = access_for(host, port, command)
        config = uvicorn.Config(make_app(access), **SETTINGS)
        print(address(host, port, access.token), flush=True)
        uvicorn.Server(config).run(sockets=[listener])


def check_port(port: int) -> None:
    """Raise `InputError` if this is not a port."""
    if not 0 <= port < 2**16:
        raise InputError(f"--port {port} must be a number from 0 to 65535")


def listening_socket(host: str, port: int, command: str = "annotate") -> socket.socket:
    """Bind an address now, so that a failure gives a short message."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(f"--host {host}: not an address of this machine ({error})") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CppclError(
            f"--host {host} --port {port}: not available ({error.strerror}); is cppcl {command} "
            "running already? Give another --port, or 0 for any free one"
        ) from error
    return listener


def address(host: str, port: int, token: str | None) -> str:
    """What to open in a browser."""
    name = host
    if host in ("0.0.0.0", "::", ""):
        name = socket.gethostname()
    elif ":" in host:
        name = f"[{host}]"
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")
