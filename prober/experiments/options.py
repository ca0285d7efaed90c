"""Changes of the handshake on the path: addresses, ports, sequence numbers, options, window, segments.

A short download is captured at both ends, and each SYN and SYN-ACK is compared with the segment that arrived. Network
address translators change addresses and ports, clamping lowers the maximum segment size, firewalls randomise initial
sequence numbers and strip options: none of this is evidence. An option that the sender never sent, another window
scale, or a larger maximum segment size than was offered was written by another TCP. Firewalls that answer SYNs instead
of the server (SYN proxies) write such SYNs too, so this finding never decides alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pepscope.captures.direction import Direction
from pepscope.errors import CaptureError
from pepscope.results.finding import Finding, Weight, inapplicable, split
from pepscope.results.verdicts import Evidence, Number
from pepscope.strict_reading import Table, WholeNumber
from prober.client.capabilities import Capability
from prober.measurement.cost_estimate import transfer_cost
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.measured_transfer import OneTransfer, measured_transfer
from prober.measurement.task import Measurement, Task, repeated
from prober.protocol.json_documents import Json

if TYPE_CHECKING:
    from pathlib import Path

    from pepscope.captures.connections import Connection, FlowSummary
    from pepscope.results.verdicts import PairResult
    from prober.client.mobile_end import MobileEnd
    from prober.measurement.experiment import Scope

#: TCP option kinds (IANA) by their usual names; end of list and padding do not count as options.
OPTION_NAMES = {
    2: "mss",
    3: "window-scale",
    4: "sack-permitted",
    5: "sack",
    8: "timestamps",
    30: "mptcp",
    34: "fast-open",
}
_PADDING = (0, 1)


class OptionsFinding(Finding):
    """SYNs as they left and as they arrived."""

    SYN_OF_ANOTHER_STACK = split(
        "syn-of-another-stack",
        Weight(
            "handshake", -2.5, 0.0, 0.0, -2.5, "SYN proxies in firewalls write SYNs, too.",
        ),
    )  # fmt: skip
    HANDSHAKE_AS_SENT = inapplicable("handshake-as-sent")


class OptionsOptions(Table, frozen=True):
    """What a plan may set."""

    size_bytes: WholeNumber = 20_000
    repeats: WholeNumber = 1


class Options(Experiment[OptionsOptions, OneTransfer]):
    """Compares handshakes as they left with what arrived."""

    name = "options"
    title = "handshakes and segments at both ends"
    summary = "Compare SYN, options, sequence numbers and segments at both ends."
    findings = (OptionsFinding,)
    options = OptionsOptions
    measured = OneTransfer

    def tasks(self, options: OptionsOptions, scope: Scope) -> Iterable[Task]:
        """One short download an application and a repeat."""
        size_bytes = options.size_bytes
        for application in scope.applications:
            cost = transfer_cost(application, Direction.DOWN, size_bytes, scope.rates)
            task = Task(
                self.name,
                1,
                application,
                Direction.DOWN,
                {"size_bytes": size_bytes},
                connections=cost.connections,
                bytes_up=cost.bytes_up,
                bytes_down=cost.bytes_down,
                expected_s=cost.expected_s,
                requires=frozenset({Capability.MOBILE_CAPTURE, Capability.SERVER_CAPTURE}),
            )
            yield from repeated(task, options.repeats)

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Fetch one object; the captures hold the rest."""
        assert task.application is not None
        moved = end.transfer(task.application, Direction.DOWN, int(task.parameters["size_bytes"]))
        return Measurement.of(OneTransfer(transfer=measured_transfer(moved)), moved.flows)

    def examine(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        """Findings: `syn-of-another-stack` (split, cannot decide), `handshake-as-sent`."""
        compared = [table for item in observed for table in _comparisons(item)]
        foreign = [mark for table in compared for mark in table["foreign"]]
        if not compared:
            return ()
        numbers: dict[str, Number] = {"handshakes": len(compared), "foreign": "; ".join(dict.fromkeys(foreign))}
        if not foreign:
            changed = ", ".join(dict.fromkeys(what for table in compared for what in table["changed"]))
            return (
                OptionsFinding.HANDSHAKE_AS_SENT.undecided(
                    self.name,
                    f"Nothing in {len(compared)} handshakes was written by another TCP"
                    f"{f'; changed as NATs and firewalls do: {changed}' if changed else ''}.", numbers,
                ),
            )  # fmt: skip
        return (
            OptionsFinding.SYN_OF_ANOTHER_STACK.evidence(
                self.name, 0.9,
                f"The handshake arrives with what its sender never sent: {foreign[0]}.", numbers,
                ("Firewalls that answer SYNs for a server (SYN proxies) write handshakes anew, too.",),
            ),
        )  # fmt: skip

    def metrics(self, observed: Sequence[ObservedTask]) -> Mapping[str, Json]:
        """The handshakes of each connection at both ends, and what changed."""
        return {"handshakes": [table for item in observed for table in _comparisons(item)]}


def _comparisons(item: ObservedTask) -> list[dict[str, Json]]:
    """One table a connection of the task that both captures show with its handshake."""
    if item.mobile_capture is None or item.server_capture is None:
        return []
    paths = {item.observation.mobile_capture: item.mobile_capture, item.observation.server_capture: item.server_capture}
    try:
        connections = {name: _by_ends(path) for name, path in paths.items()}
    except CaptureError:
        return []  # judging the captures reports their errors better
    tables = []
    for pair in item.pairs:
        ends = _both_ends(pair, item, connections)
        if ends is not None:
            tables.append(_compare(*ends))
    return tables


def _by_ends(path: Path) -> dict[tuple[str, str], Connection]:
    from pepscope.captures.capture import open_capture

    return {(found.client, found.server): found for found in open_capture(str(path)).connections}


def _both_ends(
    pair: PairResult, item: ObservedTask, connections: Mapping[str, Mapping[tuple[str, str], Connection]]
) -> tuple[Connection, Connection] | None:
    found = {vantage.capture: connections.get(vantage.capture, {}).get((vantage.client, vantage.server))
             for vantage in pair.vantages}  # fmt: skip
    mobile, server = (found.get(name) for name in (item.observation.mobile_capture, item.observation.server_capture))
    return (mobile, server) if mobile is not None and server is not None else None


def _compare(mobile: Connection, server: Connection) -> dict[str, Json]:
    changed = [
        what
        for what, one, other in (
            ("client address", mobile.client_address, server.client_address),
            ("client port", mobile.client_port, server.client_port),
            ("server address", mobile.server_address, server.server_address),
            ("server port", mobile.server_port, server.server_port),
        )
        if one != other
    ]
    foreign: list[str] = []
    for name, left, arrived in (("SYN", mobile.up, server.up), ("SYN-ACK", server.down, mobile.down)):
        if left.syn_count and arrived.syn_count:
            changed += _changes(name, left, arrived)
            foreign += _foreign(name, left, arrived)
    return {
        "mobile": _table(mobile),
        "server": _table(server),
        "changed": changed,
        "foreign": foreign,
    }


def _table(connection: Connection) -> dict[str, Json]:
    return {
        "client": connection.client,
        "server": connection.server,
        **{direction: _flow(flow) for direction, flow in (("up", connection.up), ("down", connection.down))},
    }


def _flow(flow: FlowSummary) -> dict[str, Json]:
    kinds = option_kinds(flow.syn_options)
    return {
        "options": [OPTION_NAMES.get(kind, str(kind)) for kind in kinds],
        "maximum_segment_size": flow.maximum_segment_size,
        "window_scale": flow.window_scale,
        "time_to_live": flow.ttl,
        "segments": flow.data_packets,
        "payload_bytes": flow.payload_bytes,
    }


def _changes(name: str, left: FlowSummary, arrived: FlowSummary) -> list[str]:
    kinds, came = option_kinds(left.syn_options), option_kinds(arrived.syn_options)
    gone = [OPTION_NAMES.get(kind, str(kind)) for kind in kinds if kind not in came and arrived.options_captured]
    changes = [f"{name} without {', '.join(gone)}"] if gone else []
    if left.initial_sequence_number != arrived.initial_sequence_number:
        changes.append(f"{name} with another initial sequence number")
    if _less(arrived.maximum_segment_size, left.maximum_segment_size):
        changes.append(f"{name} with a maximum segment size of {arrived.maximum_segment_size}")
    return changes


def _foreign(name: str, left: FlowSummary, arrived: FlowSummary) -> list[str]:
    """What only another TCP writes."""
    kinds, came = option_kinds(left.syn_options), option_kinds(arrived.syn_options)
    added = [OPTION_NAMES.get(kind, str(kind)) for kind in came if kind not in kinds and left.options_captured]
    marks = [f"{name} with {', '.join(added)} added"] if added else []
    scales = left.window_scale, arrived.window_scale
    if None not in scales and scales[0] != scales[1]:
        marks.append(f"{name} with a window scale of {scales[1]} instead of {scales[0]}")
    if _less(left.maximum_segment_size, arrived.maximum_segment_size):
        marks.append(
            f"{name} with a maximum segment size of {arrived.maximum_segment_size} instead of "
            f"{left.maximum_segment_size}"
        )
    return marks


def _less(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one < other


def option_kinds(options: bytes) -> list[int]:
    """Kinds in the order in which they stand (RFC 9293, section 3.1), padding left out; what is cut short ends it."""
    kinds, at = [], 0
    while at < len(options):
        kind = options[at]
        if kind == 0:
            break
        if kind in _PADDING:
            at += 1
            continue
        if at + 1 >= len(options) or options[at + 1] < 2:
            break
        kinds.append(kind)
        at += options[at + 1]
    return kinds
