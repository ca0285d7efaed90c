"""Does something hold what the mobile sends while the server takes nothing? An upload that the server reads slowly.

The server offers a small receive buffer, stops reading after `after_bytes`, and goes on after `pause_s`. End to end the
mobile stands still meanwhile, held by the server's own window. A split point goes on taking until its own buffer is
full, and the mobile sees the split point's window. The captures go to the detector, whose `progress` and
`receive_window` decide; nothing is decided here. An uplink is usually the slower leg, so that without the pause nothing
would queue and nothing would show (Wei et al., Fig. 2b).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from pepscope.packets import Direction
from prober.costs import transfer_cost
from prober.experiment import Application, Experiment, Json, Measurement, Seen, Task, Want, repeated
from prober.plain_requests import Reading

if TYPE_CHECKING:
    from pepscope.results import Evidence
    from prober.mobile_end import MobileEnd
    from prober.plan import Plan

#: The server's FTP reads all connections by one thread, which must not pause for one of them.
_PAUSABLE = (Application.HTTP_DATA, Application.HTTP_IMAGE, Application.HTTPS, Application.TCP)


class UplinkBuffer(Experiment):
    """Uploads to a server that stops reading."""

    name = "uplink-buffer"
    summary = "Upload while the server reads nothing, for the detector to see who took the data."
    defaults: ClassVar[Mapping[str, Json]] = MappingProxyType(
        {"size_bytes": 1_000_000, "after_bytes": 100_000, "pause_s": 4.0, "receive_buffer_bytes": 65_536, "repeats": 1}
    )

    def tasks(self, plan: Plan) -> Iterable[Task]:
        """One upload an application and a repeat."""
        settings = plan.experiments[self.name]
        if Direction.UP not in plan.directions:
            return
        size_bytes, pause_s = int(settings["size_bytes"]), float(settings["pause_s"])
        for application in plan.applications:
            if application not in _PAUSABLE:
                continue
            cost = transfer_cost(application, Direction.UP, size_bytes, plan.rates)
            task = Task(
                self.name,
                1,
                application,
                Direction.UP,
                {name: settings[name] for name in ("size_bytes", "after_bytes", "pause_s", "receive_buffer_bytes")},
                bytes_up=cost.bytes_up,
                bytes_down=cost.bytes_down,
                expected_s=cost.expected_s + pause_s,
                wants=frozenset({Want.MOBILE_CAPTURE, Want.SERVER_CAPTURE}),
            )
            yield from repeated(task, settings["repeats"])

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Upload one object, read as the task says."""
        assert task.application is not None
        wanted = Reading(
            float(task.parameters["pause_s"]),
            int(task.parameters["after_bytes"]),
            int(task.parameters["receive_buffer_bytes"]),
        )
        moved = end.transfer(task.application, Direction.UP, int(task.parameters["size_bytes"]), reading=wanted)
        return Measurement({"transfer": moved.to_mapping()}, moved.flows)

    def examine(self, seen: Sequence[Seen]) -> tuple[Evidence, ...]:  # noqa: ARG002
        """Nothing: the captures' own verdicts say everything."""
        return ()
