"""The threads that carry packets along a live path, and what keeps them punctual."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import struct
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pepscope import _core
from pepscope.errors import LivePathError
from reference_sim.live_path.network import BASE_STATION, FIRST_MOBILE, MIDDLE, Link, LiveNetwork
from reference_sim.run import Float64Array
from reference_sim.scenario import Scenario

if TYPE_CHECKING:
    from reference_sim.live_path.emulation import LiveSettings

#: Real-time priority, and otherwise before ordinary work.
_PRIORITY = 10
_NICENESS = -15
#: Takes the longest time in microseconds that waking up may take, and holds to it while it is open.
_WAKE_UP_LATENCY = "/dev/cpu_dma_latency"


class PathLoop:
    """A thread that carries packets along one part of the path."""

    def __init__(
        self, scenario: Scenario, link: Link, network: LiveNetwork, settings: LiveSettings, started_ns: int
    ) -> None:
        self.link = link
        self._real_time = settings.real_time
        self._failure: BaseException | None = None
        reports = None
        if network.middle is not None:
            reports = (ipaddress.ip_address(BASE_STATION), ipaddress.ip_address(MIDDLE[4]), settings.report_port)
        self._path = _core.LivePath(
            scenario.to_json(),
            link.first_hop,
            link.end_hop,
            link.server_descriptor,
            link.mobile_descriptor,
            start_ns=started_ns,
            spin_ns=round(settings.spin_s * 1e9),
            packet_bytes=network.packet_bytes,
            first_ipv4=int(ipaddress.ip_address(FIRST_MOBILE[4])),
            first_ipv6=int(ipaddress.ip_address(FIRST_MOBILE[6])),
            terminals=network.terminals,
            reports=reports,
        )
        self._thread = threading.Thread(target=self._run, name="pepscope-path", daemon=True)

    def start(self) -> None:
        """Begin to carry packets."""
        self._thread.start()

    def _run(self) -> None:
        try:
            if self._real_time:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
            else:
                with contextlib.suppress(PermissionError):
                    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
            self._path.run()
        except BaseException as error:  # `check` raises it again, in the thread that waits
            self._failure = error

    def check(self) -> None:
        """Raise the exception that ended the thread, if one did. Raises LivePathError."""
        if self._failure is not None:
            if isinstance(self._failure, PermissionError):
                raise LivePathError(
                    "the system allows no real-time priority here (CAP_SYS_NICE): try without, --no-real-time"
                ) from self._failure
            raise self._failure

    def stop(self) -> None:
        """Ask the thread to end, and wait until it has."""
        self._path.stop()
        if self._thread.is_alive():
            self._thread.join()

    def series(self) -> tuple[Float64Array, list[Any]]:
        """Times and columns; empty where the scenario records none."""
        return self._path.series_times(), self._path.series_columns()

    def totals(self) -> dict[str, Any]:
        """Counts so far: packets by hop, and how late packets left."""
        totals: dict[str, Any] = json.loads(self._path.totals_json())
        return totals


@contextlib.contextmanager
def processors_awake() -> Iterator[None]:
    """Idle processors poll instead of sleeping while this lasts, where the system permits it (PM QoS).

    Waking up one that sleeps takes tens of microseconds, and on a virtual machine a call of its host.
    """
    try:
        descriptor = os.open(_WAKE_UP_LATENCY, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):
            os.write(descriptor, struct.pack("=i", 0))
        yield
    finally:
        os.close(descriptor)
