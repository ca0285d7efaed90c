"""Does somebody on the way keep copies? The same object is fetched twice, and the server counts who asked for it.

Decision: where the mobile got the right object more often than the server was asked for it, somebody else answered
(Wei et al., section III-A: "later downloads may not be from the original server"). That nobody did says nothing about
a split, since most do not cache.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from pepscope.packets import Direction
from pepscope.results import Evidence, Outcome
from prober.experiment import Application, Experiment, Json, Measurement, Seen, Task, repeated
from prober.http_fetch import fetch
from prober.intermediaries import arrivals, intermediary_evidence, optional_entries
from prober.measured import entries, number, truth
from prober.objects import Kind, ObjectName

if TYPE_CHECKING:
    from prober.mobile_end import MobileEnd
    from prober.plan import Plan

#: How long the server says that copies may be kept: longer than any run between two requests.
FRESH_S = 3600

#: The objects that plain HTTP carries, by what a proxy may treat differently.
KINDS: Mapping[Application, Kind] = {Application.HTTP_DATA: Kind.BINARY, Application.HTTP_IMAGE: Kind.JPEG}


class Cache(Experiment):
    """Fetches an object that may be kept, and one that may not, several times."""

    name = "cache"
    summary = "Fetch the same object several times, and count the requests that reach the server."
    defaults: ClassVar[Mapping[str, Json]] = MappingProxyType({"size_bytes": 50_000, "fetches": 3, "repeats": 1})

    def tasks(self, plan: Plan) -> Iterable[Task]:
        """One task an application over plain HTTP and a repeat."""
        settings = plan.experiments[self.name]
        if Direction.DOWN not in plan.directions:
            return
        size_bytes, fetches = int(settings["size_bytes"]), max(2, int(settings["fetches"]))
        for application in KINDS:
            if application not in plan.applications:
                continue
            task = Task(
                self.name,
                1,
                application,
                Direction.DOWN,
                {"size_bytes": size_bytes, "fetches": fetches},
                bytes_up=1000 * fetches,
                bytes_down=2 * size_bytes * fetches,
                expected_s=2 * fetches * (2 * plan.rates.round_trip_time_s + size_bytes * 8 / plan.rates.down_bit_s),
            )
            yield from repeated(task, settings["repeats"])

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Ask for each object as often as the task says, one connection a request."""
        assert task.application is not None
        objects, flows = [], []
        for may_be_kept in (True, False):
            # A seed that nobody used before: an earlier run's copies must not answer.
            seed = secrets.randbelow(1 << 32)
            wanted = ObjectName(KINDS[task.application], int(task.parameters["size_bytes"]), seed)
            cache_s = FRESH_S if may_be_kept else 0
            target = end.object_target(wanted.size_bytes, wanted.seed, wanted.kind, cache_s=cache_s)
            before = end.control.last_served_number()
            fetched = [fetch(end, target) for _ in range(task.parameters["fetches"])]
            asked = [served for served in end.control.served(before) if served.object == str(wanted)]
            flows += [answer.flow for answer in fetched]
            objects.append(
                {
                    "may_be_kept": may_be_kept,
                    "answers": [answer.to_mapping() for answer in fetched],
                    "whole_answers": sum(answer.status == 200 for answer in fetched),
                    "requests_at_the_server": len(asked),
                    "arrivals": arrivals(asked),
                }
            )
        return Measurement({"objects": objects}, tuple(flows))

    def examine(self, seen: Sequence[Seen]) -> tuple[Evidence, ...]:
        """Findings: `served-from-cache` (split, proxy), `every-request-arrived`; and what intermediaries leave."""
        return (*self._copies(seen), *self._intermediaries(seen))

    def _intermediaries(self, seen: Sequence[Seen]) -> tuple[Evidence, ...]:
        things = [thing for item in seen for thing in entries(item.observation.measurement.values, "objects")]
        requests = [row for thing in things for row in optional_entries(thing, "arrivals")]
        answers = [row for thing in things for row in optional_entries(thing, "answers")]
        return intermediary_evidence(self.name, requests, answers)

    def _copies(self, seen: Sequence[Seen]) -> tuple[Evidence, ...]:
        answers = asked = kept_though_forbidden = 0
        for item in seen:
            for thing in entries(item.observation.measurement.values, "objects"):
                whole, reached = int(number(thing, "whole_answers")), int(number(thing, "requests_at_the_server"))
                answers, asked = answers + whole, asked + min(whole, reached)
                kept_though_forbidden += 0 if truth(thing, "may_be_kept") else max(0, whole - reached)
        if not answers:
            return ()
        numbers = {"answers": answers, "requests_at_the_server": asked, "kept_though_forbidden": kept_though_forbidden}
        if asked < answers:
            forbidden = f", {kept_though_forbidden} of them forbidden to keep" if kept_though_forbidden else ""
            return (
                Evidence(
                    self.name, Outcome.SPLIT, "served-from-cache", 1.0,
                    f"{answers} answers came for {asked} requests that reached the server: somebody in between "
                    f"answered {answers - asked} from a copy{forbidden}.", numbers,
                ),
            )  # fmt: skip
        return (
            Evidence(
                self.name, Outcome.INAPPLICABLE, "every-request-arrived", 0.0,
                f"All {answers} requests reached the server: nobody kept copies, as most splits do not.", numbers,
            ),
        )  # fmt: skip
