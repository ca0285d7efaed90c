"""One transfer as archives keep it."""

from __future__ import annotations

from prober.client.transfer import Transfer
from prober.measurement.measured import Count, FiniteNumber, Measured


class MeasuredTransfer(Measured, frozen=True, kw_only=True):
    """The fields of `prober.client.transfer.Transfer` without its connections, which have their own place."""

    application: str = ""
    direction: str = ""
    size_bytes: FiniteNumber
    moved_bytes: FiniteNumber
    seed: Count = 0
    connect_s: FiniteNumber
    first_byte_s: FiniteNumber
    total_s: FiniteNumber
    sha256: str = ""
    sha256_expected: str = ""
    complete: bool = True
    status: str
    started_unix_ns: Count = 0
    #: Names of the answer's header fields in lower case; `None` where an earlier version kept none.
    answer_fields: dict[str, str] | None = None
    certificate_is_the_servers: bool | None = None


class OneTransfer(Measured, frozen=True, kw_only=True):
    """What experiments keep whose findings are read off the captures alone."""

    transfer: MeasuredTransfer


def measured_transfer(moved: Transfer) -> MeasuredTransfer:
    """A transfer as archives keep it."""
    return MeasuredTransfer(
        application=moved.application.value,
        direction=moved.direction.name.lower(),
        size_bytes=moved.size_bytes,
        moved_bytes=moved.moved_bytes,
        seed=moved.seed,
        connect_s=moved.connect_s,
        first_byte_s=moved.first_byte_s,
        total_s=moved.total_s,
        sha256=moved.sha256,
        sha256_expected=moved.sha256_expected,
        complete=moved.complete,
        status=moved.status,
        started_unix_ns=moved.started_unix_ns,
        answer_fields=dict(moved.answer_fields),
        certificate_is_the_servers=moved.certificate_is_the_servers,
    )
