"""What a page draws of a group that one capture holds: exchanges beside their transport, handshakes and references."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from pepscope.results.verdicts import FloatArray, GroupResult, GroupSeries, GroupSide, IntArray
from reports.figures.flow_figures import Figure, Trace
from reports.figures.packing import pack
from reports.quantities import format_count, format_percent, format_seconds

#: Far hosts that a figure has rows for: those with the most points.
MAX_HOSTS = 20

#: Shown where a time is shorter than any capture's clock can tell, since logarithms have no zero (s).
_LEAST_S = 10e-6

#: Exchanges that TLS libraries answer by themselves.
_HANDSHAKES = ("tls-hello", "tls-finished", "tls-second-finished")

#: Points of a line that is curved between logarithmic axes.
_LINE_POINTS = 40

_REFERENCE_NAMES = {
    "icmp-echo": "ICMP echo",
    "ntp": "NTP",
    "stun": "STUN",
    "quic-initial": "QUIC handshake",
    "quic-return": "QUIC return",
    "udp-echo": "UDP echo",
}


def group_figures(group: GroupResult) -> list[Figure]:
    """The figures of a group that its series can fill; none where it has no series."""
    series = group.series
    if series is None:
        return []
    candidates = (
        _distribution(series),
        _exchanges(group, series),
        _handshakes(group, series),
        _references(group, series),
    )
    return [figure for figure in candidates if figure is not None]


def _distribution(series: GroupSeries) -> Figure | None:
    if not len(series.exchange_s):
        return None
    excess_s = series.exchange_s - series.exchange_transport_s
    fast, middle = (float(np.quantile(excess_s, share)) for share in (0.2, 0.5))
    return Figure(
        "exchange-distribution",
        "How long do answers take, and how long the transport?",
        "Share of exchanges that took no longer than this, and of the transport's round trips beside them. End to end "
        "the two curves begin together, because some answers always come at once; behind a split every answer crosses "
        f"the hidden leg, too, and the curves stay apart. Here 20 % of the answers came within {_later(fast)} of the "
        f"transport's round trip and half of them within {_later(middle)}.",
        "time (ms)",
        "share of exchanges",
        True,
        (
            _steps("data", "transport's round trip", series.exchange_transport_s),
            _steps("ack", "exchange", series.exchange_s, series.exchange_count),
        ),
        logarithmic="x",
        evenly=True,
    )


def _exchanges(group: GroupResult, series: GroupSeries) -> Figure | None:
    if not len(series.exchange_s):
        return None
    by_library = np.isin(np.asarray(series.exchange_kind, dtype=object), _HANDSHAKES)
    transport_s, exchange_s = _shown(series.exchange_transport_s), _shown(series.exchange_s)
    traces = [
        _points(role, label, transport_s[chosen] * 1e3, exchange_s[chosen] * 1e3)
        for role, label, chosen in (
            ("data", "TLS handshakes", by_library),
            ("ack", "answers of applications, other turns", ~by_library),
        )
        if chosen.any()
    ]
    ends = np.geomspace(transport_s.min(), max(transport_s.max(), transport_s.min() * 1.2), _LINE_POINTS)
    traces.append(_points("line", "as fast as the transport", ends * 1e3, ends * 1e3, "line"))
    caption = (
        "Each point is an exchange: upwards the time from question to answer, to the right what the transport took of "
        "it. Points on the dashed line were answered at transport speed, which a hidden leg rules out."
    )
    if group.hidden_round_trip_s is not None and (group.side is GroupSide.SERVER or len(group.by_host) == 1):
        leg_s = group.hidden_round_trip_s
        traces.append(_points("sender-ack", "with the hidden leg", ends * 1e3, (ends + leg_s) * 1e3, "line"))
        caption += f" The dotted line is the hidden leg of {format_seconds(leg_s)} above it."
    elif group.hidden_round_trip_s is not None:
        caption += " Each host has a hidden leg of its own, by which its points lie above the line."
    near = int((exchange_s - transport_s < 0.1 * transport_s).sum())
    caption += (
        f" Here {format_count(near)} of {format_count(len(exchange_s))} exchanges "
        f"({format_percent(near / len(exchange_s))}) took at most 10 % longer than the transport."
    )
    return Figure(
        "exchange-scatter",
        "Exchanges against the transport's round trip",
        caption,
        "transport's round trip (ms)",
        "exchange (ms)",
        False,
        tuple(traces),
        logarithmic="xy",
        evenly=True,
    )


def _handshakes(group: GroupResult, series: GroupSeries) -> Figure | None:
    if not len(series.handshake_s):
        return None
    rows = _rows(series.handshake_host)
    shown = np.isin(series.handshake_host, rows)
    least = [float(series.handshake_s[series.handshake_host == host].min()) for host in rows]
    shortest, longest = format_seconds(min(least)), format_seconds(max(least))
    spread = shortest if shortest == longest else f"{shortest} to {longest}"
    if group.side is GroupSide.SERVER:
        caption = (
            "From SYN-ACK to ACK, once for each connection: the round trip to whatever ends the clients' connections. "
            f"The least of each client: {spread}. A network between has the access link's variation, a box beside "
            "the server has none."
        )
    elif len(rows) == 1:
        caption = f"From SYN to SYN-ACK, once for each connection: the least is {spread}."
    else:
        caption = (
            "From SYN to SYN-ACK, once for each connection. Hosts at different distances answer after different "
            "times; where one box answers for all of them, the times are one. Here the least of each host: "
            f"{spread}. SYN proxies answer handshakes alone and split nothing."
        )
    return Figure(
        "handshakes",
        "Handshake times by host",
        caption,
        "handshake (ms)",
        "",
        False,
        (
            _points(
                "data", "handshake", series.handshake_s[shown] * 1e3, _row_of(series.handshake_host[shown], rows),
                available=series.handshake_count,
            ),
        ),
        rows=_names(group, rows),
        evenly=True,
    )  # fmt: skip


def _references(group: GroupResult, series: GroupSeries) -> Figure | None:
    if not len(series.reference_s):
        return None
    rows = _rows(series.reference_host)
    known = np.isin(series.reference_host, rows)
    kinds = np.asarray(series.reference_kind, dtype=object)
    traces = []
    for role, names in (("receiver-data", _prompt_kinds(series)), ("ack", _slow_kinds(series))):
        chosen = known & np.isin(kinds, names)
        if chosen.any():
            label = ", ".join(_REFERENCE_NAMES.get(name, name) for name in names)
            traces.append(
                _points(
                    role, label, series.reference_s[chosen] * 1e3, _row_of(series.reference_host[chosen], rows),
                    available=int(np.isin(kinds, names).sum()),
                )
            )  # fmt: skip
    near = [(place, group.by_host[host].near_round_trip_s) for place, host in enumerate(rows)]
    transport = [(float(place), time) for place, time in near if time is not None]
    beyond = [
        float(np.quantile(series.reference_s[series.reference_host == host], 0.2)) - time
        for host, (_, time) in zip(rows, near, strict=True)
        if time is not None
    ]
    if transport:
        traces.append(
            _points(
                "violation", "least round trip of the transport",
                np.asarray([time * 1e3 for _, time in transport]), np.asarray([place for place, _ in transport]),
            )
        )  # fmt: skip
    return Figure(
        "references",
        "What no TCP split shortens: the reference",
        "Echoes and other exchanges without TCP go to the host itself, the transport (crosses) as far as a split "
        "point. End to end the crosses stand where the echoes begin; behind a split the distance between them is the "
        f"hidden leg. {_beyond(beyond)}",
        "round trip (ms)",
        "",
        False,
        tuple(traces),
        rows=_names(group, rows),
        evenly=True,
    )


def _beyond(beyond_s: Sequence[float]) -> str:
    if not beyond_s:
        return "Here no round trip of the transport was measured beside them."
    least, most = _later(min(beyond_s)), _later(max(beyond_s))
    amount = least if least == most else f"{least} to {most}"
    return f"Here the fast echoes (the lowest fifth) take {amount} longer than the transport."


def _prompt_kinds(series: GroupSeries) -> list[str]:
    return [name for name in dict.fromkeys(series.reference_kind) if not name.startswith("quic")]


def _slow_kinds(series: GroupSeries) -> list[str]:
    return [name for name in dict.fromkeys(series.reference_kind) if name.startswith("quic")]


def _later(seconds: float) -> str:
    return format_seconds(max(seconds, 0.0))


def _shown(seconds: FloatArray) -> FloatArray:
    """Times that a logarithmic axis can show."""
    return np.maximum(seconds, _LEAST_S)


def _rows(hosts: IntArray) -> list[int]:
    """The hosts that have rows, in the order of their addresses: at most `MAX_HOSTS`, those with the most points."""
    places, counts = np.unique(hosts, return_counts=True)
    most = places[np.argsort(-counts, kind="stable")][:MAX_HOSTS]
    return sorted(int(place) for place in most)


def _row_of(hosts: IntArray, rows: Sequence[int]) -> FloatArray:
    return np.searchsorted(np.asarray(rows), hosts).astype(np.float64)


def _names(group: GroupResult, rows: Sequence[int]) -> tuple[str, ...]:
    """The hosts' addresses as Plotly takes them, which reads tags in labels."""
    return tuple(escape(group.by_host[host].host) for host in rows)


def _steps(role: str, label: str, seconds: FloatArray, available: int | None = None) -> Trace:
    """The empirical distribution function as a curve of steps."""
    known = np.sort(_shown(seconds[~np.isnan(seconds)]))
    share = np.arange(len(known) + 1, dtype=np.float64) / max(len(known), 1)
    at = np.concatenate([known[:1], known])
    return Trace(
        role, label, "steps", pack(at * 1e3), pack(share), len(known), len(known) if available is None else available
    )  # fmt: skip


def _points(
    role: str,
    label: str,
    horizontal: FloatArray,
    vertical: FloatArray,
    mode: str = "points",
    *,
    available: int | None = None,
) -> Trace:
    return Trace(
        role, label, mode, pack(horizontal), pack(vertical),
        len(vertical), len(vertical) if available is None else available,
    )  # fmt: skip
