"""Metrics for Prometheus, served by commands that run until they are ended (optional package `prometheus_client`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from pepscope.errors import UsageError


class Collector(Protocol):
    """Gives metrics whenever Prometheus asks."""

    def collect(self) -> Iterator[Any]:
        """Metric families of prometheus_client."""


def serve_metrics(host: str, port: int, collector: Collector, *, with_process: bool = False) -> Callable[[], None]:
    """Serve metrics at /metrics from a thread of its own; gives what ends it.

    `with_process` adds what the process takes (`process_resident_memory_bytes` and its like). Raises UsageError where
    the address cannot be used, ModuleNotFoundError where the package is missing: commands have it by different extras.
    """
    from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

    registry = CollectorRegistry()
    registry.register(collector)
    if with_process:
        ProcessCollector(registry=registry)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        raise UsageError(f"metrics cannot be served at {shown}: {error.strerror}") from None

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop
