"""Was the other capture watching: spans, clocks, brackets, and what it could have held."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from detector.streams.known import UNKNOWN
from detector.vantage.watching import SeenConnections, Watch, Watched
from pepscope.captures.connections import Close, Connection, FlowSummary, MissingPackets
from tests.captures.conversation import START_NS

SECOND = 1_000_000_000
CLIENT, SERVER = "10.0.0.1", "192.0.2.80"
#: By how much the far clock is ahead, and how long a packet takes.
AHEAD_NS, DELAY_NS = 5 * SECOND, SECOND // 20


def flow(first_data_ns: int, stream_bytes: int) -> FlowSummary:
    return FlowSummary(
        packets=10, pure_acknowledgements=5, payload_bytes=stream_bytes, stream_bytes=stream_bytes, data_packets=5,
        retransmitted_packets=0, retransmitted_bytes=0, reordered_packets=0, duplicate_packets=0, missed_bytes=0,
        zero_windows=0, zero_window_probes=0, window_min_bytes=1000, window_max_bytes=1000, round_trip_time_samples=1,
        round_trip_time_min_ns=None, round_trip_time_mean_ns=None, round_trip_time_max_ns=None,
        first_time_ns=first_data_ns, first_data_time_ns=first_data_ns, last_data_time_ns=first_data_ns,
        initial_sequence_number=1, syn_count=1, syn_options=b"", maximum_segment_size=1460, window_scale=7,
        window_shift=7, options_captured=True, options_truncated_packets=0, missing_packets=MissingPackets.NONE,
        sack_permitted=True, timestamps=True, ttl=64, fin_time_ns=None, reset_time_ns=None,
    )  # fmt: skip


def seen(begin_s: float, end_s: float, *, client: str = CLIENT, server: str = SERVER) -> Connection:
    """A connection as the near capture, at the client, shows it; seconds after START_NS."""
    begin, end = (START_NS + round(at * SECOND) for at in (begin_s, end_s))
    return Connection(
        id=0, ip_version=4, client_address=client, client_port=40_000, server_address=server, server_port=80,
        side_guessed=False, first_time_ns=begin, last_time_ns=end, packets=20, close=Close.FIN,
        handshake_syn_ack_ns=2 * DELAY_NS, handshake_ack_ns=1000, tunnel="none", tunnel_up=0, tunnel_down=0,
        up=flow(begin + 2 * DELAY_NS, 100), down=flow(begin + 4 * DELAY_NS, 50_000),
    )  # fmt: skip


def at_server(near: Connection, ahead_ns: int = AHEAD_NS) -> Connection:
    """The same connection as the far capture shows it."""
    moved = ahead_ns + DELAY_NS
    return near._replace(
        first_time_ns=near.first_time_ns + moved,
        last_time_ns=near.last_time_ns + ahead_ns - DELAY_NS,
        up=moved_flow(near.up, moved),
        down=moved_flow(near.down, ahead_ns - DELAY_NS),
    )


def moved_flow(summary: FlowSummary, later_ns: int) -> FlowSummary:
    """The flow with its data later."""
    first_ns, last_ns = (time or 0 for time in (summary.first_data_time_ns, summary.last_data_time_ns))
    return summary._replace(first_data_time_ns=first_ns + later_ns, last_data_time_ns=last_ns + later_ns)


def span(begin_s: float, end_s: float) -> tuple[int, int]:
    """When the far capture ran, in seconds of the near clock after START_NS."""
    return START_NS + round(begin_s * SECOND) + AHEAD_NS, START_NS + round(end_s * SECOND) + AHEAD_NS


def columns(*connections: Connection) -> SeenConnections:
    """The connections as a capture's columns have them."""

    def column(values: list[int | None]) -> npt.NDArray[np.int64]:
        return np.array([UNKNOWN if value is None else value for value in values], np.int64)

    made = {name: column([getattr(each, name) for each in connections]) for name in ("first_time_ns", "last_time_ns")}
    for way in ("up", "down"):
        for name in FlowSummary._fields:
            values = [getattr(getattr(each, way), name) for each in connections]
            if all(value is None or isinstance(value, int) for value in values):
                made[f"{way}_{name}"] = column(values)
    return SeenConnections(made, [each.client for each in connections], [each.server for each in connections])


def watch_of(
    ran: tuple[int, int] | None, *shared: tuple[Connection, Connection], asker_at_client: bool = True, **rest: object
) -> Watch:
    batches = [(columns(near), columns(far)) for near, far in shared]
    return Watch(ran, batches, asker_at_client=asker_at_client, **rest)  # type: ignore[arg-type]


def watch(ran: tuple[int, int] | None, *shared: Connection, asker_at_client: bool = True, **rest: object) -> Watch:
    pairs = [(near, at_server(near)) for near in shared]
    return watch_of(ran, *pairs, asker_at_client=asker_at_client, **rest)


EARLIER, ALONE, LATER = seen(0, 10), seen(100, 110), seen(200, 210)


def test_a_capture_that_ran_before_and_after_was_watching() -> None:
    answer = watch(span(-1, 120), EARLIER).was_watching(ALONE)
    assert answer.proven
    assert SERVER in answer.why


@pytest.mark.parametrize(
    ("ran", "words"),
    [
        (span(120, 130), "begins 9.9 s after the end of this connection"),
        (span(-1, 10), "ends 89.9 s before the beginning of this connection"),
        (span(-1, 105), "ends 4.9 s before the end of this connection"),
        (span(-1, 110), "ends possibly before the end of this connection"),
        (span(105, 300), "begins 4.9 s after the beginning of this connection"),
        (span(100, 300), "begins possibly after the beginning of this connection"),
    ],
)
def test_a_capture_that_did_not_run_throughout_was_not(ran: tuple[int, int], words: str) -> None:
    # Clocks are known to 50 ms on either side, and 500 ppm of 110 s: 55 ms.
    answer = watch(ran, EARLIER).was_watching(ALONE)
    assert not answer.proven
    assert words in answer.why
    assert "The other capture ran from 2023-11-14 " in answer.why


def test_the_clock_uncertainty_counts() -> None:
    after = DELAY_NS / SECOND + 110 * 500e-6
    assert watch(span(-1, 110 + after + 0.001), EARLIER).was_watching(ALONE).proven
    assert not watch(span(-1, 110 + after - 0.001), EARLIER).was_watching(ALONE).proven
    no_drift = watch(span(-1, 110 + after - 0.001), EARLIER, drift_limit=0.0)
    assert no_drift.was_watching(ALONE).proven


def test_pairs_before_and_after_need_no_clock() -> None:
    blind = [c._replace(up=c.up._replace(initial_sequence_number=None)) for c in (EARLIER, LATER)]
    assert watch(None, *blind).was_watching(ALONE).proven
    assert not watch(None, blind[0]).was_watching(ALONE).proven


def test_clocks_that_nothing_relates_prove_nothing() -> None:
    blind = EARLIER._replace(up=EARLIER.up._replace(initial_sequence_number=None))
    answer = watch(span(-1000, 1000), blind).was_watching(ALONE)
    assert not answer.proven
    assert "the clock offset is unknown" in answer.why
    assert watch(span(-1000, 1000), blind, same_clock=True).was_watching(ALONE).proven


def test_data_that_the_sender_did_not_capture_do_not_bind_the_clocks() -> None:
    lost = EARLIER._replace(up=EARLIER.up._replace(missed_bytes=10))
    assert watch(span(-1, 120), lost).offset_bounds_ns(ALONE)[1] == float("inf")


@pytest.mark.parametrize(
    ("change", "width_s"),
    [
        ({}, 0.1),  # the last data: a delay either way
        ({"retransmitted_packets": 1}, 8.1),  # any data came before the last: four seconds more either way
        ({"fin_time_ns": None}, float("inf")),
    ],
)
def test_the_last_data_bind_the_clocks_where_the_end_was_captured(
    change: dict[str, int | None], width_s: float
) -> None:
    late: dict[str, int | None] = {"initial_sequence_number": None, "fin_time_ns": EARLIER.last_time_ns, **change}

    def ended(summary: FlowSummary) -> FlowSummary:
        last_ns = (summary.first_data_time_ns or 0) + 4 * SECOND
        return summary._replace(last_data_time_ns=last_ns, **late)  # type: ignore[arg-type]

    begun_late = EARLIER._replace(up=ended(EARLIER.up), down=ended(EARLIER.down))
    low, high = watch(span(-1, 120), begun_late, drift_limit=0.0).offset_bounds_ns(ALONE)
    assert low <= AHEAD_NS <= high
    assert (high - low) / SECOND == pytest.approx(width_s)


def test_a_clock_step_widens_what_is_admissible() -> None:
    later = seen(20, 30)
    stepped = watch_of(span(-1, 120), (EARLIER, at_server(EARLIER)), (later, at_server(later, AHEAD_NS + 20 * SECOND)))
    low, high = stepped.offset_bounds_ns(ALONE)
    assert low < AHEAD_NS
    assert high > AHEAD_NS + 20 * SECOND
    assert not stepped.was_watching(ALONE).proven


def test_asked_from_the_server() -> None:
    """The capture that lacks the connection is the client's: data up bind the clocks from the other side."""
    ran = START_NS - SECOND, START_NS + 120 * SECOND
    behind = watch_of(ran, (at_server(EARLIER), EARLIER), asker_at_client=False)
    low, high = behind.offset_bounds_ns(at_server(EARLIER))
    assert low <= -AHEAD_NS <= high
    assert high - low < 0.2 * SECOND
    assert behind.was_watching(at_server(ALONE)).proven


def held(*shared: Connection, **rest: object) -> Watched:
    return watch(span(-1, 300), *shared, **rest).was_watching(ALONE)  # type: ignore[arg-type]


def test_it_must_show_that_server() -> None:
    assert "shows no connection to 192.0.2.80:80" in held(seen(0, 10, server="192.0.2.81")).why


def test_it_must_not_be_limited_to_other_clients() -> None:
    assert "10.0.0.9 only" in held(seen(0, 10, client="10.0.0.9")).why
    assert held(seen(0, 10, client="10.0.0.9"), seen(20, 30, client="10.0.0.8")).proven


def test_it_must_show_both_directions() -> None:
    far = at_server(EARLIER)
    one_way = watch_of(span(-1, 300), (EARLIER, far._replace(up=far.up._replace(packets=0))))
    assert "lacks one direction" in one_way.was_watching(ALONE).why


@pytest.mark.parametrize(("missed", "proven"), [(1000, True), (50_100, False)])
def test_what_it_lost_elsewhere_must_be_less_than_the_connection(missed: int, proven: bool) -> None:
    far = at_server(EARLIER)
    lossy = watch_of(span(-1, 300), (EARLIER, far._replace(up=far.up._replace(missed_bytes=missed))))
    assert lossy.was_watching(ALONE).proven is proven


@pytest.mark.parametrize(("unreadable", "proven"), [(2, True), (3, False)])
def test_what_cannot_be_read_must_be_fewer_packets_than_the_connection_takes(unreadable: int, proven: bool) -> None:
    assert held(EARLIER, unreadable=unreadable).proven is proven


def test_the_users_filter_may_have_removed_it() -> None:
    answer = held(EARLIER, filtered_out=7)
    assert not answer.proven
    assert "the filter removed 7 packets" in answer.why


def test_connections_told_together_count_as_those_told_one_by_one() -> None:
    shared = [(near, at_server(near)) for near in (EARLIER, seen(20, 30, client="10.0.0.8"), LATER)]
    here, there = zip(*shared, strict=True)
    together = Watch(span(-1, 300), [(columns(*here), columns(*there))], asker_at_client=True)
    apart = watch_of(span(-1, 300), *shared)
    assert together.was_watching(ALONE) == apart.was_watching(ALONE)
    assert together.offset_bounds_ns(ALONE) == apart.offset_bounds_ns(ALONE)


def test_nothing_in_common_relates_no_clocks() -> None:
    assert watch_of(span(-1, 300)).offset_bounds_ns(ALONE) == (-np.inf, np.inf)
