"""Plain transfers of every application, in both directions, captured at both ends, for the detector's methods.

It has two rules of its own: TLS with another certificate than the server's is not end to end; and traces of
intermediaries in HTTP at both ends (`prober.measurement.intermediaries`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from pepscope.captures.direction import Direction
from pepscope.results.finding import CERTAIN, Finding, Weight, split
from pepscope.results.verdicts import Evidence, Mechanism
from pepscope.strict_reading import Amount, Table, WholeNumber
from prober.errors import MeasurementError, PlanError
from prober.measurement.cost_estimate import transfer_cost
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.intermediaries import (
    Arrival,
    IntermediaryFinding,
    answer_fields,
    arrivals,
    intermediary_evidence,
)
from prober.measurement.measured_transfer import MeasuredTransfer, measured_transfer
from prober.measurement.task import Measurement, Task
from prober.protocol.application import Application
from prober.protocol.json_documents import Json
from prober.protocol.objects import MOST_PICTURE_BYTES
from prober.protocol.pictures import LEAST_BYTES as LEAST_PICTURE_BYTES

if TYPE_CHECKING:
    from prober.client.mobile_end import MobileEnd
    from prober.measurement.experiment import Scope

#: Applications whose requests and answers have header fields, one request on each of the mobile's connections.
HTTP = frozenset({Application.HTTP_DATA, Application.HTTP_IMAGE, Application.HTTPS})


class TransfersFinding(Finding):
    """What plain transfers show beside their captures."""

    ANOTHER_CERTIFICATE = split(
        "another-certificate",
        Weight(
            "content", CERTAIN, 0.0, 0.0, CERTAIN, "TLS is ended by another host than the server.",
            Mechanism.TLS_INTERCEPTION,
        ),
    )  # fmt: skip


class TransfersOptions(Table, frozen=True):
    """What a plan may set."""

    #: Small objects show what a split does to short transfers; whether it stores them shows only where an object
    #: exceeds a split's buffers. Linux lets one send buffer grow to 4 MB (tcp(7), tcp_wmem).
    sizes_bytes: Annotated[tuple[WholeNumber, ...], Meta(min_length=1)] = (100_000, 4_000_000)
    repeats: WholeNumber = 2
    upload_share: Amount = 0.5


class TransfersMeasured(MeasuredTransfer, frozen=True, kw_only=True):
    """One transfer, and how its request arrived."""

    intact: bool
    #: HTTP only; empty where an earlier version kept none.
    arrivals: tuple[Arrival, ...] = ()


class Transfers(Experiment[TransfersOptions, TransfersMeasured]):
    """Moves objects as applications do, and keeps what both ends saw."""

    name = "transfers"
    title = "transfers"
    summary = "Move objects by every application, both ways, captured at both ends."
    findings = (
        TransfersFinding,
        IntermediaryFinding,
    )
    options = TransfersOptions
    measured = TransfersMeasured

    def tasks(self, options: TransfersOptions, scope: Scope) -> Iterable[Task]:
        """All cells once, then all again: what changes with time touches every cell alike.

        Sizes take turns in their order, so that a middlebox that takes every second connection takes some of each size.
        """
        for repeat in range(1, options.repeats + 1):
            for application in scope.applications:
                for direction in scope.directions:
                    sizes = _sizes(options, application, direction)
                    for size_bytes in sizes if repeat % 2 else reversed(sizes):
                        yield _task(scope, repeat, application, direction, size_bytes)

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Move one new object."""
        assert task.application is not None
        assert task.direction is not None
        before = end.control.last_served_number()
        moved = end.transfer(task.application, task.direction, int(task.parameters["size_bytes"]))
        if not moved.complete:
            raise MeasurementError(
                f"the {task.application} transfer ended with {moved.status} after {moved.moved_bytes} of "
                f"{moved.size_bytes} bytes"
            )
        is_http = task.application in HTTP
        values = TransfersMeasured(
            **msgspec.structs.asdict(measured_transfer(moved)),
            intact=moved.intact,
            arrivals=arrivals(end.control.served(before)) if is_http else (),
        )
        return Measurement.of(values, moved.flows)

    def examine(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        """Findings: `another-certificate` (split): a middlebox ends TLS; and what intermediaries leave."""
        measured = [self.kept(item) for item in observed]
        requests = [row for values in measured for row in values.arrivals]
        answers = [answer_fields(values.answer_fields) for values in measured if values.answer_fields is not None]
        return (*self._certificates(measured), *intermediary_evidence(self.name, requests, answers))

    def _certificates(self, measured: Sequence[TransfersMeasured]) -> tuple[Evidence, ...]:
        secured = [values for values in measured if values.certificate_is_the_servers is not None]
        foreign = sum(not values.certificate_is_the_servers for values in secured)
        if not foreign:
            return ()
        return (
            TransfersFinding.ANOTHER_CERTIFICATE.evidence(
                self.name,
                1.0,
                f"{foreign} of {len(secured)} TLS connections got another certificate than the server's: "
                "a middlebox ends them.",
                {"connections": len(secured), "foreign": foreign},
            ),
        )

    def metrics(self, observed: Sequence[ObservedTask]) -> Mapping[str, Json]:
        """Rates and times of each transfer, and how many arrived changed."""
        rows = []
        for item in observed:
            values = self.kept(item)
            rows.append(
                {
                    "size_bytes": values.size_bytes,
                    "rate_bit_s": values.moved_bytes * 8 / values.total_s if values.total_s > 0 else 0.0,
                    "connect_s": values.connect_s,
                    "first_byte_s": values.first_byte_s,
                    "total_s": values.total_s,
                    "intact": values.intact,
                    "status": values.status,
                }
            )
        return {"transfers": rows, "changed": sum(not row["intact"] for row in rows)} if rows else {}


def _sizes(options: TransfersOptions, application: Application, direction: Direction) -> list[int]:
    """Sizes in rising order; uploads may be smaller, and pictures have bounds of their own."""
    share = options.upload_share if direction is Direction.UP else 1.0
    if not 0 < share <= 1:
        raise PlanError(f"experiments.transfers.upload_share must be above 0 and at most 1, got {share:g}")
    sizes = {max(1, round(size * share)) for size in options.sizes_bytes}
    if application is Application.HTTP_IMAGE:
        sizes = {min(max(size, LEAST_PICTURE_BYTES), MOST_PICTURE_BYTES) for size in sizes}
    return sorted(sizes)


def _task(scope: Scope, repeat: int, application: Application, direction: Direction, size_bytes: int) -> Task:
    cost = transfer_cost(application, direction, size_bytes, scope.rates)
    return Task(
        Transfers.name,
        repeat,
        application,
        direction,
        {"size_bytes": size_bytes},
        connections=cost.connections,
        bytes_up=cost.bytes_up,
        bytes_down=cost.bytes_down,
        expected_s=cost.expected_s,
    )
