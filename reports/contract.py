"""Reading the JSON of `pepscope detect --json` back into typed results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from pepscope.results import (
    CaptureSummary,
    DetectionResult,
    Evidence,
    GroupResult,
    GroupSide,
    Kind,
    Mechanism,
    Number,
    Outcome,
    PairResult,
    SplitPlace,
    Stretch,
    VantageName,
)
from reports.errors import ReportError

SCHEMA_VERSION = 1

E = TypeVar("E", bound=StrEnum)


def read_document(document: object) -> DetectionResult:
    """Turn a parsed JSON document into a result without series; keys that are not known are passed over.

    Raises ReportError with one sentence that names the first place where the document is not what it should be.
    """
    top = _mapping(document, "the document")
    version = top.get("schema")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        what = "no 'schema' number" if version is None else f"schema {version!r}"
        raise ReportError(
            f"This is not a verdict that can be explained: it has {what} where schema {SCHEMA_VERSION} is expected; "
            "give the output of 'pepscope detect --json'."
        )
    if "pairs" not in top and "connections" in top:
        raise ReportError(
            "This is the output of 'pepscope inspect --json', which holds no verdict; give that of 'pepscope detect "
            "--json'."
        )
    return DetectionResult(
        captures=tuple(
            _capture(_mapping(item, f"captures[{index}]"), f"captures[{index}]")
            for index, item in enumerate(_list(top, "captures", "the document"))
        ),
        pairs=tuple(
            _pair(_mapping(item, f"pairs[{index}]"), f"pairs[{index}]")
            for index, item in enumerate(_list(top, "pairs", "the document"))
        ),
        groups=tuple(
            _group(_mapping(item, f"groups[{index}]"), f"groups[{index}]")
            for index, item in enumerate(_list(top, "groups", "the document") if "groups" in top else ())
        ),
    )


def _capture(item: Mapping[str, Any], place: str) -> CaptureSummary:
    return CaptureSummary(
        path=_text(item, "path", place),
        packets=_count(item, "packets", place),
        connections=_count(item, "connections", place),
        warnings=_texts(item, "warnings", place),
    )


def _pair(item: Mapping[str, Any], place: str) -> PairResult:
    vantages = _list(item, "vantages", place)
    if not 1 <= len(vantages) <= 2:
        raise _wrong(f"{place}.vantages", "one or two vantages")
    payload = _mapping(item.get("payload_bytes", {}), f"{place}.payload_bytes")
    pairing = _mapping(item.get("pairing", {}), f"{place}.pairing")
    ground = pairing.get("ground")
    return PairResult(
        vantages=tuple(
            _vantage(_mapping(vantage, f"{place}.vantages[{index}]"), f"{place}.vantages[{index}]")
            for index, vantage in enumerate(vantages)
        ),
        verdict=_choice(item, "verdict", Kind, place),
        probability=_probability(item, place),
        reason=_text(item, "reason", place),
        evidence=_evidence_list(item, place),
        packets=_count(item, "packets", place) if "packets" in item else 0,
        payload_bytes_up=_count(payload, "up", f"{place}.payload_bytes") if payload else 0,
        payload_bytes_down=_count(payload, "down", f"{place}.payload_bytes") if payload else 0,
        duration_s=_number(item, "duration_s", place) if "duration_s" in item else 0.0,
        pairing_confidence=_share(pairing, "confidence", f"{place}.pairing") if pairing else 1.0,
        pairing_ground=ground if isinstance(ground, str) else "",
        mechanism=None if item.get("mechanism") is None else _choice(item, "mechanism", Mechanism, place),
        stretch=_stretch(_mapping(item["stretch"], f"{place}.stretch"), f"{place}.stretch")
        if item.get("stretch")
        else None,
    )


def _stretch(item: Mapping[str, Any], place: str) -> Stretch:
    def hops(name: str) -> int | None:
        return None if item.get(name) is None else _count(item, name, place)

    def seconds(name: str) -> float | None:
        return None if item.get(name) is None else _number(item, name, place)

    return Stretch(
        one_place=item.get("one_place") is True,
        client_hops_beyond=hops("client_hops_beyond"),
        server_hops_beyond=hops("server_hops_beyond"),
        client_round_trip_beyond_s=seconds("client_round_trip_beyond_s"),
        server_round_trip_beyond_s=seconds("server_round_trip_beyond_s"),
        hops_between=hops("hops_between"),
        round_trip_between_s=seconds("round_trip_between_s"),
    )


def _vantage(item: Mapping[str, Any], place: str) -> VantageName:
    return VantageName(
        _text(item, "capture", place),
        _text(item, "client", place),
        _text(item, "server", place),
        _text(item, "transport", place) if "transport" in item else "tcp",
    )


def _group(item: Mapping[str, Any], place: str) -> GroupResult:
    return GroupResult(
        side=_choice(item, "side", GroupSide, place),
        network=_text(item, "network", place),
        port=_count(item, "port", place),
        hosts=_texts(item, "hosts", place),
        pairs=tuple(
            _count({"entry": entry}, "entry", f"{place}.pairs[{index}]")
            for index, entry in enumerate(_list(item, "pairs", place))
        ),
        exchanges=_count(item, "exchanges", place) if item.get("exchanges") is not None else None,
        verdict=_choice(item, "verdict", Kind, place),
        probability=_probability(item, place),
        mechanism=None if item.get("mechanism") is None else _choice(item, "mechanism", Mechanism, place),
        where=_choice(item, "where", SplitPlace, place) if item.get("where") is not None else None,
        near_round_trip_s=_known_number(item, "near_round_trip_s", place),
        hidden_round_trip_s=_known_number(item, "hidden_round_trip_s", place),
        hidden_round_trip_interval_s=_interval(item, "hidden_round_trip_interval_s", place),
        reason=_text(item, "reason", place),
        evidence=_evidence_list(item, place),
    )


def _probability(item: Mapping[str, Any], place: str) -> dict[Kind, float]:
    shares = _mapping(item.get("probability"), f"{place}.probability")
    return {kind: _share(shares, kind.value, f"{place}.probability") for kind in Kind if kind is not Kind.INCONCLUSIVE}


def _evidence_list(item: Mapping[str, Any], place: str) -> tuple[Evidence, ...]:
    return tuple(
        _evidence(_mapping(piece, f"{place}.evidence[{index}]"), f"{place}.evidence[{index}]")
        for index, piece in enumerate(_list(item, "evidence", place))
    )


def _interval(item: Mapping[str, Any], key: str, place: str) -> tuple[float, float] | None:
    if item.get(key) is None:
        return None
    bounds = _list(item, key, place)
    if len(bounds) != 2:
        raise _wrong(f"'{key}' of {place}", "two numbers")
    named = {"low": bounds[0], "high": bounds[1]}
    return _number(named, "low", f"{place}.{key}"), _number(named, "high", f"{place}.{key}")


def _known_number(item: Mapping[str, Any], key: str, place: str) -> float | None:
    return None if item.get(key) is None else _number(item, key, place)


def _evidence(item: Mapping[str, Any], place: str) -> Evidence:
    numbers: dict[str, Number] = {}
    for name, value in _mapping(item.get("numbers"), f"{place}.numbers").items():
        if value is not None and not isinstance(value, bool | int | float | str):
            raise _wrong(f"{place}.numbers.{name}", "a number, a text, true, false or null")
        numbers[name] = value
    return Evidence(
        method=_text(item, "method", place),
        outcome=_choice(item, "outcome", Outcome, place),
        finding=_text(item, "finding", place) if "finding" in item else "",
        strength=_share(item, "strength", place),
        summary=_text(item, "summary", place),
        numbers=numbers,
        caveats=_texts(item, "caveats", place) if "caveats" in item else (),
    )


def _wrong(place: str, expected: str) -> ReportError:
    return ReportError(f"This is not a verdict that can be explained: {place} should be {expected}.")


def _mapping(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(place, "an object")
    return value


def _list(item: Mapping[str, Any], key: str, place: str) -> Sequence[object]:
    value = item.get(key)
    if not isinstance(value, list | tuple):
        raise _wrong(f"'{key}' of {place}", "a list")
    return value


def _text(item: Mapping[str, Any], key: str, place: str) -> str:
    value = item.get(key)
    if not isinstance(value, str):
        raise _wrong(f"'{key}' of {place}", "a text")
    return value


def _texts(item: Mapping[str, Any], key: str, place: str) -> tuple[str, ...]:
    values = _list(item, key, place)
    if not all(isinstance(value, str) for value in values):
        raise _wrong(f"'{key}' of {place}", "a list of texts")
    return tuple(str(value) for value in values)


def _count(item: Mapping[str, Any], key: str, place: str) -> int:
    value = item.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _wrong(f"'{key}' of {place}", "a whole number, 0 or more")
    return value


def _number(item: Mapping[str, Any], key: str, place: str) -> float:
    value = item.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise _wrong(f"'{key}' of {place}", "a number")
    return float(value)


def _share(item: Mapping[str, Any], key: str, place: str) -> float:
    value = _number(item, key, place)
    if not 0 <= value <= 1:
        raise _wrong(f"'{key}' of {place}", "a number between 0 and 1")
    return value


def _choice(item: Mapping[str, Any], key: str, choices: type[E], place: str) -> E:
    value = item.get(key)
    for choice in choices:
        if choice.value == value:
            return choice
    raise _wrong(f"'{key}' of {place}", f"one of {', '.join(choice.value for choice in choices)}")
