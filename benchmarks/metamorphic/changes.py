"""Every change by its name: how its parameters are drawn, at which end it acts, and why it cannot alter the truth.

All allow the same: a verdict stays or becomes inconclusive, never the other class, and no kind that the truth excludes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.metamorphic import clocks, losses, offloads, rewriting
from benchmarks.metamorphic.pairs import SIDES, LabelledPair, Source
from benchmarks.metamorphic.records import SYN, Array, Records, joined
from benchmarks.metamorphic.writing import LARGEST_TUNNELLED_BYTES, LINKS

Parameters = dict[str, Any]
#: Records, the side they were captured at, parameters, and where randomness inside the change comes from.
Edit = Callable[[Records, str, Parameters, np.random.Generator], Records]

#: Beyond these even a wide clock search is off: 500 ppm between the two, of which recordings have up to 100 already.
MOST_DRIFT_PPM = 380.0
#: Two cards of a tap are at most so far apart: with more than a round trip their captures contradict themselves, and
#: with less nothing shows it.
MOST_APART_S = 10.0
_KEY_BITS = 24


@dataclass(frozen=True, slots=True)
class Step:
    """A change with its parameters, at `server`, `mobile`, or (`pair`) of both together."""

    change: str
    place: str
    parameters: Parameters


@dataclass(frozen=True, slots=True)
class Change:
    """Something that networks, clocks and capture tools do.

    `places` are the sides where it may act: `server`, `mobile`, `both` (each with parameters of its own) or `pair`
    (both together). `keeps` says why the truth stays what it was.
    """

    name: str
    keeps: str
    places: tuple[str, ...]
    draw: Callable[[random.Random], Parameters]
    apply: Callable[[LabelledPair, str, Parameters], LabelledPair]


_ANY_SIDE = ("server", "mobile", "both")
_ONE_SIDE = ("server", "mobile")


def at_one_side(edit: Edit) -> Callable[[LabelledPair, str, Parameters], LabelledPair]:
    """An edit of one capture as a change of a pair."""

    def apply(pair: LabelledPair, side: str, parameters: Parameters) -> LabelledPair:
        chance = np.random.default_rng([parameters.get("seed", 0), SIDES.index(side)])
        return with_records(pair, side, edit(pair.records[side], side, parameters, chance))

    return apply


def with_records(pair: LabelledPair, side: str, records: Records) -> LabelledPair:
    return replace(pair, records={**pair.records, side: records})


def received(records: Records, side: str) -> Array:
    """Packets that came to the side where they were captured: the openers of connections are at the mobile."""
    return records.is_up if side == "server" else ~records.is_up


def _seeded(**more: Callable[[random.Random], object]) -> Callable[[random.Random], Parameters]:
    return lambda chance: {name: draw(chance) for name, draw in more.items()} | {"seed": chance.getrandbits(31)}


def _log_uniform(low: float, high: float) -> Callable[[random.Random], float]:
    return lambda chance: round(low * (high / low) ** chance.random(), 6)


def _either_sign(draw: Callable[[random.Random], float]) -> Callable[[random.Random], float]:
    return lambda chance: draw(chance) * chance.choice((1, -1))


def _steps(chance: random.Random) -> list[tuple[float, float]]:
    size = _either_sign(_log_uniform(0.001, 2.0))
    return [(round(chance.random(), 3), size(chance)) for _ in range(chance.choice((1, 1, 2, 3)))]


def _forwarded(chance: random.Random) -> Parameters:
    """How long a device keeps a packet."""
    return {"after_ns": round(_log_uniform(1_000, 300_000)(chance))}


def _strip_on_the_way(pair: LabelledPair, _place: str, _parameters: Parameters) -> LabelledPair:
    for side in SIDES:
        records = pair.records[side]
        opening = (records.flags & SYN > 0) & records.is_up
        where = np.ones(len(records), bool) if side == "server" else ~opening
        pair = with_records(pair, side, rewriting.without_timestamps(records, where))
    return pair


def _anonymise(pair: LabelledPair, _place: str, parameters: Parameters) -> LabelledPair:
    for side in SIDES:
        pair = with_records(pair, side, rewriting.anonymised(pair.records[side], parameters["key"]))
    return pair


def _link(pair: LabelledPair, side: str, parameters: Parameters) -> LabelledPair:
    too_long = pair.records[side].wire.max(initial=0) > LARGEST_TUNNELLED_BYTES
    return pair if too_long else replace(pair, links={**pair.links, side: parameters["link"]})


def _with_unrelated(pair: LabelledPair, place: str, parameters: Parameters) -> LabelledPair:
    """Captures of another run at the same time, their addresses under a key, at one side or both.

    Its sequence numbers, timestamps and IP IDs are moved alike at both, and of a simulated run the payload is made
    another: simulated hosts may begin with equal numbers and send one content.
    """
    source = Source(parameters["directory"], parameters["run"])
    other = source.read()
    sides = SIDES if place == "both" else (place,)
    here, there = pair.records[sides[0]], other.records[sides[0]]
    if len(here) == 0 or len(there) == 0:
        return pair
    span = int(here.time_ns.max() - here.time_ns.min())
    move = int(here.time_ns.min() - there.time_ns.min()) + round(parameters["later"] * span)
    constants = np.random.default_rng(parameters["key"]).integers(0, 2**32, (3, 2)).tolist()
    numbers, stamps, identifications = map(tuple, constants)
    shift = {}
    for side in sides:
        moved = rewriting.anonymised(other.records[side], parameters["key"])
        moved = rewriting.as_strangers(moved, numbers, stamps, identifications)
        moved = rewriting.with_other_payload(moved, parameters["key"]) if source.is_simulated else moved
        # Connections of which no packet is left keep their numbers.
        known_here = (flow.connection.get(side, -1) + 1 for flow in pair.flows)
        shift[side] = max(pair.records[side].connections, *known_here)
        merged = joined(pair.records[side], replace(moved, time_ns=moved.time_ns + move), shift[side])
        pair = with_records(pair, side, merged)
    flows = [
        replace(
            flow,
            name=f"{flow.name}+",
            connection={side: n + shift[side] for side, n in known.items()},
            takeover=flow.takeover and flow.takeover.renumbered(numbers[flow.takeover.up]),
        )
        for flow in other.flows
        if (known := {side: number for side, number in flow.connection.items() if side in shift})
    ]
    return replace(pair, flows=pair.flows + tuple(flows), all_regular=pair.all_regular and other.all_regular)


CHANGES: Sequence[Change] = (
    Change(
        "cut packets", "a snap length; what is cut was not captured", _ANY_SIDE,
        lambda chance: {"bytes": chance.randrange(20, 81) if chance.random() < 0.8 else chance.randrange(81, 129)},
        at_one_side(lambda r, _, p, __: losses.cut(r, p["bytes"])),
    ),
    Change(
        "lose records", "a capture tool that cannot follow loses records", _ANY_SIDE,
        _seeded(share=_log_uniform(0.002, 0.5)), at_one_side(lambda r, _, p, c: losses.lost(r, p["share"], c)),
    ),
    Change(
        "lose bursts", "a capture tool that cannot follow loses records in runs", _ANY_SIDE,
        _seeded(share=_log_uniform(0.01, 0.6), longest=lambda c: c.choice((4, 20, 100, 500))),
        at_one_side(lambda r, _, p, c: losses.lost_bursts(r, p["share"], p["longest"], c)),
    ),
    Change(
        "begin late", "the capture was started later", _ANY_SIDE,
        lambda chance: {"at": round(chance.random() ** 2 * 0.95, 4)},
        at_one_side(lambda r, _, p, __: losses.between(r, p["at"], 1.0)),
    ),
    Change(
        "end early", "the capture was ended earlier", _ANY_SIDE,
        lambda chance: {"at": round(1 - chance.random() ** 2 * 0.95, 4)},
        at_one_side(lambda r, _, p, __: losses.between(r, 0.0, p["at"])),
    ),
    Change(
        "first records", "the capture was ended after so many packets", _ANY_SIDE,
        lambda chance: {"count": round(_log_uniform(3, 3000)(chance))},
        at_one_side(lambda r, _, p, __: losses.first_records(r, p["count"])),
    ),
    Change(
        "one direction", "a capture filter, or a tap in one fibre", _ANY_SIDE,
        lambda chance: {"up": chance.random() < 0.5}, at_one_side(lambda r, _, p, __: losses.one_direction(r, p["up"])),
    ),
    Change(
        "one in k ACKs", "a filter, or (at one side) a middlebox that thins acknowledgements", _ANY_SIDE,
        lambda chance: {"k": chance.choice((2, 3, 4, 8, 20, 1000))},
        at_one_side(lambda r, _, p, __: losses.thinned_acks(r, p["k"])),
    ),
    Change(
        "duplicate records", "a mirror port that gives a packet twice", _ANY_SIDE,
        _seeded(share=lambda c: c.choice((0.01, 0.2, 1.0)), after_ns=lambda c: c.choice((0, 1_000, 30_000))),
        at_one_side(lambda r, _, p, c: losses.duplicated(r, p["share"], p["after_ns"], c)),
    ),
    Change(
        "swap in the file", "buffers of several processors, written in turn; every record keeps its time", _ANY_SIDE,
        _seeded(share=_log_uniform(0.01, 0.5)),
        at_one_side(lambda r, _, p, c: losses.swapped_in_file(r, p["share"], c)),
    ),
    Change(
        "swap in time", "queues of a network card, stamped within 10 us in another order", _ANY_SIDE,
        _seeded(share=_log_uniform(0.01, 0.5)),
        at_one_side(lambda r, _, p, c: losses.swapped_in_time(r, p["share"], c)),
    ),
    Change(
        "shift the clock", "clocks of two machines are off by anything", _ONE_SIDE,
        lambda chance: {"by_s": _either_sign(_log_uniform(0.001, 100_000.0))(chance)},
        at_one_side(lambda r, _, p, __: clocks.shifted(r, p["by_s"])),
    ),
    Change(
        "let the clock drift", "within the 500 ppm that the detector allows for", _ONE_SIDE,
        lambda chance: {"ppm": round(chance.uniform(-MOST_DRIFT_PPM, MOST_DRIFT_PPM), 3)},
        at_one_side(lambda r, _, p, __: clocks.drifting(r, p["ppm"])),
    ),
    Change(
        "step the clock", "a clock that is set while the capture runs", _ANY_SIDE,
        lambda chance: {"steps": _steps(chance)}, at_one_side(lambda r, _, p, __: clocks.stepping(r, p["steps"])),
    ),
    Change(
        "coarse clock", "times in microseconds, milliseconds or ticks of 10 ms", _ANY_SIDE,
        lambda chance: {"unit_ns": chance.choice((1_000, 1_000_000, 10_000_000))},
        at_one_side(lambda r, _, p, __: clocks.coarse(r, p["unit_ns"])),
    ),
    Change(
        "translate addresses", "a NAT at the openers, or a forwarded port at the other end", _ONE_SIDE,
        _seeded(), at_one_side(lambda r, side, _, c: rewriting.translated(r, side == "server", c)),
    ),
    Change(
        "anonymise addresses", "both captures through one anonymiser", ("pair",),
        lambda chance: {"key": chance.getrandbits(_KEY_BITS)}, _anonymise,
    ),
    Change(
        "shift sequence numbers", "a firewall that hides initial sequence numbers, between the two ends", _ONE_SIDE,
        _seeded(), at_one_side(lambda r, _, __, c: rewriting.with_shifted_sequence_numbers(r, c)),
    ),
    Change(
        "zero IP IDs", "a middlebox on the way clears what RFC 6864 leaves free", _ANY_SIDE,
        _seeded(), at_one_side(lambda r, side, _, c: rewriting.with_identification(r, received(r, side), False, c)),
    ),
    Change(
        "random IP IDs", "a middlebox on the way draws identifications anew", _ANY_SIDE,
        _seeded(), at_one_side(lambda r, side, _, c: rewriting.with_identification(r, received(r, side), True, c)),
    ),
    Change(
        "strip timestamps", "a middlebox strips the option from the SYN; no segment but the opener's SYN has it",
        ("pair",), lambda _: {}, _strip_on_the_way,
    ),
    Change(
        "blank timestamps", "one capture, or both, through an anonymiser that overwrites the option", _ANY_SIDE,
        lambda _: {}, at_one_side(lambda r, *_: rewriting.without_timestamps(r, np.ones(len(r), bool))),
    ),
    Change(
        "shift timestamps", "a firewall that hides uptimes, between the two ends", _ONE_SIDE,
        _seeded(), at_one_side(lambda r, _, __, c: rewriting.with_shifted_timestamps(r, c)),
    ),
    Change(
        "zero the payload", "a tool that sanitises captures overwrites what was said and keeps its length", _ANY_SIDE,
        lambda _: {}, at_one_side(lambda r, *_: rewriting.with_zeroed_payload(r)),
    ),
    Change(
        "narrow windows", "a regulator clamps what an end receives, above what it used", _ANY_SIDE,
        lambda _: {}, at_one_side(lambda r, side, *_: rewriting.with_narrower_windows(r, received(r, side))),
    ),
    Change(
        "merge segments", "receive and send offloads", _ANY_SIDE,
        lambda chance: {"most": chance.choice((2, 4, 17, 44))},
        at_one_side(lambda r, side, p, _: offloads.merged(r, received(r, side), min(p["most"], offloads.MOST_MERGED))),
    ),
    Change(
        "split segments", "a tap behind the card that segments", _ANY_SIDE,
        lambda chance: {"apart_ns": chance.choice((0, 1_000))},
        at_one_side(lambda r, _, p, __: offloads.split(r, p["apart_ns"])),
    ),
    Change(
        "other link", "another device or a tunnel around everything", _ANY_SIDE,
        lambda chance: {"link": chance.choice(list(LINKS))}, _link,
    ),
    Change(
        "merge an unrelated capture", "other traffic on the same link, whose class is known as well", _ANY_SIDE,
        lambda chance: {
            "key": chance.getrandbits(_KEY_BITS), "later": round(chance.uniform(-0.5, 0.8), 3),
            "chosen": chance.random(),
        },
        _with_unrelated,
    ),
    Change(
        "swap arguments", "the order of the captures is the user's", ("pair",), lambda _: {},
        lambda pair, *_: replace(pair, first="mobile" if pair.first == "server" else "server"),
    ),
    Change(
        "packets with data", "the filter of tcpdump's manual", _ANY_SIDE, lambda _: {},
        at_one_side(lambda r, *_: losses.with_data(r)),
    ),
    Change(
        "one direction first", "the file of a tap's one card appended to the other's", _ANY_SIDE,
        lambda chance: {"up": chance.random() < 0.5},
        at_one_side(lambda r, _, p, __: losses.one_direction_first(r, p["up"])),
    ),
    Change(
        "later part first", "a ring of capture files, appended in the wrong order; every record keeps its time",
        _ANY_SIDE, lambda chance: {"at": round(chance.uniform(0.05, 0.95), 3)},
        at_one_side(lambda r, _, p, __: losses.later_part_first(r, p["at"])),
    ),
    Change(
        "two interfaces", "every packet at two interfaces of a router", _ANY_SIDE, _forwarded,
        at_one_side(lambda r, _, p, __: rewriting.on_both_interfaces(r, p["after_ns"])),
    ),
    Change(
        "both sides of a NAT", "every packet before and behind a NAT in one capture", _ANY_SIDE,
        _seeded(after_ns=lambda c: round(_log_uniform(1_000, 300_000)(c))),
        at_one_side(lambda r, side, p, c: rewriting.on_both_sides_of_nat(r, side == "mobile", p["after_ns"], c)),
    ),
    Change(
        "anonymise one capture", "one capture through an anonymiser of addresses and ports", _ONE_SIDE,
        lambda chance: {"key": chance.getrandbits(_KEY_BITS)},
        at_one_side(lambda r, _, p, __: rewriting.with_other_ends(r, p["key"])),
    ),
    Change(
        "set the clock by minutes", "a clock that was far off is set while the capture runs", _ANY_SIDE,
        lambda chance: {"steps": [(round(chance.random(), 3), _either_sign(_log_uniform(2.0, 1000.0))(chance))]},
        at_one_side(lambda r, _, p, __: clocks.stepping(r, p["steps"])),
    ),
    Change(
        "keep times from falling", "a clock that is set back, and a tool that puts times in order", _ANY_SIDE,
        lambda chance: {"steps": _steps(chance), "least_step_ns": chance.choice((0, 0, 1_000))},
        at_one_side(
            lambda r, _, p, __: clocks.kept_from_falling(clocks.stepping(r, p["steps"]), p["least_step_ns"])
        ),
    ),
    Change(
        "a part missing", "one file of a ring of capture files is missing", _ANY_SIDE,
        lambda chance: {"parts": (parts := chance.choice((3, 5, 10, 40))), "missing": chance.randrange(parts)},
        at_one_side(lambda r, _, p, __: losses.without_part(r, p["parts"], p["missing"])),
    ),
    Change(
        "remove equal records", "a tool that removes what a mirror port gave twice (editcap -D)", _ANY_SIDE,
        lambda chance: {"among": chance.choice((1, 5, 100))},
        at_one_side(lambda r, _, p, __: losses.without_equal(r, p["among"])),
    ),
    Change(
        "times in batches", "a card that collects packets, which are stamped at its interrupts", _ANY_SIDE,
        lambda chance: {"every_ns": chance.choice((50_000, 1_000_000, 30_000_000))},
        at_one_side(lambda r, _, p, __: clocks.in_batches(r, p["every_ns"])),
    ),
    Change(
        "translate to IPv6", "464XLAT or NAT64: an end, or its capture, is beyond the translator", _ONE_SIDE,
        lambda _: {}, at_one_side(lambda r, *_: rewriting.as_version_6(r)),
    ),
    Change(
        "clear DSCP and ECN", "a router on the way clears marks of packets", _ANY_SIDE,
        lambda _: {}, at_one_side(lambda r, side, *_: rewriting.unmarked(r, received(r, side))),
    ),
    Change(
        "two clocks", "a tap with a card, and a clock, for each direction", _ONE_SIDE,
        lambda chance: {"by_s": _either_sign(_log_uniform(1e-6, MOST_APART_S))(chance)},
        at_one_side(lambda r, _, p, __: clocks.two_clocks(r, p["by_s"])),
    ),
)  # fmt: skip

BY_NAME: Mapping[str, Change] = {change.name: change for change in CHANGES}

#: Changes that act on both sides at once although they may act on one.
_TOGETHER = {"merge an unrelated capture"}


def drawn(change: Change, place: str, chance: random.Random, others: Sequence[Source]) -> list[Step]:
    """A change with parameters: one step a side, or one for both together. `others` are unrelated sources."""
    together = place == "pair" or change.name in _TOGETHER
    steps = [Step(change.name, side, change.draw(chance)) for side in (SIDES if place == "both" else (place,))]
    steps = [Step(change.name, place, steps[0].parameters)] if together else steps
    for step in steps:
        if "chosen" in step.parameters:
            source = others[int(step.parameters.pop("chosen") * len(others))]
            step.parameters.update(directory=source.directory, run=source.run)
    return steps


def applied(pair: LabelledPair, steps: Sequence[Step]) -> LabelledPair:
    """The pair after all steps, in their order."""
    for step in steps:
        pair = BY_NAME[step.change].apply(pair, step.place, step.parameters)
    return pair
