"""One capture only: measurements and hints, never a verdict.

Every sign of a split at one end has a harmless cause as well: a slow reader shuts windows, a near CDN answers
handshakes quickly, a busy server answers late. So this method reports numbers and names the capture that would decide.
"""

from __future__ import annotations

import numpy as np

from detector.method import Context, Findings, Method
from detector.pair import Pair, Vantage
from detector.streams.window_course import bulk_direction, window_course
from pepscope import _core
from pepscope.captures.packets import Direction, PacketColumns
from pepscope.results.evidence.columns import Words, evidence_where
from pepscope.results.finding import Finding, inapplicable
from pepscope.results.verdicts import Evidence, Number

NAME = "single_vantage"
#: Answers that never come sooner than this multiple of the handshake, over enough exchanges, are worth a hint.
ANSWER_RATIO = 3.0
FEWEST_EXCHANGES = 3
#: Initial TTL values of common stacks: a packet that arrives with one has passed no router.
INITIAL_TTLS = frozenset({64, 128, 255})


class SingleVantageFinding(Finding):
    """Findings from one capture; none of them decides."""

    BOTH_ENDS_CAPTURED = inapplicable("both-ends-captured")
    HINTS_OF_SPLIT = inapplicable("hints-of-split", is_missing=True)
    NEEDS_SECOND_CAPTURE = inapplicable("needs-second-capture", is_missing=True)


_BOTH_CAPTURED = Words("Both ends are captured: methods that compare both apply.")
_NOT_CAPTURED = Words("There is no capture.")


def examine(context: Context) -> Findings:
    """Measure what one capture shows: handshake, data and application round trips, window, hops.

    The numbers of `hints-of-split` name the hints.
    """
    pairs, vantages = context.pairs, np.full(len(context.observations), 2)
    for row in context.seen_once.tolist():
        vantages[row] = len(pairs[row].vantages)
    columns = [
        *evidence_where(vantages > 1, NAME, SingleVantageFinding.BOTH_ENDS_CAPTURED, (), _BOTH_CAPTURED),
        *evidence_where(vantages < 1, NAME, SingleVantageFinding.BOTH_ENDS_CAPTURED, (), _NOT_CAPTURED),
    ]
    alone = np.flatnonzero(vantages == 1).tolist()
    return Findings.of_rows({row: _measured(pairs[row]) for row in alone}, columns)


def _measured(pair: Pair) -> Evidence:
    """What the one capture of a connection shows."""
    vantage = pair.vantages[0]
    at_client = pair.client_side is not None
    remote = Direction.DOWN if at_client else Direction.UP
    numbers = _measure(vantage, at_client)
    hints = _hints(pair, vantage, remote, numbers)
    numbers["hints"] = ", ".join(hints)
    where = "server" if at_client else "client (mobile)"
    settle = f"A capture of the same transfer at the {where} would decide."
    if hints:
        return SingleVantageFinding.HINTS_OF_SPLIT.undecided(
            NAME,
            f"One capture cannot decide; it has hints of a middlebox ({', '.join(hints)}). {settle}", numbers,
            ("Slow readers, near CDN nodes and server think time cause the same hints.",),
        )  # fmt: skip
    return SingleVantageFinding.NEEDS_SECOND_CAPTURE.undecided(
        NAME,
        f"Only the {'client' if at_client else 'server'}'s side was captured, which cannot show a split. {settle}",
        numbers,
    )  # fmt: skip


def _measure(vantage: Vantage, at_client: bool) -> dict[str, Number]:
    connection = vantage.connection
    handshake = connection.handshake_syn_ack_ns if at_client else connection.handshake_ack_ns
    local = connection.up if at_client else connection.down
    numbers: dict[str, Number] = {
        "side": "client" if at_client else "server",
        "side_guessed": connection.side_guessed,
        "handshake_s": None if handshake is None else handshake / 1e9,
        "data_round_trip_min_s": None if local.round_trip_time_min_ns is None else local.round_trip_time_min_ns / 1e9,
    }
    exchanges = answer_times(vantage.packets, Direction.UP if at_client else Direction.DOWN)
    numbers["exchanges"] = exchanges.count
    numbers["answer_min_s"] = None if exchanges.least_ns is None else exchanges.least_ns / 1e9
    return numbers


def answer_times(packets: PacketColumns, asked: Direction) -> _core.AnswerTimes:
    """Times from the last byte of each question in `asked` to the first byte of the answer to it.

    As in `pepscope.captures.exchanges`, without what was sent again.
    """
    return _core.answer_times(asked.value, packets)


def _hints(pair: Pair, vantage: Vantage, remote: Direction, numbers: dict[str, Number]) -> list[str]:
    hints = []
    handshake, answer, exchanges = (numbers[key] for key in ("handshake_s", "answer_min_s", "exchanges"))
    if (
        isinstance(handshake, float)
        and isinstance(answer, float)
        and isinstance(exchanges, int)
        and exchanges >= FEWEST_EXCHANGES
        and answer > ANSWER_RATIO * handshake
    ):
        hints.append("answers take far longer than the handshake")
    course = vantage.derived(window_course, bulk_direction(pair).reverse)
    numbers["window_cycles"] = course.cycles
    if course.cycles and bulk_direction(pair) is remote.reverse:
        hints.append("the far window alternates between full and shut")
    arrived = _core.answering_hop_limits(remote.value, vantage.packets)
    if arrived.later is not None:
        numbers["arriving_ttl"] = arrived.later
        if arrived.later in INITIAL_TTLS:
            hints.append("the far end seems to be no router away")
        if arrived.opening is not None and arrived.opening != arrived.later:
            hints.append("the handshake and the data have different TTL")
    return hints


METHOD = Method(NAME, "single capture", (SingleVantageFinding,), examine)
