"""Exchanges and round trips in plain Python: what the compiled numbers are compared with.

Packets with new bytes are speeches; speeches of one side without one of the other between are a run. A run is a
question, and the first speech of the next run that acknowledges it whole begins its answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Mark, PacketColumns, TcpFlag

NO_SPEECH = Mark.KEEP_ALIVE | Mark.ZERO_WINDOW_PROBE
SECOND_NS = 10**9
LONGEST_SEGMENT_BYTES = 1500
CERTAIN_SEGMENT_BYTES, LONGEST_INSPECTED_BYTES = 1400, 8192


@dataclass(frozen=True)
class Speech:
    place: int
    way: int
    first: int
    end: int
    size: int
    extends: bool  # beyond the highest byte so far
    gap: bool


def _read(packets: PacketColumns) -> tuple[list[Speech], list[tuple[int, int, int, int]]]:
    """Speeches, and copies: place, way, start and end."""
    speeches, copies = [], []
    held: tuple[set[int], set[int]] = (set(), set())
    lowest: list[int | None] = [None, None]
    highest = [0, 0]
    for place in range(len(packets)):
        way, flags, marks = (int(column[place]) for column in (packets.direction, packets.flags, packets.marks))
        length = int(packets.payload_bytes[place])
        if flags & TcpFlag.RST or length == 0 or marks & NO_SPEECH:
            continue
        start = int(packets.sequence_offset[place]) + (flags & TcpFlag.SYN > 0)
        end = start + length
        if lowest[way] is None:
            lowest[way], highest[way] = start, start
        extends = end > highest[way]
        below = max(start, highest[way]) if extends else max(start, lowest[way] or 0)
        new = [byte for byte in range(below, end) if byte not in held[way]]
        if flags & TcpFlag.SYN == 0:
            if new:
                gap = not extends or start > highest[way]
                speeches.append(Speech(place, way, new[0], end, len(new), extends, gap))
            else:
                copies.append((place, way, start, end))
        held[way].update(new)
        highest[way] = max(highest[way], end)
    return speeches, copies


def exchanges(packets: PacketColumns) -> list[dict[str, int | bool]]:
    """The columns that need no payload, by the time of the answer."""
    speeches, copies = _read(packets)
    runs = [list(run) for _, run in groupby(speeches, key=lambda speech: speech.way)]
    answers = [_answer(packets, run, reply) for run, reply in pairwise(runs)]
    # Whether a run begins with the answer to the one before.
    heard = [False, *(answer is reply[0] for answer, reply in zip(answers, runs[1:], strict=True))]
    asked: set[int] = set()
    found: list[dict[str, int | bool]] = []
    for number, (run, answer) in enumerate(zip(runs, answers, strict=False)):
        if answer is None:
            continue
        unanswered = number >= 2 and answers[number - 2] is None
        reply = runs[number + 1]
        row = _row(packets, run, answer, copies)
        row["first"] = run[0].way not in asked
        row["crossed"] = answer is not reply[0] or (unanswered and not heard[number])
        row["answer_bytes"] = sum(speech.size for speech in reply[reply.index(answer) :])
        asked.add(run[0].way)
        found.append(row)
    return sorted(found, key=lambda row: row.pop("place"))


def _answer(packets: PacketColumns, run: list[Speech], reply: list[Speech]) -> Speech | None:
    end = max(speech.end for speech in run)
    return next((speech for speech in reply if packets.acknowledgement_offset[speech.place] >= end), None)


def _row(
    packets: PacketColumns, run: list[Speech], answer: Speech, copies: list[tuple[int, int, int, int]]
) -> dict[str, int | bool]:
    way, first = run[0].way, run[0]
    last = [speech for speech in run if speech.extends or speech is first][-1]
    time_ns, acknowledged = packets.time_ns, packets.acknowledgement_offset
    acks = [
        place
        for place in range(answer.place + 1)
        if packets.direction[place] != way
        and not packets.flags[place] & TcpFlag.RST
        and acknowledged[place] != NO_ACKNOWLEDGEMENT
    ]
    before = [int(acknowledged[place]) for place in acks if place < last.place]
    covering = [place for place in acks if place > last.place and acknowledged[place] >= last.end]
    previous = [place for place in range(first.place) if not packets.flags[place] & TcpFlag.RST]
    again = any(
        copy_way == way and first.place < place < answer.place and start < last.end and end > first.first
        and not packets.marks[place] & Mark.DUPLICATE
        for place, copy_way, start, end in copies
    )  # fmt: skip
    sent_again = any(packets.marks[speech.place] & Mark.RETRANSMISSION for speech in [*run, answer])
    cut = int(acknowledged[answer.place]) > last.end + 1
    question_ns, answered_ns = int(time_ns[last.place]), int(time_ns[answer.place])
    return {
        "place": answer.place,
        "asked": way,
        "repeated": again or sent_again or answer.gap or answered_ns < question_ns or cut,
        "question_ns": question_ns,
        "acknowledged_ns": int(time_ns[covering[0]]),
        "answered_ns": answered_ns,
        "question_bytes": sum(speech.size for speech in run),
        "question_span_ns": max(0, question_ns - int(time_ns[first.place])),
        "flight_bytes": max(0, last.end - max(before, default=first.first)),
        "idle_ns": max(0, int(time_ns[first.place] - time_ns[previous[-1]])) if previous else -1,
    }


def round_trips(packets: PacketColumns, way: int) -> dict[str, int]:
    """Numbers of one direction's data."""
    ends = (packets.direction != way) & (packets.round_trip_time_ns >= 0) & ~_may_be_inspected(packets, way)
    plain = ends & (packets.payload_bytes == 0) & ~packets.flagged(TcpFlag.SYN | TcpFlag.FIN | TcpFlag.RST)
    ranked = np.sort(packets.round_trip_time_ns[plain])
    found = {
        "count": int(ends.sum()),
        "plain_count": len(ranked),
        "least_of_all_ns": int(packets.round_trip_time_ns[ends].min()) if ends.any() else -1,
        "least_ns": int(ranked[0]) if len(ranked) else -1,
    }
    for percent in (10, 20, 60, 90):
        found[f"quantile_{percent}_ns"] = _ranked(ranked, percent)
    prompt = np.sort(packets.round_trip_time_ns[plain & (_newly_acknowledged(packets, way) > LONGEST_SEGMENT_BYTES)])
    found["prompt_count"] = len(prompt)
    found |= {f"prompt_{percent}_ns": _ranked(prompt, percent) for percent in (10, 60)}
    return found


def _may_be_inspected(packets: PacketColumns, way: int) -> np.ndarray:
    """By packet: whether it may acknowledge, in the server's name, what a client says first in several segments."""
    speaks, place = packets.payload_bytes > 0, np.arange(len(packets.direction))
    answers = np.flatnonzero(speaks & (packets.direction == 1))
    before = place < (answers[0] if len(answers) else len(place))
    words = np.flatnonzero(speaks & before)
    begins = np.flatnonzero(packets.flagged(TcpFlag.SYN))
    is_first = way == 0 and len(words) > 0 and len(begins) > 0 and begins[0] <= words[0]
    several = len(words) > 1 or packets.payload_bytes[words].sum() > CERTAIN_SEGMENT_BYTES
    return before & (packets.acknowledgement_offset <= LONGEST_INSPECTED_BYTES) & bool(is_first and several)


def _newly_acknowledged(packets: PacketColumns, way: int) -> np.ndarray:
    """By packet: how far it moves the highest acknowledgement of this direction's data on; 0 of the first one."""
    acknowledges = (packets.direction != way) & (packets.acknowledgement_offset != NO_ACKNOWLEDGEMENT)
    offsets = packets.acknowledgement_offset[acknowledges]
    moved = np.zeros(len(packets.direction), np.int64)
    moved[acknowledges] = offsets - np.maximum.accumulate(np.concatenate([offsets[:1], offsets[:-1]]))
    return moved


def _ranked(ascending: np.ndarray, percent: int) -> int:
    return int(ascending[(len(ascending) - 1) * percent // 100]) if len(ascending) else -1


def round_trip_around(packets: PacketColumns, way: int, time_ns: int) -> int:
    """The least plain round trip that ended within a second; -1 where there is none."""
    ends = (packets.direction != way) & (packets.round_trip_time_ns >= 0) & (packets.payload_bytes == 0)
    ends &= ~_may_be_inspected(packets, way)
    ends &= ~packets.flagged(TcpFlag.SYN | TcpFlag.FIN | TcpFlag.RST) & (abs(packets.time_ns - time_ns) <= SECOND_NS)
    return int(packets.round_trip_time_ns[ends].min()) if ends.any() else -1
