"""Every change does what it says and nothing else, and what it writes is still a capture of TCP."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks.metamorphic import clocks, losses, offloads, rewriting
from benchmarks.metamorphic.changes import BY_NAME, CHANGES, applied, drawn, received
from benchmarks.metamorphic.pairs import SIDES, LabelledPair, Source, sources
from benchmarks.metamorphic.records import ACK, FIN, PSH, SYN, Records, joined
from benchmarks.metamorphic.writing import LINKS, write
from pepscope.captures.capture import open_capture

TESTS = Path(__file__).parents[1]
SMALL = Source(str(TESTS / "fresh"), "reg-same-object")  # six connections
RESETS = Source(str(TESTS / "fresh"), "spl-relay-resets")
HANDOVER = Source(str(TESTS / "fresh"), "spl-handover")
LOSSES = Source(str(TESTS / "corpus"), "reg_dl_reno_loss1")  # SACK blocks
SUPER_PACKETS = Source(str(TESTS / "corpus"), "spl_ha_dl_eth_tso")
VERSION_6 = Source(str(TESTS / "corpus"), "reg_dl_v6")
ALL = (SMALL, RESETS, LOSSES, SUPER_PACKETS, VERSION_6)


def server(source: Source = SMALL) -> Records:
    return source.read().records["server"]


def chance() -> np.random.Generator:
    return np.random.default_rng(1)


def same_but(one: Records, two: Records, *names: str) -> bool:
    return all(np.array_equal(getattr(one, n), getattr(two, n)) for n in Records.__slots__ if n not in names)


def summaries(records: Records, directory: Path) -> list[str]:
    """What `inspect` makes of each connection, less everything that middleboxes translate."""
    path = directory / "records.pcap"
    write(path, records, "raw")
    connections = open_capture(str(path)).connections
    return sorted(str((c.packets, c.close, c.first_time_ns, _told(c.up), _told(c.down))) for c in connections)


def _told(flow):
    return (
        flow.packets, flow.payload_bytes, flow.stream_bytes, flow.retransmitted_packets, flow.duplicate_packets,
        flow.missed_bytes, flow.round_trip_time_samples, flow.round_trip_time_mean_ns, flow.window_max_bytes,
    )  # fmt: skip


@pytest.mark.parametrize("source", ALL, ids=lambda source: source.name)
def test_records_are_written_as_they_were_read(source, tmp_path):
    for side, records in source.read().records.items():
        recorded = _recorded(source, side)
        write(tmp_path / "again.pcap", records, "raw")
        before, after = open_capture(str(recorded)), open_capture(str(tmp_path / "again.pcap"))
        assert [c.packets for c in after.connections] == [c.packets for c in before.connections]
        for number in range(len(before.connections)):
            for name in ("time_ns", "ip_id", "payload_hash", "window_bytes", "sequence_offset"):
                one, two = (getattr(capture.packets(number), name) for capture in (before, after))
                assert np.array_equal(one, two), name


def _recorded(source: Source, side: str) -> Path:
    runs = json.loads((Path(source.directory) / "manifest.json").read_text())["runs"]
    run = next(run for run in runs if run["id"] == source.run)
    name: str = run["files"][side]["name"]
    return Path(source.directory) / name


def test_every_change_leaves_well_formed_packets(tmp_path):
    """tshark finds TCP in every record that still holds a TCP header, and nothing malformed."""
    everything, expected = None, 0
    for change in CHANGES:
        for place in change.places:
            pair = applied(SMALL.read(), drawn(change, place, random.Random(f"{change.name}/{place}"), ALL))
            for side in SIDES:
                records = pair.records[side]
                expected += int((records.held >= records.tcp + 20).sum())
                if len(records):
                    everything = records if everything is None else joined(everything, records, everything.connections)
    assert everything is not None
    write(tmp_path / "all.pcap", everything, "raw")
    assert tshark(tmp_path / "all.pcap", "_ws.malformed && !_ws.short") == 0
    assert tshark(tmp_path / "all.pcap", "tcp.hdr_len") >= expected


def tshark(path: Path, expression: str) -> int:
    command = ["tshark", "-n", "-r", str(path), "-Y", expression, "-T", "fields", "-e", "frame.number"]
    return len(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("source", [SMALL, VERSION_6], ids=["IPv4", "IPv6"])
def test_other_links_hold_the_same_segments(source, link, tmp_path):
    records = server(source).take(slice(0, 60))
    write(tmp_path / "link.pcap", records, link)
    command = ["tshark", "-n", "-r", str(tmp_path / "link.pcap"), "-T", "fields", "-E", "occurrence=l"]
    command += ["-e", "tcp.seq_raw", "-e", "tcp.ack_raw", "-e", "tcp.len"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    columns = zip(records.sequence, records.acknowledgement, records.payload_bytes, strict=True)
    assert [tuple(map(int, line.split("\t"))) for line in lines] == [tuple(map(int, row)) for row in columns]


def test_cut_packets_hold_at_most_so_much():
    for source, more in ((SMALL, 0), (VERSION_6, 20)):
        cut = losses.cut(server(source), 48)
        assert cut.held.max() == 48 + more
        assert same_but(cut, server(source), "held")


def test_lost_records_are_a_share_and_the_rest_is_untouched():
    whole = server(LOSSES)
    for kept in (losses.lost(whole, 0.2, chance()), losses.lost_bursts(whole, 0.2, 20, chance())):
        assert 0.7 < len(kept) / len(whole) < 0.9
        assert np.isin(kept.time_ns, whole.time_ns).all()


def test_bursts_are_runs():
    whole = server(LOSSES)
    kept = np.isin(whole.time_ns, losses.lost_bursts(whole, 0.2, 100, chance()).time_ns)
    assert (np.diff(kept.astype(int)) == -1).sum() < (~kept).sum() / 5


def test_a_part_of_the_duration_or_the_first_records_stay():
    whole = server()
    span = whole.time_ns.max() - whole.time_ns.min()
    part = losses.between(whole, 0.25, 0.75)
    assert part.time_ns.min() >= whole.time_ns.min() + span // 4
    assert part.time_ns.max() <= whole.time_ns.max() - span // 4
    assert len(losses.first_records(whole, 7)) == 7


def test_one_direction_stays():
    whole = server()
    up = losses.one_direction(whole, True)
    assert len(up) + len(losses.one_direction(whole, False)) == len(whole)
    ends = [up.data[row].tobytes() for row in range(len(up))]
    assert {packet[22:24] for packet in ends} == {(80).to_bytes(2, "big")}  # to the server's port


def test_of_pure_acks_every_kth_stays():
    whole = server(LOSSES)
    thin = losses.thinned_acks(whole, 4)
    pure = [((r.payload_bytes == 0) & (r.flags == ACK)).sum() for r in (whole, thin)]
    assert pure[1] == pytest.approx(pure[0] / 4, abs=2)
    assert len(whole) - len(thin) == pure[0] - pure[1]


def test_duplicates_follow_their_first_copy():
    whole = server()
    twice = losses.duplicated(whole, 1.0, 1000, chance())
    assert len(twice) == 2 * len(whole)
    assert np.array_equal(np.unique(twice.time_ns), np.unique(np.r_[whole.time_ns, whole.time_ns + 1000]))


def test_swapped_neighbours_keep_their_times_or_lie_close():
    whole = server()
    moved = losses.swapped_in_file(whole, 0.5, chance())
    assert (np.diff(moved.time_ns) < 0).sum() > len(whole) / 10
    assert np.array_equal(np.sort(moved.time_ns), whole.time_ns)
    stamped = losses.swapped_in_time(server(LOSSES), 1.0, chance())
    before = server(LOSSES)
    changed = np.flatnonzero((stamped.data != before.data).any(1))
    assert len(changed) > 0
    assert np.array_equal(stamped.time_ns, before.time_ns)
    gaps = np.diff(before.time_ns)
    nearest = np.minimum(gaps[np.maximum(changed - 1, 0)], gaps[np.minimum(changed, len(gaps) - 1)])
    assert (nearest <= losses.QUEUE_SKEW_NS).all()


def test_clocks_are_shifted_drift_step_and_tick():
    whole = server()
    first, last = whole.time_ns[0], whole.time_ns[-1]
    assert np.array_equal(clocks.shifted(whole, -2.5).time_ns, whole.time_ns - 2_500_000_000)
    drifting = clocks.drifting(whole, 200.0).time_ns
    assert drifting[0] == first
    assert drifting[-1] - last == pytest.approx((last - first) * 200e-6, abs=1)
    stepping = clocks.stepping(whole, [(0.5, 0.3)]).time_ns - whole.time_ns
    assert set(stepping.tolist()) == {0, 300_000_000}
    assert (clocks.coarse(whole, 1_000_000).time_ns % 1_000_000 == 0).all()


def test_a_nat_changes_one_end_only(tmp_path):
    whole = server()
    behind = rewriting.translated(whole, True, chance())
    assert summaries(behind, tmp_path) == summaries(whole, tmp_path)
    before, after = whole.ends(), behind.ends()
    assert all(before[number][1] == after[number][1] for number in before)
    assert all(after[number][0].startswith("198.18.0.7:") for number in after)
    assert len({ends[0] for ends in after.values()}) == len(after)
    forwarded = rewriting.translated(server(VERSION_6), False, chance()).ends()
    assert [ends[1].startswith("[2001:db8::777]:") for ends in forwarded.values()] == [True]


def test_an_anonymiser_gives_an_address_one_name_everywhere():
    pair = LOSSES.read()
    made = {side: rewriting.anonymised(records, 0xABCDEF).ends() for side, records in pair.records.items()}
    assert set(made["server"].values()) == set(made["mobile"].values())
    assert not set(made["server"].values()) & set(pair.records["server"].ends().values())


@pytest.mark.parametrize("source", [SMALL, LOSSES, VERSION_6], ids=lambda source: source.name)
@pytest.mark.parametrize("edit", [rewriting.with_shifted_sequence_numbers, rewriting.with_shifted_timestamps])
def test_translated_numbers_mean_the_same(edit, source, tmp_path):
    whole = server(source)
    made = edit(whole, chance())
    assert (made.data != whole.data).any(1).mean() > 0.9
    assert summaries(made, tmp_path) == summaries(whole, tmp_path)


def test_sack_blocks_move_with_what_they_acknowledge():
    whole = server(LOSSES)
    made = rewriting.with_shifted_sequence_numbers(whole, chance())
    rows = np.flatnonzero(whole.sack > 0)
    assert len(rows) > 10
    at = whole.sack + 2
    moved = (made.get(at, 4) - whole.get(at, 4))[rows] % 2**32
    assert np.array_equal(moved, (made.acknowledgement - whole.acknowledgement)[rows] % 2**32)


def test_identifications_change_only_where_packets_come_from_elsewhere():
    whole = server()
    came = received(whole, "server")
    zeroed = rewriting.with_identification(whole, came, False, chance())
    assert (zeroed.get(4, 2)[came] == 0).all()
    assert np.array_equal(zeroed.data[~came], whole.data[~came])
    drawn_anew = rewriting.with_identification(whole, came, True, chance()).get(4, 2)[came]
    assert len(np.unique(drawn_anew)) > len(drawn_anew) * 0.9
    version_6 = server(VERSION_6)
    everywhere = np.ones(len(version_6), bool)
    assert np.array_equal(rewriting.with_identification(version_6, everywhere, True, chance()).data, version_6.data)


def test_timestamps_are_stripped_as_a_box_on_the_way_strips_them(tmp_path):
    pair = BY_NAME["strip timestamps"].apply(SMALL.read(), "pair", {})
    held = {}
    for side in SIDES:
        write(tmp_path / f"{side}.pcap", pair.records[side], "raw")
        held[side] = tshark(tmp_path / f"{side}.pcap", "tcp.options.timestamp.tsval")
    syns = (pair.records["mobile"].flags == SYN).sum()
    assert held == {"server": 0, "mobile": syns}


def test_narrowed_windows_still_hold_what_was_under_way():
    whole = LOSSES.read().records["server"]
    came = received(whole, "server")
    made = rewriting.with_narrower_windows(whole, came)
    before, after = (records.get(records.tcp + 14, 2) for records in (whole, made))
    assert (after <= before).all()
    assert (after[came] < before[came]).mean() > 0.2
    assert np.array_equal(after[~came], before[~came])
    # Replayed packet by packet: the server never sends beyond the window that it was given.
    shift, acknowledged, right_edge = 7, None, 0
    assert whole.connections == 1
    for row in range(len(made)):
        if came[row] and made.flags[row] & (SYN | ACK) == ACK:
            acknowledged = int(made.acknowledgement[row])
            right_edge = max(right_edge, acknowledged + (int(after[row]) << shift))
        elif acknowledged is not None and made.payload_bytes[row]:
            assert int(made.sequence[row] + made.payload_bytes[row]) <= right_edge


def test_merged_segments_fall_into_the_same_pieces_again():
    whole = server(LOSSES)
    made = offloads.merged(whole, received(whole, "server"), 17)
    assert len(made) < len(whole) * 0.95
    assert made.payload_bytes.max() > 2800
    assert made.payload_bytes.sum() == whole.payload_bytes.sum()
    again = offloads.split(made, 0)
    assert np.array_equal(again.sequence, whole.sequence)
    assert np.array_equal(again.payload_bytes, whole.payload_bytes)
    assert np.array_equal(again.flags, whole.flags)


def test_super_packets_split_into_full_segments(tmp_path):
    whole = server(SUPER_PACKETS)
    made = offloads.split(whole, 1000)
    assert whole.payload_bytes.max() > 10_000
    assert made.payload_bytes.max() <= 1460
    assert made.payload_bytes.sum() == whole.payload_bytes.sum()
    kept = ("stream_bytes", "payload_bytes")
    before, after = (_only_connection(records, tmp_path) for records in (whole, made))
    assert [getattr(before.down, name) for name in kept] == [getattr(after.down, name) for name in kept]
    assert (made.flags & (PSH | FIN) > 0).sum() == (whole.flags & (PSH | FIN) > 0).sum()


def _only_connection(records, directory):
    write(directory / "one.pcap", records, "raw")
    (connection,) = open_capture(str(directory / "one.pcap")).connections
    return connection


@pytest.mark.parametrize("place", ["server", "both"])
def test_an_unrelated_capture_brings_its_own_truth(place):
    parameters = {"key": 77, "later": 0.1, "directory": RESETS.directory, "run": RESETS.run}
    pair = BY_NAME["merge an unrelated capture"].apply(SMALL.read(), place, parameters)
    assert len(pair.records["server"]) == len(server(SMALL)) + len(server(RESETS))
    assert (np.diff(pair.records["server"].time_ns) >= 0).all()
    truths = [flow.truth for flow in pair.flows]
    assert truths == ["regular"] * 6 + ["split"] * 5
    assert all(set(flow.connection) == (set(SIDES) if place == "both" else {"server"}) for flow in pair.flows[6:])
    ends = pair.records["server"].ends()
    assert len(set(ends.values())) == len(ends) == 11
    assert not pair.all_regular


def test_an_unrelated_capture_has_sequence_numbers_and_timestamps_of_its_own():
    parameters = {"key": 77, "later": 0.1, "directory": HANDOVER.directory, "run": HANDOVER.run}
    other = HANDOVER.read()
    pair = BY_NAME["merge an unrelated capture"].apply(SMALL.read(), "both", parameters)
    moved = set()
    for side in SIDES:
        merged, first = pair.records[side], SMALL.read().records[side].connections
        added = merged.take(merged.connection >= first)
        for up in (False, True):
            before, after = other.records[side].take(other.records[side].is_up == up), added.take(added.is_up == up)
            stamped = before.timestamps > 0
            moved |= {("number", up, int(d)) for d in np.unique((after.sequence - before.sequence) % 2**32)}
            values = (after.get(after.timestamps + 2, 4) - before.get(before.timestamps + 2, 4))[stamped]
            moved |= {("stamp", up, int(d)) for d in np.unique(values % 2**32)}
    assert len(moved) == 4  # one constant for each direction, the same at both ends
    assert all(constant for *_, constant in moved)
    (here, *_), (there, *_) = ([f for f in flows if f.takeover] for flows in (other.flows, pair.flows[6:]))
    assert there.as_kept(pair.records).truth == here.as_kept(other.records).truth == "split"
    assert there.takeover.base["mobile"] != here.takeover.base["mobile"]


def test_swapped_arguments_come_in_the_other_order():
    once = BY_NAME["swap arguments"].apply(SMALL.read(), "pair", {})
    assert (SMALL.read().first, once.first) == ("server", "mobile")
    assert BY_NAME["swap arguments"].apply(once, "pair", {}).first == "server"


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_change_acts_at_its_place_and_is_deterministic(change):
    for place in change.places:
        for source in (SMALL, LOSSES):
            steps = drawn(change, place, random.Random(f"{change.name}/{place}"), ALL)
            once, again = (applied(source.read(), steps) for _ in range(2))
            for side in SIDES:
                assert same_but(once.records[side], again.records[side])
                touched = place in (side, "both", "pair")
                assert touched or same_but(once.records[side], source.read().records[side])
                assert touched or once.links[side] == "raw"


def test_sources_are_unchanged_two_ended_runs():
    found = sources([TESTS / "corpus", TESTS / "fresh"])
    assert len(found) > 50
    assert not any("__" in source.run for source in found)
    assert isinstance(found[0].read(), LabelledPair)


def test_another_payload_differs_in_every_byte_and_in_no_header():
    before, after = server(), rewriting.with_other_payload(server(), 254)
    assert same_but(before, after, "data")
    header = np.arange(before.data.shape[1]) < before.header_bytes[:, None]
    assert (after.data[header] == before.data[header]).all()
    assert (after.data[~header] != before.data[~header]).all()


def test_a_sanitised_payload_is_zeros_of_the_same_length(tmp_path):
    before, after = server(), rewriting.with_zeroed_payload(server())
    assert same_but(before, after, "data")
    header = np.arange(before.data.shape[1]) < before.header_bytes[:, None]
    assert (after.data[header] == before.data[header]).all()
    assert before.data[~header].any()
    assert not after.data[~header].any()
    assert summaries(before, tmp_path) == summaries(after, tmp_path)


@pytest.mark.parametrize("by_s", [-2.0, 0.005])
def test_two_clocks_move_one_direction_and_sort(by_s):
    before, after = server(), clocks.two_clocks(server(), by_s)
    assert (np.diff(after.time_ns) >= 0).all()
    assert sorted(after.time_ns[~after.is_up]) == sorted(before.time_ns[~before.is_up])
    assert sorted(after.time_ns[after.is_up]) == sorted(before.time_ns[before.is_up] + round(by_s * 1e9))


def test_one_direction_first_keeps_every_record_and_its_time():
    before, after = server(), losses.one_direction_first(server(), True)
    ups = int(before.is_up.sum())
    assert same_but(after.take(slice(0, ups)), losses.one_direction(before, True))
    assert same_but(after.take(slice(ups, None)), losses.one_direction(before, False))


def test_packets_with_data_are_those_that_the_filter_leaves(tmp_path):
    before, after = server(), losses.with_data(server())
    write(tmp_path / "all.pcap", before, "raw")
    assert tshark(tmp_path / "all.pcap", "tcp.len > 0") == len(after) < len(before)
