"""Queue reports from the network to the control law."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from reference_proxy.errors import MalformedError, ProxyError
from reference_proxy.relay.queue_reports import QueueReport
from reference_proxy.sockets import read_address, show

if TYPE_CHECKING:
    from collections.abc import Callable

    from reference_proxy.configuration import Adaptation
    from reference_proxy.limits import LimitedWarnings
    from reference_proxy.metrics import Counts
    from reference_proxy.relay.window_adaptation import Gate


class _Receiver(asyncio.DatagramProtocol):
    def __init__(
        self,
        settings: Adaptation,
        gate: Gate,
        counts: Counts,
        warnings: LimitedWarnings,
        release: Callable[[], None],
    ) -> None:
        self._reporters = frozenset(settings.reporters)
        self._gate = gate
        self._counts = counts
        self._warnings = warnings
        self._release = release

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """One report."""
        if self._reporters and addr[0] not in self._reporters:
            self._warnings.warn("foreign-report", "a queue report from an unknown sender", sender=show(addr[:2]))
            return
        try:
            report = QueueReport.decode(data)
        except MalformedError as error:
            self._warnings.warn("malformed-report", str(error), sender=show(addr[:2]))
            return
        self._counts.queue_reports += 1
        if self._gate.handle_report(report, asyncio.get_running_loop().time()):
            self._release()


async def receive_reports(
    settings: Adaptation, gate: Gate, counts: Counts, warnings: LimitedWarnings, release: Callable[[], None]
) -> asyncio.DatagramTransport:
    """Receive reports until the transport is closed; `release` is called as each step begins. Raises ProxyError."""
    address = read_address(settings.reports, "adaptation.reports")
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _Receiver(settings, gate, counts, warnings, release), local_addr=address
        )
    except OSError as error:
        raise ProxyError(f"queue reports cannot be received at {show(address)}: {error.strerror}") from None
    return transport
