"""Does a middlebox change the bytes of images and text?

Decision: the server generates an object from its size and seed, so the mobile can compute the expected bytes. Another
digest means that a proxy received the whole object and wrote another one; the same holds for a content coding that the
server did not use. Unchanged bytes are no evidence: a proxy may not be able to make the object smaller.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pepscope.captures.direction import Direction
from pepscope.results.finding import Finding, inapplicable
from pepscope.results.transfer_findings import TransferFinding
from pepscope.results.verdicts import Evidence
from pepscope.strict_reading import Table, WholeNumber
from prober.client.http_fetch import Fetched, fetch
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.intermediaries import Arrival, IntermediaryFinding, arrivals, intermediary_evidence
from prober.measurement.measured import Count, Measured
from prober.measurement.task import Measurement, Task, repeated
from prober.protocol.application import Application
from prober.protocol.objects import ObjectKind, ObjectName

if TYPE_CHECKING:
    from prober.client.mobile_end import MobileEnd
    from prober.measurement.experiment import Scope

#: What is asked for in each application.
KINDS: Mapping[Application, tuple[ObjectKind, ...]] = {
    Application.HTTP_DATA: (ObjectKind.TEXT, ObjectKind.BINARY),
    Application.HTTP_IMAGE: (ObjectKind.JPEG, ObjectKind.PNG),
}


class RecompressFinding(Finding):
    """Whether pictures arrive as they left."""

    SAME_BYTES = inapplicable("same-bytes")


class RecompressOptions(Table, frozen=True):
    """What a plan may set."""

    size_bytes: WholeNumber = 200_000
    repeats: WholeNumber = 1


class SentObject(Measured, frozen=True, kw_only=True):
    """What the server sent, by its own account."""

    size_bytes: Count
    sha256: str


class RecompressMeasured(Measured, frozen=True, kw_only=True):
    """One object as it arrived, and as it was sent."""

    answer: Fetched
    sent: tuple[SentObject, ...]
    #: Empty where an earlier version kept none.
    arrivals: tuple[Arrival, ...] = ()


class Recompress(Experiment[RecompressOptions, RecompressMeasured]):
    """Fetches one object of each kind and compares it with what the server made."""

    name = "recompress"
    title = "recompressed images"
    summary = "Fetch images and text, and compare every byte with the server's object."
    findings = (
        RecompressFinding,
        TransferFinding,
        IntermediaryFinding,
    )
    options = RecompressOptions
    measured = RecompressMeasured

    def tasks(self, options: RecompressOptions, scope: Scope) -> Iterable[Task]:
        """One task a kind of object and a repeat."""
        if Direction.DOWN not in scope.directions:
            return
        size_bytes = options.size_bytes
        for application, kinds in KINDS.items():
            if application not in scope.applications:
                continue
            for kind in kinds:
                task = Task(
                    self.name,
                    1,
                    application,
                    Direction.DOWN,
                    {"size_bytes": size_bytes, "kind": kind.value},
                    bytes_up=1000,
                    bytes_down=size_bytes,
                    expected_s=2 * scope.rates.round_trip_time_s + size_bytes * 8 / scope.rates.down_bit_s,
                )
                yield from repeated(task, options.repeats)

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Fetch one object, allowing for codings, and ask the server what it sent."""
        kind = ObjectKind(str(task.parameters["kind"]))
        wanted = ObjectName(kind, int(task.parameters["size_bytes"]), secrets.randbelow(1 << 32))
        target = end.object_target(wanted.size_bytes, wanted.seed, wanted.kind)
        before = end.control.last_served_number()
        answer = fetch(end, target, {"Accept-Encoding": "gzip, deflate"})
        sent = [row for row in end.control.served(before) if row.object == str(wanted) and row.is_over]
        measured = RecompressMeasured(
            answer=answer,
            sent=tuple(SentObject(size_bytes=served.size_bytes, sha256=served.sha256) for served in sent),
            arrivals=arrivals(sent),
        )
        return Measurement.of(measured, (answer.flow,))

    def examine(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        """Findings: `other-bytes` (split), `same-bytes`; and what intermediaries leave."""
        measured = [self.kept(item) for item in observed]
        requests = [row for values in measured for row in values.arrivals]
        answers = [values.answer for values in measured]
        return (*self._compared(observed), *intermediary_evidence(self.name, requests, answers))

    def _compared(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        compared, changed = 0, []
        for item in observed:
            values = self.kept(item)
            answer, sent = values.answer, values.sent
            if not sent or answer.status != 200:
                continue
            compared += 1
            if answer.sha256 != sent[-1].sha256:
                changed.append((item.observation.task.parameters.get("kind"), answer, sent[-1]))
        if not compared:
            return ()
        if not changed:
            return (
                RecompressFinding.SAME_BYTES.undecided(
                    self.name,
                    f"All {compared} objects arrived as the server made them, as a relay leaves them, too.",
                    {"objects": compared},
                ),
            )  # fmt: skip
        kind, answer, made = changed[0]
        sizes = {
            "size_sent_bytes": made.size_bytes,
            "size_arrived_bytes": answer.size_bytes,
        }
        how = _how(answer, made)
        return (
            TransferFinding.OTHER_BYTES.evidence(
                self.name, 1.0,
                f"{len(changed)} of {compared} objects arrived with other bytes than the server sent; the first, "
                f".{kind}, left with {sizes['size_sent_bytes']} bytes and arrived with {sizes['size_arrived_bytes']}"
                f"{how}.", {"objects": compared, "changed": len(changed), **sizes},
            ),
        )  # fmt: skip


def _how(answer: Fetched, made: SentObject) -> str:
    """What was done to the object, as far as it is known."""
    if answer.decoded_sha256 == made.sha256:
        return f", coded with {answer.content_encoding} on the way"
    return ", its content made anew"
