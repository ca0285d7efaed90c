"""Which receive window reaches the server? A captured download into a small buffer that is read slowly.

The mobile offers a small window and reads below the path's rate, so only its window limits the server. End to end the
windows that the mobile advertised reach the server; a split point advertises its own, which stays open while the mobile
is behind, or alternates between its buffer and zero (Wei et al., section III-A). The detector's methods
`receive_window` and `progress` judge the captures; this experiment has no rule.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pepscope.captures.direction import Direction
from pepscope.strict_reading import Amount, Table, WholeNumber
from prober.client.capabilities import Capability
from prober.errors import PlanError
from prober.measurement.cost_estimate import transfer_cost
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.measured_transfer import OneTransfer, measured_transfer
from prober.measurement.task import Measurement, Task, repeated

if TYPE_CHECKING:
    from pepscope.results.verdicts import Evidence
    from prober.client.mobile_end import MobileEnd
    from prober.measurement.experiment import Scope


class WindowOptions(Table, frozen=True):
    """What a plan may set."""

    size_bytes: WholeNumber = 500_000
    read_bit_s: Amount = 1_000_000.0
    receive_buffer_bytes: WholeNumber = 65_536
    repeats: WholeNumber = 1


class Window(Experiment[WindowOptions, OneTransfer]):
    """Downloads slowly into a small buffer."""

    name = "window"
    title = "download into a small buffer"
    summary = "Download slowly into a small buffer, for the detector to compare the windows at both ends."
    options = WindowOptions
    measured = OneTransfer

    def tasks(self, options: WindowOptions, scope: Scope) -> Iterable[Task]:
        """One download an application and a repeat. Raises PlanError."""
        size_bytes, rate_bit_s = options.size_bytes, options.read_bit_s
        if rate_bit_s <= 0:
            raise PlanError(f"experiments.window.read_bit_s must be above 0, got {rate_bit_s:g}")
        if Direction.DOWN not in scope.directions:
            return
        for application in scope.applications:
            cost = transfer_cost(application, Direction.DOWN, size_bytes, scope.rates)
            task = Task(
                self.name,
                1,
                application,
                Direction.DOWN,
                {
                    "size_bytes": size_bytes,
                    "read_bit_s": rate_bit_s,
                    "receive_buffer_bytes": options.receive_buffer_bytes,
                },
                connections=cost.connections,
                bytes_up=cost.bytes_up,
                bytes_down=cost.bytes_down,
                expected_s=max(cost.expected_s, size_bytes * 8 / rate_bit_s),
                requires=frozenset({Capability.MOBILE_CAPTURE, Capability.SERVER_CAPTURE}),
            )
            yield from repeated(task, options.repeats)

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Read no faster than the task's rate."""
        assert task.application is not None
        rate_bit_s = float(task.parameters["read_bit_s"])
        buffer_bytes = int(task.parameters["receive_buffer_bytes"])
        started_s: list[float] = []

        def keep_pace(moved_bytes: int) -> None:
            if not started_s:
                started_s.append(time.monotonic())
            ahead_s = started_s[0] + moved_bytes * 8 / rate_bit_s - time.monotonic()
            if ahead_s > 0:
                time.sleep(min(ahead_s, end.remaining_s))

        def offer_little(link: socket.socket) -> None:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)

        moved = end.transfer(
            task.application,
            Direction.DOWN,
            int(task.parameters["size_bytes"]),
            prepare=offer_little,
            on_bytes=keep_pace,
        )
        return Measurement.of(OneTransfer(transfer=measured_transfer(moved)), moved.flows)

    def examine(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:  # noqa: ARG002
        """Nothing: the captures' own verdicts say everything."""
        return ()
