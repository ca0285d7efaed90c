"""The excess of exchanges in plain Python, one at a time: what `exchange_timing` must find, too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from detector.one_capture.likelihoods.exchange_nats import CONNECTION_CORRELATION
from detector.one_capture.likelihoods.exchange_timing import FEWEST_ROUND_TRIPS
from pepscope.captures.exchanges import ExchangeKind
from pepscope.captures.packets import Direction
from tests.detector.one_capture.made_exchanges import Asked, Trips


@dataclass(frozen=True, slots=True)
class Found:
    """One exchange as it is weighed."""

    row: int
    member: int
    excess_s: float
    weight: float
    opens: bool


@dataclass(frozen=True, slots=True)
class Path:
    """A member's round trips in seconds, None where nothing was measured."""

    near_s: float | None
    data_s: float | None
    plain_s: float | None
    prompt_s: float | None
    handshake_s: float | None
    variation_s: float | None


def timed(asked: Sequence[Asked], trips: Sequence[Trips], member_of: Sequence[int], way: Direction) -> list[Found]:
    """The exchanges that are weighed, in the order of their rows."""
    rows = [
        row
        for row, each in enumerate(asked)
        if _counts(each, way) and _base_s(each.connection, trips, member_of, way) is not None
    ]
    found = []
    for row in rows:
        each = asked[row]
        member = member_of[each.connection]
        mates = sum(asked[other].connection == each.connection for other in rows)
        base_s = _base_s(each.connection, trips, member_of, way)
        assert base_s is not None
        opens = way is Direction.UP and each.first and each.kind not in (ExchangeKind.GREETING, ExchangeKind.COMMAND)
        weight = 1 / (1 + CONNECTION_CORRELATION * (mates - 1))
        found.append(Found(row, member, _excess(each, base_s), weight, opens))
    return found


def _base_s(connection: int, trips: Sequence[Trips], member_of: Sequence[int], way: Direction) -> float | None:
    """Of handshakes and plain acknowledgements: the connection's own, unless answers came 10 ms sooner, or else the
    least of its member's, unless they did so, too. Servers' handshakes count for nothing where the member's data were
    acknowledged sooner than any of them by 10 ms; nothing tells it there where plain acknowledgements, none of them
    prompt, come a receiver's delay later than the member's least, and four times what its round trips vary, if that is
    known."""
    mates = [each for each, member in zip(trips, member_of, strict=True) if member == member_of[connection]]
    plain_s, handshake_s = (_low([_s(time) for time in times], 0.0) for times in zip(*(
        (each.least_ms, each.handshake_ms) for each in mates
    ), strict=True))  # fmt: skip
    waits = way is Direction.UP and None not in (plain_s, handshake_s) and handshake_s > plain_s + 0.01
    varies_s, least_s = _variation(mates), _s(trips[connection].least_ms)
    is_known = None not in (plain_s, varies_s, least_s) and trips[connection].prompt_10_ms is None
    if waits and is_known and least_s > plain_s + max(0.036, 4 * varies_s):
        return None
    data_s = _least(trips[connection], False)
    for base_s in (_apart(trips[connection], waits), _low([_apart(each, waits) for each in mates], 0.0)):
        if base_s is not None and (data_s is None or data_s >= base_s - 0.01):
            return base_s if data_s is None else min(base_s, data_s)
    return None


def _apart(each: Trips, waits: bool) -> float | None:
    handshake_s = None if waits else _s(each.handshake_ms)
    known = [time for time in (_s(each.least_ms), handshake_s) if time is not None]
    return min(known, default=None)


def path(trips: Sequence[Trips]) -> Path:
    """The path to a member whose connections have these round trips."""
    plain = [_s(each.least_ms) for each in trips]
    handshakes = [_s(each.handshake_ms) for each in trips]
    return Path(
        _low([_least(each, True) for each in trips], 0.0), _low([_least(each, False) for each in trips], 0.0),
        _low(plain, 0.0), _low([_s(each.prompt_10_ms) for each in trips], 0.0), _low(handshakes, 0.0),
        _variation(trips),
    )  # fmt: skip


def _variation(trips: Sequence[Trips]) -> float | None:
    """The least of prompt acknowledgements and of handshakes, unless those are 10 ms nearer; or else of all where it is
    below a receiver's delay."""
    handshakes = [_s(each.handshake_ms) for each in trips]
    prompt = [each for each in trips if each.prompt_10_ms is not None]
    of_prompt = _spread(
        [_s(each.prompt_10_ms) for each in prompt], [_s(each.prompt_60_ms) for each in prompt],
        [each.prompt_count for each in prompt],
    )  # fmt: skip
    of_handshakes = _spread(handshakes, handshakes, [int(each is not None) for each in handshakes])
    nearest = [_low(each, 0.0) for each in (handshakes, [_s(each.prompt_10_ms) for each in prompt])]
    if of_prompt is not None and None not in nearest and nearest[0] < nearest[1] - 0.01:
        of_handshakes = None
    found = min((each for each in (of_prompt, of_handshakes) if each is not None), default=None)
    if found is None:
        middle = [_s(each.least_ms if each.middle_ms is None else each.middle_ms) for each in trips]
        counts = [each.count * (each.least_ms is not None) for each in trips]
        found = _spread([_least(each, False) for each in trips], middle, counts)
        found = None if found is None or found >= 0.036 else found
    return found


def _spread(low: Sequence[float | None], middle: Sequence[float | None], counts: Sequence[int]) -> float | None:
    """Each middle one stands for so many round trips as its connection has."""
    pooled = [time for time, count in zip(middle, counts, strict=True) for _ in range(count)]
    least, most = _low(low, 0.1), _low(pooled, 0.6)
    if sum(counts) < FEWEST_ROUND_TRIPS or least is None or most is None:
        return None
    return max(most - least, 0.0)


_NOT_CAUSAL = (
    ExchangeKind.TLS_CONTROL, ExchangeKind.HTTP2_CONTROL, ExchangeKind.SOCKS_GREETING, ExchangeKind.UNASKED
)  # fmt: skip


def _counts(each: Asked, way: Direction) -> bool:
    causal = each.strict if each.kind is ExchangeKind.GREETING else each.kind not in _NOT_CAUSAL
    return each.asked is way and causal and not each.repeated and not each.crossed


def _excess(each: Asked, base_s: float) -> float:
    return max(each.took_ms / 1e3 - base_s, 0.0)


def _least(each: Trips, with_handshake: bool) -> float | None:
    data = _s(each.least_ms if each.least_of_all_ms is None else each.least_of_all_ms)
    known = [time for time in (data, _s(each.handshake_ms) if with_handshake else None) if time is not None]
    return min(known, default=None)


def _low(values: Sequence[float | None], share: float) -> float | None:
    known = sorted(value for value in values if value is not None)
    return known[math.floor((len(known) - 1) * share)] if known else None


def _s(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1e3
