"""Does somebody on the way change the bytes? Images and text arrive as the server made them, or they do not.

Decision: the server makes an object from its size and seed, so the mobile knows what must arrive. Another digest means
that somebody took the whole object and wrote another one; a content coding that the server did not use, likewise.
Unchanged bytes say nothing: a proxy may find nothing to gain.
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
from prober.measured import entries, number, table, text
from prober.objects import Kind, ObjectName

if TYPE_CHECKING:
    from prober.mobile_end import MobileEnd
    from prober.plan import Plan

#: What is asked for in each application.
KINDS: Mapping[Application, tuple[Kind, ...]] = {
    Application.HTTP_DATA: (Kind.TEXT, Kind.BINARY),
    Application.HTTP_IMAGE: (Kind.JPEG, Kind.PNG),
}


class Recompress(Experiment):
    """Fetches one object of each kind and compares it with what the server made."""

    name = "recompress"
    summary = "Fetch images and text, and compare every byte with what the server made."
    defaults: ClassVar[Mapping[str, Json]] = MappingProxyType({"size_bytes": 200_000, "repeats": 1})

    def tasks(self, plan: Plan) -> Iterable[Task]:
        """One task a kind of object and a repeat."""
        settings = plan.experiments[self.name]
        if Direction.DOWN not in plan.directions:
            return
        size_bytes = int(settings["size_bytes"])
        for application, kinds in KINDS.items():
            if application not in plan.applications:
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
                    expected_s=2 * plan.rates.round_trip_time_s + size_bytes * 8 / plan.rates.down_bit_s,
                )
                yield from repeated(task, settings["repeats"])

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Fetch one object, allowing for codings, and ask the server what it sent."""
        kind = Kind(str(task.parameters["kind"]))
        wanted = ObjectName(kind, int(task.parameters["size_bytes"]), secrets.randbelow(1 << 32))
        target = end.object_target(wanted.size_bytes, wanted.seed, wanted.kind)
        before = end.control.last_served_number()
        answer = fetch(end, target, {"Accept-Encoding": "gzip, deflate"})
        sent = [row for row in end.control.served(before) if row.object == str(wanted) and row.is_over]
        return Measurement(
            {
                "answer": answer.to_mapping(),
                "sent": [{"size_bytes": served.size_bytes, "sha256": served.sha256} for served in sent],
                "arrivals": arrivals(sent),
            },
            (answer.flow,),
        )

    def examine(self, seen: Sequence[Seen]) -> tuple[Evidence, ...]:
        """Findings: `other-bytes` (split), `same-bytes`; and what intermediaries leave."""
        measured = [item.observation.measurement.values for item in seen]
        requests = [row for values in measured for row in optional_entries(values, "arrivals")]
        answers = [table(values, "answer") for values in measured if "answer" in values]
        return (*self._compared(seen), *intermediary_evidence(self.name, requests, answers))

    def _compared(self, seen: Sequence[Seen]) -> tuple[Evidence, ...]:
        compared, changed = 0, []
        for item in seen:
            values = item.observation.measurement.values
            answer, sent = values.get("answer", {}), entries(values, "sent")
            if not sent or int(number(answer, "status")) != 200:
                continue
            compared += 1
            if text(answer, "sha256") != text(sent[-1], "sha256"):
                changed.append((item.observation.task.parameters.get("kind"), answer, sent[-1]))
        if not compared:
            return ()
        if not changed:
            return (
                Evidence(
                    self.name, Outcome.INAPPLICABLE, "same-bytes", 0.0,
                    f"All {compared} objects arrived as the server made them, as a relay leaves them, too.",
                    {"objects": compared},
                ),
            )  # fmt: skip
        kind, answer, made = changed[0]
        sizes = {
            "size_sent_bytes": int(number(made, "size_bytes")),
            "size_arrived_bytes": int(number(answer, "size_bytes")),
        }
        how = _how(answer, made)
        return (
            Evidence(
                self.name, Outcome.SPLIT, "other-bytes", 1.0,
                f"{len(changed)} of {compared} objects arrived with other bytes than the server sent; the first, "
                f".{kind}, left with {sizes['size_sent_bytes']} bytes and arrived with {sizes['size_arrived_bytes']}"
                f"{how}.", {"objects": compared, "changed": len(changed), **sizes},
            ),
        )  # fmt: skip


def _how(answer: Mapping[str, Json], made: Mapping[str, Json]) -> str:
    """What was done to the object, as far as it can be told."""
    if text(answer, "decoded_sha256") == text(made, "sha256"):
        return f", coded with {text(answer, 'content_encoding')} on the way"
    return ", its content made anew"
