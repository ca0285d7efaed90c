"""One clock of many hosts and the response to load as evidence of groups: on made senders, and from end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from random import Random

import numpy as np
import pytest
from msgspec.structs import replace as with_fields

from benchmarks.one_ended_simulated.assembly import Bases
from benchmarks.one_ended_simulated.scenario import MiddleKind
from detector.detection import detect
from detector.one_capture import pools
from detector.one_capture.judging import group_results, judged_groups
from detector.one_capture.networks import NetworkTable
from detector.one_capture.reasons.findings import LoadFinding, SharedClockFinding
from detector.one_capture.reasons.shown_signs import longest, with_shown_signs
from detector.one_capture.side_posteriors import weigh_side
from detector.options import DECISION_PROBABILITY
from pepscope.captures.exchanges import ExchangeKind
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Evidence, GroupSide, Outcome
from tests.detector.one_capture.made_vantages import Talk, vantage
from tests.detector.one_capture.senders.made_senders import senders
from tests.one_ended_simulated.networks import network, simulated, written

CORPUS = Path(__file__).parents[3] / "corpus"
ONE_ENDED = Path(__file__).parents[3] / "one_ended"
APART = ("192.0.2.1", "198.18.0.1", "203.0.113.1")
START_S = 1_780_000_000.0


def clock_shown(hosts: Sequence[str], zeros_s: Sequence[float], rate_hz: float = 1000.0) -> list[Evidence]:
    """The evidence of one clock for servers whose counters were zero so long before the capture."""
    talks = [Talk(host=host, excess_ms=((ExchangeKind.COMMAND, 0.5),) * 4) for host in hosts]
    first = START_S + np.arange(len(hosts))
    ticks = [np.floor((first + spent - START_S + zeros_s) * rate_hz) % (1 << 32) for spent in (0.0, 5.0)]
    sent = senders(
        len(hosts), Direction.DOWN.value, ticked_packets=2, first_tick_ns=np.round(first * 1e9),
        last_tick_ns=np.round((first + 5) * 1e9), first_tsval=ticks[0], last_tsval=ticks[1],
    )  # fmt: skip
    made = with_fields(vantage(talks, at_client=True), senders=sent)
    columns = {**made.columns, **dict.fromkeys(("up_stream_bytes", "packets"), np.zeros(len(hosts), np.int64))}
    made = with_fields(made, columns=columns)
    judged = weigh_side(made, GroupSide.CLIENT, NetworkTable())
    members = pools.of_members(judged)
    groups = judged_groups(judged, members, DECISION_PROBABILITY)
    results = group_results(judged, members, groups, [range(len(hosts))])
    found = with_shown_signs(results, made, judged, groups.explanations, np.arange(len(made.capture)))
    return [item for item in found[0].evidence if item.finding == SharedClockFinding.ONE_CLOCK]


def test_hosts_of_several_networks_that_share_a_zero_are_evidence_of_one_machine() -> None:
    (shown,) = clock_shown(APART, [7000.0, 7000.02, 90_000.0])
    assert (shown.outcome, shown.numbers["hosts"], shown.numbers["networks"]) == (Outcome.SPLIT, 2, 2)
    assert shown.numbers["spread_s"] == pytest.approx(0.02, abs=0.002)
    assert 0 < shown.numbers["chance"] < 1e-6
    assert shown.strength < 0.5
    assert any("addresses" in caveat for caveat in shown.caveats)


@pytest.mark.parametrize(
    ("hosts", "zeros_s", "rate_hz"),
    [
        (APART, (7000.0, 8000.0, 90_000.0), 1000.0),
        (("192.0.2.1", "192.0.2.2", "192.0.2.3"), (7000.0,) * 3, 1000.0),  # sites of one hoster
        (("192.0.2.1", "2001:db8::1"), (7000.0,) * 2, 1000.0),  # one host with an address of either version
        # At 1 MHz and among so many hosts two agree by chance.
        (tuple(f"198.18.{place}.1" for place in range(60)), [100.0 + 60 * max(each, 1) for each in range(60)], 1e6),
    ],
)
def test_hosts_that_may_share_a_machine_or_agree_by_chance_show_no_clock(
    hosts: Sequence[str], zeros_s: Sequence[float], rate_hz: float
) -> None:
    assert clock_shown(hosts, zeros_s, rate_hz) == []


def of_groups(path: Path, method: str) -> list[Evidence]:
    """What a method shows of all groups of a capture, from end to end."""
    return [item for group in detect(str(path)).groups for item in group.evidence if item.method == method]


@pytest.mark.parametrize("kind", [MiddleKind.RELAY, MiddleKind.NOTHING])
def test_a_relay_with_one_clock_answers_for_several_networks(
    kind: MiddleKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """End to end each connection has an offset of its own, as Linux draws it."""
    scenario = network(kind)
    (site,), (server,) = scenario.sites, scenario.servers
    servers = tuple(
        replace(server, name=f"s{place}", address=IPv4Address(address)) for place, address in enumerate(APART)
    )
    sessions = tuple(
        replace(session, server=place, start_s=session.start_s + 20 * place)
        for place in range(len(APART))
        for session in site.sessions
    )
    if kind is MiddleKind.RELAY:
        drawn = Bases.drawn
        one_machine = Bases.drawn(Random(7)).timestamp
        monkeypatch.setattr(Bases, "drawn", lambda random: replace(drawn(random), timestamp=one_machine))
    scenario = replace(scenario, sites=(replace(site, sessions=sessions),), servers=servers)
    found = of_groups(written(simulated(scenario), tmp_path)["client"], "one_clock")
    if kind is MiddleKind.NOTHING:
        assert found == []
    else:
        assert {(item.numbers["hosts"], item.numbers["networks"]) for item in found} == {(3, 3)}
        assert len(found) >= 3, "of most ports"


def test_a_syn_proxys_clock_is_no_split_points() -> None:
    for kind in ("none", "synproxy"):
        assert of_groups(ONE_ENDED / f"lte-{kind}.mobile.pcap.gz", "one_clock") == []


@pytest.mark.parametrize("name", ["reg_dl_bloat_1M", "reg_dl_nat", "reg_dl_par20"])
def test_downloads_end_to_end_show_the_paths_queue(name: str) -> None:
    (shown,) = of_groups(CORPUS / f"{name}.srv.pcap.gz", "load_response")
    assert (shown.finding, shown.outcome) == (LoadFinding.PATH_QUEUES, Outcome.INTACT)
    assert shown.caveats


@pytest.mark.parametrize("name", ["spl_ha_dl_large_umts", "spl_ha_dl_small_umts", "spl_ha_ftp_dl"])
def test_downloads_behind_a_split_show_the_window_that_shuts(name: str) -> None:
    shown = of_groups(CORPUS / f"{name}.srv.pcap.gz", "load_response")
    assert [(item.finding, item.outcome) for item in shown] == [(LoadFinding.WINDOW_SHUTS, Outcome.SPLIT)]
    assert shown[0].numbers["times_shut"] > 5
    assert any("reader" in caveat for caveat in shown[0].caveats)


def test_a_part_of_the_packets_is_read_again_the_longest_transfers_of_all_groups_first() -> None:
    group = np.repeat([0, 1], 10)
    sent_bytes = np.concatenate([np.arange(10), np.arange(10, 20)]) * 50_000
    packets = np.full(20, 10)
    assert longest(sent_bytes, group, packets).tolist() == [*range(2, 10), *range(12, 20)]
    packets = np.where(np.arange(20) == 9, 1_000_000, 60_000)  # a sixteenth of all is 133,750
    assert longest(sent_bytes, group, packets).tolist() == [9]
    packets = np.full(20, 60_000)
    assert longest(sent_bytes, group, packets).tolist() == [8, 9, 19]


@pytest.mark.parametrize("name", ["reg_ul_bloat_256", "spl_ha_ul_cellslow"])
def test_uploads_queue_on_the_access_link_whatever_is_behind_it(name: str) -> None:
    assert of_groups(CORPUS / f"{name}.mob.pcap.gz", "load_response") == []


def test_a_download_that_queues_and_shuts_windows_shows_neither() -> None:
    assert of_groups(CORPUS / "spl_ha_dl_eth_tso.srv.pcap.gz", "load_response") == []
