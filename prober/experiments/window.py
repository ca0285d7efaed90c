"""Whose receive window does the server see? A download into a small buffer that is emptied slowly, captured.

The mobile offers a small window and reads below the path's rate, so that its window is the only thing that holds the
server back. End to end the server sees the windows that the mobile advertised; a split point advertises one of its own,
which stays open while the mobile is behind, or alternates between its buffer and zero (Wei et al., section III-A).
The captures go to the detector, whose `receive_window` and `progress` decide; nothing is decided here.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from pepscope.packets import Direction
from prober.costs import transfer_cost
from prober.errors import PlanError
from prober.experiment import Experiment, Json, Measurement, Seen, Task, Want, repeated

if TYPE_CHECKING:
    from pepscope.results import Evidence
    from prober.mobile_end import MobileEnd
    from prober.plan import Plan


class Window(Experiment):
    """Downloads slowly into a small buffer."""

    name = "window"
    summary = "Download slowly into a small buffer, for the detector to see whose window holds the server back."
    defaults: ClassVar[Mapping[str, Json]] = MappingProxyType(
        {"size_bytes": 500_000, "read_bit_s": 1_000_000.0, "receive_buffer_bytes": 65_536, "repeats": 1}
    )

    def tasks(self, plan: Plan) -> Iterable[Task]:
        """One download an application and a repeat. Raises PlanError."""
        settings = plan.experiments[self.name]
        size_bytes, rate_bit_s = int(settings["size_bytes"]), float(settings["read_bit_s"])
        if rate_bit_s <= 0:
            raise PlanError(f"experiments.window.read_bit_s is above 0, not {rate_bit_s:g}")
        if Direction.DOWN not in plan.directions:
            return
        for application in plan.applications:
            cost = transfer_cost(application, Direction.DOWN, size_bytes, plan.rates)
            task = Task(
                self.name,
                1,
                application,
                Direction.DOWN,
                {name: settings[name] for name in ("size_bytes", "read_bit_s", "receive_buffer_bytes")},
                bytes_up=cost.bytes_up,
                bytes_down=cost.bytes_down,
                expected_s=max(cost.expected_s, size_bytes * 8 / rate_bit_s),
                wants=frozenset({Want.MOBILE_CAPTURE, Want.SERVER_CAPTURE}),
            )
            yield from repeated(task, settings["repeats"])

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Read no faster than the task says."""
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
        return Measurement({"transfer": moved.to_mapping()}, moved.flows)

    def examine(self, seen: Sequence[Seen]) -> tuple[Evidence, ...]:  # noqa: ARG002
        """Nothing: the captures' own verdicts say everything."""
        return ()
