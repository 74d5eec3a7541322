"""Starts ``cppcl`` again and again without importing it again and again.

Run as a program, it reads lines of JSON, ``{"arguments", "environment", "log"}``, and forks for
each a process that runs the command line, in a session of its own. It answers with its process id,
and with its exit code when it has ended.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import queue
import select
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


class Starter:
    """The process that starts others, as its user sees it."""

    def __init__(self, environment: dict[str, str], modules: list[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
            cwd=ROOT,
            text=True,
        )
        self.codes: dict[int, int] = {}
        self._started: queue.Queue[int] = queue.Queue()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        assert self.process.stdin
        self.process.stdin.write(json.dumps(modules) + "\n")

    def start(self, arguments: list[str], environment: dict[str, str], log: Path) -> int:
        """Start ``cppcl`` with these arguments; returns its process id."""
        request = {"arguments": arguments, "environment": environment, "log": str(log)}
        assert self.process.stdin
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._started.get(timeout=300)

    def close(self) -> None:
        """End it."""
        self.process.communicate()
        self._thread.join()

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            process, code = json.loads(line)
            if code is None:
                self._started.put(process)
            else:
                self.codes[process] = code


def main() -> None:
    """Serve requests until there are no more."""
    sys.path.insert(0, str(ROOT))
    import deployments.cli

    for name in json.loads(read_line()):
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if threading.active_count() > 1:
        raise RuntimeError("importing has started threads, which do not outlive a fork")

    running: set[int] = set()
    open_input = True
    while open_input or running:
        if open_input and select.select([0], [], [], 0.02)[0]:
            line = read_line()
            open_input = bool(line)
            if line:
                process = os.fork()
                if not process:
                    become(json.loads(line), deployments.cli.main)
                running.add(process)
                print(json.dumps([process, None]), flush=True)
        for process in sorted(running):
            found, status = os.waitpid(process, os.WNOHANG if open_input else 0)
            if found:
                running.discard(process)
                print(json.dumps([process, os.waitstatus_to_exitcode(status)]), flush=True)


def read_line() -> bytes:
    """Read a line without reading ahead, which would hide it from `select`."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    return line


def become(request: dict[str, Any], command: Any) -> None:
    """Be the process that was asked for."""
    os.setsid()
    os.environ.update(request["environment"])
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    code = 1
    try:
        code = command(request["arguments"])
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    # As at the end of any program; no part of the one that this was forked from must run.
    try:
        atexit._run_exitfuncs()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
