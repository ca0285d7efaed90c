"""Counts of what a proxy did, and how Prometheus gets them (optional package `prometheus_client`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reference_proxy.truth import Truth

PREFIX = "pepscope_proxy"


@dataclass(slots=True)
class Counts:
    """Totals since the start."""

    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    bytes_up: int = 0
    bytes_down: int = 0
    requests: int = 0
    cache_hits: int = 0
    recompressed: int = 0
    recompression_saved_bytes: int = 0
    queue_reports: int = 0

    def add(self, truth: Truth) -> None:
        """Count a connection that ended."""
        self.endings[truth.ending] += 1
        self.bytes_up += truth.server.given_bytes
        self.bytes_down += truth.mobile.given_bytes
        self.requests += truth.requests
        self.cache_hits += truth.cache_hits
        self.recompressed += truth.recompressed
        self.recompression_saved_bytes += truth.recompression_saved_bytes


class ProxyCollector:
    """Reads the counts whenever Prometheus asks, so that nothing is paid while connections run."""

    def __init__(self, counts: Counts, live: Callable[[], int]) -> None:
        self._counts = counts
        self._live = live

    def collect(self) -> Iterator[Any]:
        """Metric families of prometheus_client."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        counts = self._counts
        yield GaugeMetricFamily(f"{PREFIX}_connections", "Connections now", value=self._live())
        for name, text, value in (
            ("accepted", "Connections accepted", counts.accepted),
            ("requests", "HTTP requests", counts.requests),
            ("cache_hits", "Requests answered from the cache", counts.cache_hits),
            ("recompressed", "Objects made smaller", counts.recompressed),
            ("recompression_saved_bytes", "Bytes saved by making objects smaller", counts.recompression_saved_bytes),
            ("queue_reports", "Queue reports received", counts.queue_reports),
        ):
            yield CounterMetricFamily(f"{PREFIX}_{name}", text, value=value)
        for name, text, label, values in (
            ("refused", "Connections refused", "reason", counts.refused),
            ("ended", "Connections ended", "ending", counts.endings),
            ("bytes", "Bytes given", "direction", {"up": counts.bytes_up, "down": counts.bytes_down}),
        ):
            family = CounterMetricFamily(f"{PREFIX}_{name}", text, labels=[label])
            for key, value in dict(values).items():
                family.add_metric([key], value)
            yield family
