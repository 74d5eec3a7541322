"""The models that are served, and newer ones that take their place while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Lock, Thread

from cppcl.errors import CppclError, InputError
from deployments.serve.served_model import ServedModel
from storage import Reference, StoreError
from tasks.workspace import Workspace

CHECK_SECONDS = 3.0
AGAIN_SECONDS = 60.0
"""How long a model that could not be loaded is left alone, unless something new is stored."""


@dataclass
class Served:
    """One MODEL of the command line."""

    text: str
    model: ServedModel
    previous: ServedModel | None = None
    problem: str | None = None
    failed_at: float = 0.0


@dataclass
class Live:
    """Models by name; safe to use from several threads.

    A newer run or promotion of an experiment, or a newer state of an index, takes the place of
    what is served as soon as it is loaded; requests under way keep what they have. What cannot be
    loaded changes nothing but `Served.problem`.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    texts : list of str
        What the command line names.
    clock : callable
        Seconds.

    Attributes
    ----------
    served : dict of Served
        By name.
    stopping : Event
        Set when the server ends: nothing is prepared any more.
    idle : Event
        Set while no search is under way: searches come before what is prepared.
    """

    workspace: Workspace
    texts: list[str]
    clock: Callable[[], float] = time.monotonic
    served: dict[str, Served] = field(init=False)
    stopping: Event = field(default_factory=Event)
    idle: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        if len(set(self.texts)) < len(self.texts):
            raise InputError(f"MODEL {' '.join(self.texts)}: one is given twice")
        self.idle.set()
        self._lock, self._checking = Lock(), Lock()
        self._state = self._records()
        self._checked = self.clock()
        self.served = {
            text: Served(text, self._load(text, self.workspace.find_model(text)))
            for text in self.texts
        }

    def get(self, name: str | None) -> ServedModel:
        """Model of a name, the first of all for None.

        Raises
        ------
        InputError
            There is no such name.
        """
        if name is None:
            name = self.texts[0]
        if name not in self.served:
            raise InputError(f"model={name!r:.200} must be one of {', '.join(self.texts)}")
        return self.served[name].model

    def by_key(self, key: str) -> ServedModel | None:
        """Model with a key, of those that are served and those that were just before."""
        for served in self.served.values():
            for model in (served.model, served.previous):
                if model is not None and model.reference.key == key:
                    return model
        return None

    def prepare(self) -> Thread:
        """Encode small pictures, in a thread, before they are asked for."""
        thread = Thread(target=self._prepare, args=([*self.served.values()],), name="prepare")
        thread.start()
        return thread

    def look_for_newer(self) -> Thread | None:
        """Look, in a thread, whether something newer is stored; every few seconds at most."""
        with self._lock:
            if self.clock() - self._checked < CHECK_SECONDS:
                return None
            self._checked = self.clock()
        thread = Thread(target=self.check, name="check", daemon=True)
        thread.start()
        return thread

    def check(self) -> None:
        """Load what is newer; returns at once where that is under way."""
        if not self._checking.acquire(blocking=False):
            return
        try:
            state = self._records()
            is_new = state != self._state
            renewed = []
            for served in self.served.values():
                waited = self.clock() - served.failed_at >= AGAIN_SECONDS
                if (is_new or (served.problem is not None and waited)) and self._renew(served):
                    renewed.append(served)
            self._state = state
        finally:
            self._checking.release()
        self._prepare(renewed)

    def _prepare(self, several: list[Served]) -> None:
        for served in several:
            for modality in ("image", "sketch"):
                served.model.small[modality].prepare(self.stopping, self.idle)

    def _renew(self, served: Served) -> bool:
        """Load a newer artifact if there is one; true if it is served now."""
        try:
            reference = self.workspace.find_model(served.text)
            is_newer = reference != served.model.reference
            if is_newer:
                model = self._load(served.text, reference)
                served.previous, served.model = served.model, model
            served.problem = None
            return is_newer
        except Exception as error:
            # Whatever is wrong with what is new, what is served goes on.
            kind = (
                "" if isinstance(error, CppclError | StoreError) else f"{type(error).__name__}: "
            )
            served.problem = f"{kind}{error}"
            served.failed_at = self.clock()
            return False

    def _load(self, text: str, reference: Reference) -> ServedModel:
        with self.workspace.store.in_use():
            return ServedModel(self.workspace, text, reference)

    def _records(self) -> list[tuple[str, int]]:
        """What changes when a run is recorded, or a model promoted."""
        found = []
        for folder in (self.workspace.runs, self.workspace.promotions):
            # A folder that is not there has no files.
            for path in folder.glob("*.json"):
                try:
                    found.append((str(path), path.stat().st_mtime_ns))
                except FileNotFoundError:
                    continue
        return sorted(found)
