"""Exchanges, round trips and references made by hand: what is not given was not seen."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pepscope.captures.exchanges import ExchangeKind, Exchanges, RoundTripColumns
from pepscope.captures.packets import Direction
from pepscope.captures.references import ReferenceKind, References

MILLISECOND_NS = 1_000_000
_MARKS = ("strict", "first", "repeated", "crossed", "is_first")


@dataclass(frozen=True, slots=True)
class Asked:
    """One exchange: when its question ended, how long until its acknowledgement and its answer, in milliseconds."""

    connection: int
    took_ms: float
    acknowledged_ms: float
    kind: ExchangeKind = ExchangeKind.HTTP_REQUEST
    asked: Direction = Direction.UP
    question_ms: float = 0.0
    first: bool = False
    repeated: bool = False
    crossed: bool = False
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Trips:
    """Round trips of a connection's data in one direction, in milliseconds; None where none was seen."""

    least_ms: float | None = None
    least_of_all_ms: float | None = None
    middle_ms: float | None = None
    handshake_ms: float | None = None
    count: int = 8
    prompt_10_ms: float | None = None
    prompt_60_ms: float | None = None
    prompt_count: int = 8


def addresses(texts: Sequence[str]) -> npt.NDArray[np.uint8]:
    """Rows of 16 bytes, as captures keep addresses."""
    packed = []
    for text in texts:
        parsed = ipaddress.ip_address(text)
        packed.append(parsed.packed if parsed.version == 6 else bytes(10) + b"\xff\xff" + parsed.packed)
    return np.frombuffer(b"".join(packed), np.uint8).reshape(-1, 16)


def exchanges(
    asked: Sequence[Asked], up: Sequence[Trips] = (), down: Sequence[Trips] = (), *, connections: int | None = None
) -> Exchanges:
    """These exchanges, in this order, of connections with these round trips up and down."""
    count = max(len(up), len(down)) if connections is None else connections
    trips = []
    for number in range(count):
        trips += [each[number] if number < len(each) else Trips() for each in (up, down)]
    made: dict[str, Any] = {
        "connection": [each.connection for each in asked],
        "asked": [each.asked.value for each in asked],
        "kind": [each.kind.value for each in asked],
        "first": [each.first for each in asked],
        "strict": [each.strict for each in asked],
        "repeated": [each.repeated for each in asked],
        "crossed": [each.crossed for each in asked],
        "question_ns": [_ns(each.question_ms) for each in asked],
        "acknowledged_ns": [_ns(each.question_ms + each.acknowledged_ms) for each in asked],
        "answered_ns": [_ns(each.question_ms + each.took_ms) for each in asked],
    }
    return Exchanges(**_arrays(Exchanges, made, len(asked)), round_trips=_round_trips(trips))


def _round_trips(trips: Sequence[Trips]) -> RoundTripColumns:
    made = {
        "connection": [number // 2 for number in range(len(trips))],
        "asked": [number % 2 for number in range(len(trips))],
        "count": [0 if each.least_ms is None else each.count for each in trips],
        "plain_count": [0 if each.least_ms is None else each.count for each in trips],
        "least_ns": [_ns(each.least_ms) for each in trips],
        "least_of_all_ns": [
            _ns(each.least_ms if each.least_of_all_ms is None else each.least_of_all_ms) for each in trips
        ],
        "quantile_60_ns": [_ns(each.least_ms if each.middle_ms is None else each.middle_ms) for each in trips],
        "prompt_count": [0 if each.prompt_10_ms is None else each.prompt_count for each in trips],
        "prompt_10_ns": [_ns(each.prompt_10_ms) for each in trips],
        "prompt_60_ns": [-1 if each.prompt_10_ms is None else _ns(each.prompt_60_ms) for each in trips],
        "handshake_ns": [_ns(each.handshake_ms) for each in trips],
    }
    return RoundTripColumns(**_arrays(RoundTripColumns, made, len(trips)))


def references(
    hosts: Sequence[str], round_trips_ms: Sequence[float], kind: ReferenceKind = ReferenceKind.ICMP_ECHO
) -> References:
    """A reference of one kind by each host."""
    made = {
        "kind": [kind.value] * len(hosts),
        "round_trip_ns": [_ns(each) for each in round_trips_ms],
        "repeated_ns": [0] * len(hosts),
    }
    asking = addresses(["10.0.0.1"] * len(hosts))
    arrays = _arrays(References, made, len(hosts))
    return References(**{**arrays, "host_address": addresses(hosts), "asking_address": asking})


def _ns(milliseconds: float | None) -> int:
    return -1 if milliseconds is None else round(milliseconds * MILLISECOND_NS)


def _arrays(kind: type[Any], made: dict[str, Any], count: int) -> dict[str, npt.NDArray[Any]]:
    arrays = {}
    for name in kind.__struct_fields__:
        if name == "round_trips":
            continue
        if name in _MARKS:
            arrays[name] = np.asarray(made.get(name, [False] * count), np.bool_)
        elif name in ("asked", "kind"):
            arrays[name] = np.asarray(made.get(name, [0] * count), np.uint8)
        elif name == "connection":
            arrays[name] = np.asarray(made.get(name, [0] * count), np.uint32)
        else:
            arrays[name] = np.asarray(made.get(name, [-1] * count), np.int64)
    return arrays
