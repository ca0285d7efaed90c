"""What the comparison of the two captures' handshakes means for the connection."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from detector.method import Context, Findings
from detector.methods.handshake.changes import TABLE, Openings, changes, relay_nats
from detector.methods.handshake.opening import Ends, Passed, ends_of, passed
from detector.streams.loaded import confidence_of, option_of, packets_of
from detector.streams.sides import Sides
from detector.vantage.capture_sides import handshake_nearness
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.finding import Finding, Weight, inapplicable, intact, split
from pepscope.results.hypotheses import logistic
from pepscope.results.verdicts import Evidence, Number

NAME = "handshake"
#: Handshakes that pass alike are judged once, and lists of options written once.
_REMEMBERED = 1024
#: IPv6 has no IP ID.
_WITH_IP_IDS = 4
_NUMBER_NAMES = {field: field.lower().replace(" ", "_") for field in TABLE}
#: Natural-log likelihood ratio that decides what made the handshake, as in the identity method: a thousand to one.
DECISIVE_NATS = math.log(1000.0)
#: From ten to one a handshake supports one answer without deciding.
SUPPORTING_NATS = math.log(10.0)
#: The captures' sides are sure where the client's share of the handshake's time differs by so much between them: the
#: shares are 1 at the client's host, 0 at the server's, and equal where both captures were taken at one place.
SURE_OF_SIDES = 0.25


class HandshakeFinding(Finding):
    """SYN and SYN-ACK at both ends. Middleboxes that acknowledge locally pass handshakes on."""

    HANDSHAKE_OF_ANOTHER_STACK = split(
        "handshake-of-another-stack",
        Weight(
            "handshake", -5.0, 0.0, 0.0, -5.0,
            "The handshake carries what neither normalisers nor SYN proxies write, such as options that were never "
            "sent.",
        ),
    )  # fmt: skip
    HANDSHAKE_MADE_ANEW = split(
        "handshake-made-anew",
        Weight(
            "handshake", -2.5, 0.0, 0.0, -2.5, "SYN proxies, and normalisers that rewrite everything, do so, too.",
        ),
    )  # fmt: skip
    HANDSHAKE_SAME_SEGMENTS = intact(
        "handshake-same-segments",
        Weight(
            "handshake", 0.0, -2.5, -2.5, 0.0, "Splits make handshakes of their own, but some begin only after it.",
        ),
    )  # fmt: skip
    HANDSHAKE_REWRITTEN = inapplicable("handshake-rewritten")
    NO_HANDSHAKE = inapplicable("no-handshake")
    NEEDS_SECOND_CAPTURE = inapplicable("needs-second-capture", is_missing=True)


class _Opened(NamedTuple):
    """The handshake of a connection: what passed, and the least windows of SYN and SYN-ACK as they left and arrived."""

    openings: Openings
    windows: tuple[tuple[int, int], ...]


class _Shown(NamedTuple):
    """All that is compared of a handshake: what many connections of one path have alike is judged once.

    `counts` are the values of `pepscope._core.openings` up and down, in the order of `names`.
    """

    ends: tuple[Ends, Ends]  # up, down
    names: tuple[str, ...]
    counts: tuple[tuple[int, ...], tuple[int, ...]]
    has_ip_ids: bool
    is_sure_of_sides: bool
    pairing_confidence: float


def examine(context: Context) -> Findings:
    """Compare SYN and SYN-ACK as they left with what arrived."""
    sides = context.sides
    evidence: list[Evidence | None] = [_needs_second_capture()] * len(context.observations)
    if not len(sides):
        return Findings(evidence)
    counts = _core.openings(packets_of(sides.clients), packets_of(sides.servers))
    names, ends = tuple(counts), [ends_of(sides.sender(way), sides.receiver(way), way) for way in DIRECTIONS]
    versions = [side.numbers("ip_version") == _WITH_IP_IDS for side in (sides.client, sides.server)]
    has_ip_ids, are_sure = versions[0] & versions[1], _sides_are_sure(sides)
    confidence = confidence_of(sides.pairs)
    columns = [
        *(column for each in ends for column in (each.same_number, each.left, each.arrived)),
        *(column[way] for column in counts.values() for way in DIRECTIONS),
        has_ip_ids, are_sure, confidence.view(np.int64),
    ]  # fmt: skip
    alike, first = _core.row_codes([np.ascontiguousarray(column, np.int64) for column in columns])
    made = [
        _compare(
            _Shown(
                (ends[0].at(place), ends[1].at(place)),
                names,
                (_counts_at(counts, Direction.UP, place), _counts_at(counts, Direction.DOWN, place)),
                bool(has_ip_ids[place]),
                bool(are_sure[place]),
                float(confidence[place]),
            )
        )
        for place in first.tolist()
    ]
    for row, which in zip(sides.rows.tolist(), alike.tolist(), strict=True):
        evidence[row] = made[which]
    return Findings(evidence)


def _counts_at(counts: Mapping[str, Int64Array], way: Direction, place: int) -> tuple[int, ...]:
    return tuple([int(column[way, place]) for column in counts.values()])


@cache
def _needs_second_capture() -> Evidence:
    return HandshakeFinding.NEEDS_SECOND_CAPTURE.undecided(
        NAME, "Only one capture holds this connection: no handshake to compare."
    )


@cache
def _no_handshake() -> Evidence:
    return HandshakeFinding.NO_HANDSHAKE.undecided(NAME, "The captures have no SYN and no SYN-ACK in common.")


@lru_cache(_REMEMBERED)
def _compare(shown: _Shown) -> Evidence:
    opened = _opened(shown, swapped=False)
    if not opened.openings:
        return _no_handshake()
    found = changes(opened.openings)
    nats = relay_nats(found)
    if not shown.is_sure_of_sides:
        # An option removed in one order of the captures is added in the other: take the milder reading.
        swapped = _opened(shown, swapped=True)
        found_swapped = changes(swapped.openings)
        nats_swapped = relay_nats(found_swapped)
        if nats_swapped < nats:
            opened, found, nats = swapped, found_swapped, nats_swapped
    return _judge(shown.pairing_confidence, opened, found, nats)


def _opened(shown: _Shown, *, swapped: bool) -> _Opened:
    """SYN and SYN-ACK where both captures hold them."""
    openings: list[tuple[Direction, Passed]] = []
    windows: list[tuple[int, int]] = []
    for direction, ends, counts in zip(DIRECTIONS, shown.ends, shown.counts, strict=True):
        seen = dict(zip(shown.names, counts, strict=True))
        if ends.same_number is not None and seen["copies_left"] and seen["copies_arrived"]:
            openings.append((direction, passed(ends, seen, shown.has_ip_ids, swapped=swapped)))
            between = seen["window_left"], seen["window_arrived"]
            windows.append(between[::-1] if swapped else between)
    return _Opened(tuple(openings), tuple(windows))


def _sides_are_sure(sides: Sides) -> BoolArray:
    """Whether the user or the handshake's times say which capture is nearer to the client."""
    are_sure = np.array(option_of(sides.pairs, lambda options: options.first_at_client is not None), np.bool_)
    known, nearness = zip(*map(handshake_nearness, (sides.client, sides.server)), strict=True)
    by_times = known[0] & known[1] & (nearness[0] - nearness[1] >= SURE_OF_SIDES)
    return np.asarray(are_sure | by_times)


def _judge(pairing_confidence: float, opened: _Opened, found: Mapping[str, str], nats: float) -> Evidence:
    numbers = _numbers(opened, found, nats)
    changed = _in_words(found)
    strength = logistic(abs(nats))
    if nats >= DECISIVE_NATS:
        return HandshakeFinding.HANDSHAKE_OF_ANOTHER_STACK.evidence(
            NAME, strength * pairing_confidence,
            f"Another TCP stack made the handshake that arrives: {changed}.", numbers,
            ("A firewall that answers SYNs for a server (SYN proxy) also makes handshakes, but seldom like this one.",),
        )  # fmt: skip
    if nats >= SUPPORTING_NATS:
        return HandshakeFinding.HANDSHAKE_MADE_ANEW.evidence(
            NAME, strength * pairing_confidence,
            f"The handshake arrives as another TCP stack would make it: {changed}.", numbers,
            ("A firewall that answers SYNs for a server (SYN proxy), or rewrites every field, looks the same.",),
        )  # fmt: skip
    if nats <= -SUPPORTING_NATS:
        but = f" (on the way: {changed})" if changed else ""
        return HandshakeFinding.HANDSHAKE_SAME_SEGMENTS.evidence(
            NAME, strength,
            f"SYN and SYN-ACK arrive as they left{but}.", numbers,
            ("A middlebox may forward the handshake and later acknowledge data before the receiver has them.",),
        )  # fmt: skip
    return HandshakeFinding.HANDSHAKE_REWRITTEN.undecided(
        NAME,
        "Firewalls and NATs change a handshake like this, and so does another TCP stack of the same kind: "
        f"{changed or 'no change in what both captures hold'}.",
        numbers,
    )


def _in_words(found: Mapping[str, str]) -> str:
    return ", ".join([f"{field} {what}" for field, what in found.items() if what not in ("equal", "not raised")])


def _numbers(opened: _Opened, found: Mapping[str, str], nats: float) -> dict[str, Number]:
    numbers: dict[str, Number] = {"relay_nats": round(nats, 2), "segments": len(opened.openings)}
    for field, what in found.items():
        numbers[_NUMBER_NAMES[field]] = what
    for (direction, passed_on), windows in zip(opened.openings, opened.windows, strict=True):
        name = "syn" if direction is Direction.UP else "syn_ack"
        for when, options, window in zip(("left", "arrived"), passed_on.options, windows, strict=True):
            numbers[f"{name}_options_{when}"] = "cut off" if options is None else _listed(options.kinds)
            numbers[f"{name}_window_{when}"] = window
    return numbers


@lru_cache(_REMEMBERED)
def _listed(kinds: tuple[int, ...]) -> str:
    """Option kinds in their order, for the eye."""
    return ",".join([str(kind) for kind in kinds])
