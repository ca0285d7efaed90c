"""Ordinary questions: how soon handshake, acknowledgement and answer come, and whether a program here takes them.

What was acknowledged, and answered only later, was either acknowledged by a middlebox before the host had it, or by a
host that thinks. The two look alike from one end, so that the gap moves no verdict; it is named, with its least value
over all questions, since a host that thinks rarely needs the same time twice and a mobile that sleeps wakes up but
once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prober.check.experiment import Asked, CheckExperiment, Cost, PortMaterial
from prober.check.finding import Cause, CheckFinding, Says
from prober.check.probes.data_probe import DataAnswer, ask
from prober.check.questions import question

NAME = "questions"
#: One request wakes a radio that sleeps, and one may wait in a queue: the least of the others does neither.
QUESTIONS = 4
_PATIENCE_S = 5.0
_CONNECTION_BYTES = 2_000
#: Answers that take so much longer than acknowledgements wait for a program, or for another leg of the path.
_LATE_S = 0.01


@dataclass(frozen=True, slots=True)
class Questions:
    """What became of ordinary questions, one after the other."""

    plain: tuple[DataAnswer, ...]

    @property
    def near_s(self) -> float | None:
        """The least time after which anything of TCP came back: a SYN-ACK, an acknowledgement, the kernel's least."""
        times = [each.handshake_s for each in self.plain]
        times += [each.acknowledged_after_s for each in self.plain if each.acknowledged_after_s is not None]
        times += [each.least_round_trip_s for each in self.plain if each.least_round_trip_s is not None]
        return min(times, default=None)

    @property
    def acknowledged_s(self) -> float | None:
        """The least time of an acknowledgement of data."""
        times = (each.acknowledged_after_s for each in self.plain)
        return min((each for each in times if each is not None), default=None)

    @property
    def answer_gap_s(self) -> float | None:
        """The least time from a question's acknowledgement to its answer."""
        gaps = (
            each.answered_after_s - each.acknowledged_after_s
            for each in self.plain
            if each.answered_after_s is not None and each.acknowledged_after_s is not None
        )
        return min(gaps, default=None)


class OrdinaryQuestions(CheckExperiment[Questions]):
    """Asks as any client does."""

    name = NAME
    title = "ordinary questions"
    summary = "Connect and ask: times of handshake, acknowledgement and answer, and who takes the connection."
    measured = Questions

    def cost(self) -> Cost:
        """So many connections."""
        return Cost(connections=QUESTIONS, sent_bytes=QUESTIONS * _CONNECTION_BYTES)

    def measure(self, asked: Asked) -> Questions:
        """Ask one after the other. Raises OSError where no connection comes about."""
        text = question(asked.place.target)
        address, port = asked.place.address, asked.place.target.port
        return Questions(tuple(ask(address, port, text, None, _PATIENCE_S, _PATIENCE_S) for _ in range(QUESTIONS)))

    def examine(self, port: PortMaterial) -> Iterable[CheckFinding]:
        """A program on this host, and answers that come long after the acknowledgement."""
        here, late = [], []
        for each, found in self.observed(port):
            here += [each.host] if any(answer.ends_here for answer in found.plain) else []
            gap_s = found.answer_gap_s
            late += [(each.host, gap_s)] if gap_s is not None and gap_s >= _LATE_S else []
        if here:
            yield CheckFinding(
                "program-on-this-host", Says.FIRST,
                "A program on this host (a local proxy or antivirus) takes the connections: check again without it.",
                tuple(sorted(here)), Cause.THIS_HOST,
            )  # fmt: skip
        if late:
            least_s, most_s = min(gap for _, gap in late), max(gap for _, gap in late)
            span = f"{least_s * 1e3:.0f}" + (f" to {most_s * 1e3:.0f}" if round((most_s - least_s) * 1e3) else "")
            yield CheckFinding(
                "answers-after-acknowledgements", Says.NAMED,
                f"Answers come {span} ms after the acknowledgement of the question, in the quickest of {QUESTIONS}: "
                "the program behind the address thinks, or the path goes on behind what acknowledges.",
                tuple(sorted({host for host, _ in late})), Cause.SLOW_SERVER,
                numbers={"least_answer_gap_s": least_s},
            )  # fmt: skip

    def document(self, measured: Questions) -> Mapping[str, Any]:
        """Times in seconds."""
        return {
            "least_transport_round_trip_s": measured.near_s,
            "least_acknowledgement_s": measured.acknowledged_s,
            "least_answer_gap_s": measured.answer_gap_s,
            "local_ports": [each.local_port for each in measured.plain],
            "offered": [list(each.offered) for each in measured.plain],
        }
