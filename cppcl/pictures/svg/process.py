"""Rendering in a process of its own, whose time and memory are bounded and which can be ended."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select
from typing import Any, BinaryIO

from cppcl.errors import InputError, PictureError

SECONDS = 10
"""Processor time that a drawing may take, and one more second for each `PIXELS_A_SECOND`."""
PIXELS_A_SECOND = 5_000_000
MEMORY = 512 * 2**20
"""Bytes that a drawing may take, and `BYTES_A_PIXEL` more for each pixel of the result."""
BYTES_A_PIXEL = 24
LONGEST_WAIT = 600.0
"""Seconds by the clock after which a process that says nothing is ended."""

_START = """
import sys
sys.path.insert(0, sys.argv[1])
from cppcl.pictures.svg.process import serve
serve()
"""
_ROOT = Path(__file__).parents[3]


class _DeadError(Exception):
    """The process ended before it answered; `code` is its exit status."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Renderer:
    """A process that renders one drawing after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, str(_ROOT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def render(self, data: bytes, order: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Answer to an order, and the bytes of the picture.

        Raises
        ------
        _DeadError
            The process died, or was ended since it did not answer.
        """
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({**order, "bytes": len(data)}).encode() + b"\n" + data)
            process.stdin.flush()
            if not select([process.stdout], [], [], LONGEST_WAIT)[0]:
                process.kill()
            head = process.stdout.readline()
            answer: dict[str, Any] = json.loads(head)
            content = process.stdout.read(answer["bytes"])
        except (BrokenPipeError, ValueError) as error:
            raise _DeadError(self.end()) from error
        except BaseException:
            self.end()
            raise
        if len(content) < answer["bytes"]:
            raise _DeadError(self.end())
        return answer, content

    def end(self) -> int:
        """End the process, and return its exit status."""
        process = self._process
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        try:
            return process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


class _Pool:
    """Renderers that wait, at most one a processor, each used by one thread at a time."""

    def __init__(self) -> None:
        self._turn = threading.BoundedSemaphore(os.cpu_count() or 1)
        self._idle: list[Renderer] = []

    @contextmanager
    def renderer(self) -> Iterator[Renderer]:
        with self._turn:
            try:
                renderer = self._idle.pop()
            except IndexError:
                renderer = Renderer()
            yield renderer
            self._idle.append(renderer)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().end()


_pool = _Pool()
_of_parents: list[_Pool] = []


def _forget() -> None:
    """A forked process must not speak with the renderers of the one that it came from."""
    global _pool
    _of_parents.append(_pool)
    _pool = _Pool()


os.register_at_fork(after_in_child=_forget)
atexit.register(lambda: _pool.close())


def render_apart(data: bytes, *, longest_side: int | None, name: str, limit: int) -> bytes:
    """Render an SVG as `cppcl.pictures.svg.render.render_svg` does, within time and memory.

    Raises
    ------
    InputError, PictureError
        See there, or the drawing takes more than `SECONDS` or `MEMORY`.
    """
    pixels = limit if longest_side is None else min(limit, longest_side**2)
    order = {
        "longest_side": longest_side,
        "name": name,
        "limit": limit,
        "seconds": SECONDS + pixels // PIXELS_A_SECOND,
        "memory": MEMORY + pixels * BYTES_A_PIXEL,
    }
    for attempt in (0, 1):
        try:
            with _pool.renderer() as renderer:
                answer, content = renderer.render(data, order)
        except _DeadError as error:
            if -error.code in (signal.SIGKILL, signal.SIGTERM) and attempt == 0:
                continue  # ended from outside, which says nothing about the drawing
            raise PictureError(f"{name}: {_reason(error.code, order)}") from error
        if (kind := answer["error"]) is None:
            return content
        raise (InputError if kind == "input" else PictureError)(answer["message"])
    raise AssertionError


def _reason(code: int, order: dict[str, Any]) -> str:
    mend = "simplify the drawing, or save it as PNG"
    if -code == signal.SIGXCPU:
        return f"rendering the SVG takes over {order['seconds']} s; {mend}"
    if -code == signal.SIGABRT:
        return f"rendering the SVG takes over {order['memory'] // 2**20} MiB of memory; {mend}"
    return f"rendering the SVG ended its process (exit status {code}); {mend}"


def serve() -> None:  # pragma: no cover - its process is not traced
    """Render what standard input asks for until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    orders = sys.stdin.buffer
    # What a library prints must not mix with answers.
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        while head := orders.readline():
            order = json.loads(head)
            answer_one(order, orders.read(order["bytes"]), answers)


def answer_one(
    order: dict[str, Any], data: bytes, answers: BinaryIO
) -> None:  # pragma: no cover - its process is not traced
    """Render one drawing, and write the answer."""
    from cppcl.pictures.svg.render import render_svg

    if b"data:" in data:  # libraries are loaded outside the limits
        import numpy  # noqa: F401
        import PIL.Image

        PIL.Image.init()
    kind, message, content = None, "", b""
    name = order["name"]
    try:
        with limits(order["seconds"], order["memory"]):
            content = render_svg(
                data, longest_side=order["longest_side"], name=name, limit=order["limit"]
            )
    except PictureError as error:
        kind, message = "picture", str(error)
    except InputError as error:
        kind, message = "input", str(error)
    except MemoryError:
        kind, message = "picture", f"{name}: {_reason(-signal.SIGABRT, order)}"
    except BaseException as error:  # a panic of the renderer is no Exception
        kind, message = "picture", f"{name}: SVG cannot be rendered ({error})"
    head = {"error": kind, "message": message, "bytes": len(content)}
    answers.write(json.dumps(head).encode() + b"\n" + content)
    answers.flush()


@contextmanager
def limits(
    seconds: int, memory: int
) -> Iterator[None]:  # pragma: no cover - its process is not traced
    """Bound what this process may still take; going beyond ends it."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    now = int(used.ru_utime + used.ru_stime) + 1
    bounds = {
        resource.RLIMIT_CPU: now + seconds,
        resource.RLIMIT_AS: _address_space() + memory,
        resource.RLIMIT_CORE: 0,
    }
    before = {which: resource.getrlimit(which) for which in bounds}
    try:
        for which, bound in bounds.items():
            hard = before[which][1]
            soft = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
            resource.setrlimit(which, (soft, hard))
        yield
    finally:
        for which, both in before.items():
            resource.setrlimit(which, both)


def _address_space() -> int:  # pragma: no cover - its process is not traced
    """Bytes of virtual memory of this process; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 2**40
    return pages * os.sysconf("SC_PAGE_SIZE")
