"""Does a middlebox cache answers? The mobile fetches the same object several times, and the server counts the requests.

Decision: where the mobile got the right object more often than requests reached the server, a cache answered (Wei et
al., section III-A: "later downloads may not be from the original server"). The opposite is no evidence about a split,
since most splits do not cache.
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

#: How long the server allows caches to store the object: longer than any run between two requests.
FRESH_S = 3600

#: The objects that plain HTTP carries, by what a proxy may treat differently.
KINDS: Mapping[Application, ObjectKind] = {
    Application.HTTP_DATA: ObjectKind.BINARY,
    Application.HTTP_IMAGE: ObjectKind.JPEG,
}


class CacheFinding(Finding):
    """Whether repeated requests reach the server."""

    EVERY_REQUEST_ARRIVED = inapplicable("every-request-arrived")


class CacheOptions(Table, frozen=True):
    """What a plan may set."""

    size_bytes: WholeNumber = 50_000
    fetches: WholeNumber = 3
    repeats: WholeNumber = 1


class FetchedObject(Measured, frozen=True, kw_only=True):
    """One object, fetched several times."""

    may_be_kept: bool
    answers: tuple[Fetched, ...] = ()
    whole_answers: Count
    requests_at_the_server: Count
    #: Empty where an earlier version kept none.
    arrivals: tuple[Arrival, ...] = ()


class CacheMeasured(Measured, frozen=True, kw_only=True):
    """The object that caches may store, and the one that they must not store."""

    objects: tuple[FetchedObject, ...]


class Cache(Experiment[CacheOptions, CacheMeasured]):
    """Fetches an object that caches may store, and one that they must not store, several times."""

    name = "cache"
    title = "repeated downloads"
    summary = "Fetch the same object several times, and count the requests that reach the server."
    findings = (
        CacheFinding,
        TransferFinding,
        IntermediaryFinding,
    )
    options = CacheOptions
    measured = CacheMeasured

    def tasks(self, options: CacheOptions, scope: Scope) -> Iterable[Task]:
        """One task an application over plain HTTP and a repeat."""
        if Direction.DOWN not in scope.directions:
            return
        size_bytes, fetches = options.size_bytes, max(2, options.fetches)
        for application in KINDS:
            if application not in scope.applications:
                continue
            task = Task(
                self.name,
                1,
                application,
                Direction.DOWN,
                {"size_bytes": size_bytes, "fetches": fetches},
                connections=2 * fetches,
                bytes_up=1000 * fetches,
                bytes_down=2 * size_bytes * fetches,
                expected_s=2 * fetches * (2 * scope.rates.round_trip_time_s + size_bytes * 8 / scope.rates.down_bit_s),
            )
            yield from repeated(task, options.repeats)

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Fetch each object as often as the task requires, with one connection for each request."""
        assert task.application is not None
        objects, flows = [], []
        for may_be_kept in (True, False):
            # A seed that was not used before: an earlier run's copies must not answer.
            seed = secrets.randbelow(1 << 32)
            wanted = ObjectName(KINDS[task.application], int(task.parameters["size_bytes"]), seed)
            cache_s = FRESH_S if may_be_kept else 0
            target = end.object_target(wanted.size_bytes, wanted.seed, wanted.kind, cache_s=cache_s)
            before = end.control.last_served_number()
            fetched = [fetch(end, target) for _ in range(int(task.parameters["fetches"]))]
            asked = [served for served in end.control.served(before) if served.object == str(wanted)]
            flows += [answer.flow for answer in fetched]
            objects.append(
                FetchedObject(
                    may_be_kept=may_be_kept,
                    answers=tuple(fetched),
                    whole_answers=sum(answer.status == 200 for answer in fetched),
                    requests_at_the_server=len(asked),
                    arrivals=arrivals(asked),
                )
            )
        return Measurement.of(CacheMeasured(objects=tuple(objects)), flows)

    def examine(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        """Findings: `served-from-cache` (split, proxy), `every-request-arrived`; and what intermediaries leave."""
        objects = [one for item in observed for one in self.kept(item).objects]
        requests = [row for one in objects for row in one.arrivals]
        answers = [answer for one in objects for answer in one.answers]
        return (*self._copies(objects), *intermediary_evidence(self.name, requests, answers))

    def _copies(self, objects: Sequence[FetchedObject]) -> tuple[Evidence, ...]:
        answers = asked = kept_though_forbidden = 0
        for one in objects:
            whole, reached = one.whole_answers, one.requests_at_the_server
            answers, asked = answers + whole, asked + min(whole, reached)
            kept_though_forbidden += 0 if one.may_be_kept else max(0, whole - reached)
        if not answers:
            return ()
        numbers = {"answers": answers, "requests_at_the_server": asked, "kept_though_forbidden": kept_though_forbidden}
        if asked < answers:
            forbidden = f", {kept_though_forbidden} of them forbidden to keep" if kept_though_forbidden else ""
            return (
                TransferFinding.SERVED_FROM_CACHE.evidence(
                    self.name, 1.0,
                    f"{answers} answers came for {asked} requests that reached the server: a middlebox "
                    f"answered {answers - asked} from a copy{forbidden}.", numbers,
                ),
            )  # fmt: skip
        return (
            CacheFinding.EVERY_REQUEST_ARRIVED.undecided(
                self.name,
                f"All {answers} requests reached the server: no middlebox kept copies, as most splits do not.", numbers,
            ),
        )  # fmt: skip
