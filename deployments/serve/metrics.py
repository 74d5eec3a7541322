"""What the server counts, in the text format of Prometheus."""

from __future__ import annotations

import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10)
UNKNOWN = "other"


class Metrics:
    """Counters of one server."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        by_path = ["path"]
        self.requests = Counter(
            "cppcl_requests", "Requests that ended.", [*by_path, "status"], registry=registry
        )
        self.errors = Counter(
            "cppcl_errors", "Requests that ended in 5xx or in nothing.", by_path, registry=registry
        )
        self.seconds = Histogram(
            "cppcl_request_seconds",
            "Seconds from the head of a request to the end of its answer.",
            by_path,
            buckets=SECONDS,
            registry=registry,
        )
        self.in_flight = Gauge(
            "cppcl_requests_in_flight", "Requests that have not ended.", registry=registry
        )

    def text(self) -> bytes:
        """All of them."""
        return generate_latest(self.registry)


class MetricsMiddleware:
    """Middleware that counts; addresses that are none of the application's are one."""

    def __init__(self, app: Any, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, begun = 0, time.perf_counter()

        async def noting(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.metrics.in_flight.inc()
        try:
            await self.app(scope, receive, noting)
        except Exception:
            status = 500  # sent by what is around all middleware
            raise
        finally:
            self.metrics.in_flight.dec()
            path = getattr(scope.get("route"), "path", UNKNOWN)
            self.metrics.requests.labels(path, status).inc()
            if not 0 < status < 500:
                self.metrics.errors.labels(path).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - begun)
