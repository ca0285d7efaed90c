"""Does a middlebox accept data while the server reads nothing? An upload that the server reads slowly.

The server offers a small receive buffer, stops reading after `after_bytes`, and continues after `pause_s`. End to end
the server's window stops the mobile meanwhile. A split point continues to accept data until its own buffer is full, and
advertises its own window to the mobile. The detector's methods `progress` and `receive_window` judge the captures; this
experiment has no rule. An uplink is usually the slower leg, so without the pause there would be no queue (Wei et al.,
Fig. 2b).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pepscope.captures.direction import Direction
from pepscope.strict_reading import Amount, Table, WholeNumber
from prober.client.capabilities import Capability
from prober.measurement.cost_estimate import transfer_cost
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.measured_transfer import OneTransfer, measured_transfer
from prober.measurement.task import Measurement, Task, repeated
from prober.protocol.application import Application
from prober.protocol.plain_requests import Reading

if TYPE_CHECKING:
    from pepscope.results.verdicts import Evidence
    from prober.client.mobile_end import MobileEnd
    from prober.measurement.experiment import Scope

#: The server's FTP reads all connections by one thread, which must not pause for one of them.
_PAUSABLE = (Application.HTTP_DATA, Application.HTTP_IMAGE, Application.HTTPS, Application.TCP)


class UplinkBufferOptions(Table, frozen=True):
    """What a plan may set."""

    size_bytes: WholeNumber = 1_000_000
    after_bytes: WholeNumber = 100_000
    pause_s: Amount = 4.0
    receive_buffer_bytes: WholeNumber = 65_536
    repeats: WholeNumber = 1


class UplinkBuffer(Experiment[UplinkBufferOptions, OneTransfer]):
    """Uploads to a server that stops reading."""

    name = "uplink-buffer"
    title = "upload to a server that reads nothing"
    summary = "Upload while the server reads nothing, for the detector to find a middlebox that accepts the data."
    options = UplinkBufferOptions
    measured = OneTransfer

    def tasks(self, options: UplinkBufferOptions, scope: Scope) -> Iterable[Task]:
        """One upload an application and a repeat."""
        if Direction.UP not in scope.directions:
            return
        size_bytes, pause_s = options.size_bytes, options.pause_s
        for application in scope.applications:
            if application not in _PAUSABLE:
                continue
            cost = transfer_cost(application, Direction.UP, size_bytes, scope.rates)
            task = Task(
                self.name,
                1,
                application,
                Direction.UP,
                {
                    "size_bytes": size_bytes,
                    "after_bytes": options.after_bytes,
                    "pause_s": pause_s,
                    "receive_buffer_bytes": options.receive_buffer_bytes,
                },
                connections=cost.connections,
                bytes_up=cost.bytes_up,
                bytes_down=cost.bytes_down,
                expected_s=cost.expected_s + pause_s,
                requires=frozenset({Capability.MOBILE_CAPTURE, Capability.SERVER_CAPTURE}),
            )
            yield from repeated(task, options.repeats)

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Upload one object, read as the task says."""
        assert task.application is not None
        wanted = Reading(
            float(task.parameters["pause_s"]),
            int(task.parameters["after_bytes"]),
            int(task.parameters["receive_buffer_bytes"]),
        )
        moved = end.transfer(task.application, Direction.UP, int(task.parameters["size_bytes"]), reading=wanted)
        return Measurement.of(OneTransfer(transfer=measured_transfer(moved)), moved.flows)

    def examine(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:  # noqa: ARG002
        """Nothing: the captures' own verdicts say everything."""
        return ()
