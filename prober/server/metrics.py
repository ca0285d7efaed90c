"""What a server does, for Prometheus (optional package `prometheus_client`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from pepscope.command_line.metrics import serve_metrics
from pepscope.settings.socket_address import parse_socket_address
from prober.errors import ServerError
from prober.server.archives.archive_store import ArchiveStore
from prober.server.context import ServiceContext
from prober.server.instruments.session_instruments import Instruments

PREFIX = "pepscope_probe"


class ServerCollector:
    """Reads the counts whenever Prometheus asks, so that nothing is paid while the server measures."""

    def __init__(self, context: ServiceContext, instruments: Instruments, archives: ArchiveStore) -> None:
        self._context, self._instruments, self._archives = context, instruments, archives

    def collect(self) -> Iterator[Any]:
        """Metric families of prometheus_client."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        admission, sessions = self._context.admission, self._context.sessions
        captures = self._instruments.captures.things()
        for name, text, value in (
            ("connections", "Connections now", admission.admitted),
            ("holds", "ACK holds now", len(self._instruments.holds.things())),
            ("silences", "Silences now", len(self._instruments.silences.things())),
            ("capture_bytes", "What captures take on the disk", sum(capture.stored_bytes for capture in captures)),
            ("uploads", "Archives that are coming in", self._archives.uploads),
        ):
            yield GaugeMetricFamily(f"{PREFIX}_{name}", text, value=value)
        running = sum(capture.is_running for capture in captures)
        for name, text, label, counts in (
            ("sessions", "Sessions now", "key", Counter(session.key.name for session in sessions.living)),
            ("captures", "Captures now", "state", {"running": running, "finished": len(captures) - running}),
        ):
            family = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=[label])
            for value_of_label, count in dict(counts).items():
                family.add_metric([value_of_label], count)
            yield family
        stored = self._archives.counts()
        for name, text, place in (("archives", "Stored archives", 0), ("archive_bytes", "What they take", 1)):
            family = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=["key"])
            for client, numbers in stored.items():
                family.add_metric([client], numbers[place])
            yield family
        yield CounterMetricFamily(f"{PREFIX}_payload_bytes", "Payload moved, both ways", value=sessions.moved_bytes)
        yield CounterMetricFamily(f"{PREFIX}_displaced", "Strangers that made room", value=admission.displaced)
        complaints = CounterMetricFamily(f"{PREFIX}_complaints", "What was refused or went wrong", labels=["event"])
        for event, count in self._context.complaints.counts().items():
            complaints.add_metric([event], count)
        yield complaints


def serve_server_metrics(text: str, collector: ServerCollector) -> Callable[[], None]:
    """Serve metrics at `ADDRESS:PORT` or `[ADDRESS]:PORT`; gives what ends it. Raises ServerError, UsageError."""
    address = parse_socket_address(text)
    if address is None:
        raise ServerError(f"metrics must be ADDRESS:PORT with the address in digits, got {text!r}")
    return serve_metrics(*address, collector, with_process=True)
