"""Connections that do not say what they want are closed, so that they cannot keep others out."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 15.0
"""From the connection, or the first byte of a further request, to the end of its head; and from an
answer that did not wait for the body to the end of that."""


class PatientProtocol(H11Protocol):
    """HTTP as uvicorn speaks it, with limits of time for whoever is to speak."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take a connection."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let a connection go."""
        self._stop()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Go on to the next request."""
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        if self.conn.their_state is h11.IDLE:
            waits = self.cycle is None or bool(self.conn.trailing_data[0])
        else:
            waits = self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.DONE
        if not waits:
            self._stop()
            self._keep_alive()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _keep_alive(self) -> None:
        """Limit the time between requests, which uvicorn forgets after a body that came late."""
        if self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()
