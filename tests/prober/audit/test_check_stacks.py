"""Who answers for the hosts of a check, by captures made segment by segment."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepscope.captures.direction import Direction
from prober.audit.check_stacks import TimestampClock, stack_findings, timestamp_clock
from prober.check.experiment import PlaceObservation
from prober.check.experiments.questions import NAME as QUESTIONS
from prober.check.experiments.questions import Questions
from prober.check.experiments.round_trips import NAME as ROUND_TRIPS
from prober.check.experiments.round_trips import RoundTrips
from prober.check.finding import CheckFinding, Says
from prober.check.judging import CheckVerdict, judge
from prober.check.measuring import Observations
from prober.check.probes.data_probe import DataAnswer
from prober.check.probes.distances import Distance
from prober.check.report import document, json_text
from prober.check.targets import Place, Target
from reports.audit.check_page import check_page_text
from tests.captures.containers import LINK_RAW, Frame, write_pcap
from tests.captures.conversation import Conversation, Endpoint

SCHEMA = json.loads((Path(__file__).parents[3] / "pepscope/schemas/check-1.json").read_text(encoding="utf-8"))
#: Offsets of timestamp clocks that are minutes apart.
APART = (7, 500_007, 3_000_000_007)


@dataclasses.dataclass(frozen=True)
class Host:
    """How one host is answered for: times in seconds, and what the packets from there have."""

    reference_s: float
    near_s: float = 0.006
    #: Of the handshake, where that takes another time than data.
    handshake_s: float | None = None
    ttl: int = 63
    stamp: int = 7
    #: What is added to the stamp with each connection.
    stamp_step: int = 0
    later_ttl: int | None = None
    scale: int | None = 7
    #: By how much every second connection is slower; its packets then have another hop limit.
    other_s: float = 0.0
    address: str = ""


ONE_BOX = tuple(Host(far_s) for far_s in (0.02, 0.05, 0.09))


def answered_by(host: Host, turn: int) -> Host:
    """What answers this connection of several."""
    if not host.other_s or turn % 2:
        return host
    return dataclasses.replace(host, near_s=host.near_s + host.other_s, ttl=host.ttl - 9)


def talk(host: Host, number: int, local_port: int, start_ms: float) -> Conversation:
    """One question: acknowledged after the near time, answered 100 ms later."""
    client = Endpoint("2001:db8:7::99" if ":" in host.address else "192.0.2.9", local_port, 1000)
    server = Endpoint(host.address or f"203.0.113.{number + 1}", 80, 9000, ttl=host.ttl, window_scale=host.scale)
    said = Conversation(client, server)
    said._stamp_offset[Direction.DOWN] = host.stamp + host.stamp_step * (local_port % 10)
    said.wait(start_ms).handshake((host.handshake_s or host.near_s) * 1e3)
    if host.later_ttl is not None:
        said.server = dataclasses.replace(server, ttl=host.later_ttl)
    said.send(Direction.UP, 0, 0, b"q" * 100).wait(host.near_s * 1e3).send(Direction.DOWN, 0, 100)
    said.wait(100).send(Direction.DOWN, 0, 100, b"a" * 50).wait(0.1).send(Direction.UP, 100, 50)
    return said.close(100, 50)


def observed(tmp_path, hosts):
    """The capture of four questions to each host, and what the check measured meanwhile."""
    segments, places = [], []
    for number, host in enumerate(hosts):
        ports = [40_000 + 10 * number + each for each in range(4)]
        for turn, port in enumerate(ports):
            segments += talk(answered_by(host, turn), number, port, 17.0 * number + 300.0 * turn).segments
        near_s = [answered_by(host, turn).near_s for turn in range(4)]
        plain = tuple(
            DataAnswer(None, late_s, late_s, late_s + 0.1, b"", False, late_s, port)
            for late_s, port in zip(near_s, ports, strict=True)
        )
        where = Place(Target(f"host{number}.example", 80, False), host.address or f"203.0.113.{number + 1}")
        times = RoundTrips(
            host.near_s, host.near_s, host.reference_s, host.handshake_s or host.near_s, (7, host.scale or 0)
        )
        places.append(PlaceObservation(where, Distance.unknown(), {QUESTIONS: Questions(plain), ROUND_TRIPS: times}))
    segments.sort(key=lambda each: each.time_ns)
    path = tmp_path / "check.pcap"
    path.write_bytes(write_pcap([Frame(each.time_ns, each.packet()) for each in segments], LINK_RAW))
    return path, Observations(tuple(places))


def found(tmp_path, *hosts):
    return {finding.says: finding for _, finding in stack_findings(*observed(tmp_path, hosts))}


def test_one_box_with_one_clock_answers_for_hosts_far_apart(tmp_path):
    ((key, finding),) = stack_findings(*observed(tmp_path, ONE_BOX))
    assert (key, finding.says) == ((4, 80), Says.SPLIT_SUPPORT)
    assert finding.hosts == ("host0.example", "host1.example", "host2.example")
    assert finding.sentence == (
        "3 hosts that are 20 to 90 ms away by echo requests or datagrams answer handshakes after 6 ms with one "
        "stack, one hop limit and one timestamp clock: one machine answers for them."
    )


def test_ipv6_is_told_by_its_own_addresses(tmp_path):
    hosts = [dataclasses.replace(each, address=f"2001:db8:7::{n + 1}") for n, each in enumerate(ONE_BOX)]
    ((key, finding),) = stack_findings(*observed(tmp_path, hosts))
    assert (key, finding.says) == ((6, 80), Says.SPLIT_SUPPORT)


def test_the_hosts_of_one_box_beside_others_are_named_alone(tmp_path):
    said = found(tmp_path, *ONE_BOX, Host(0.04, near_s=0.04, ttl=52, stamp=90_000_000))
    assert len(said[Says.SPLIT_SUPPORT].hosts) == 3
    assert said[Says.SEVERAL].sentence == (
        "The quickest handshakes of 4 hosts differ in the hop limit: more than one machine answers them."
    )


@pytest.mark.parametrize(
    "hosts",
    [
        [dataclasses.replace(each, stamp=stamp) for each, stamp in zip(ONE_BOX, APART, strict=True)],
        [dataclasses.replace(each, stamp_step=71_000_003) for each in ONE_BOX],
        [dataclasses.replace(each, later_ttl=50) for each in ONE_BOX],
        [dataclasses.replace(each, near_s=each.reference_s) for each in ONE_BOX],
        [dataclasses.replace(each, reference_s=0.02 + n / 1e3) for n, each in enumerate(ONE_BOX)],
        [dataclasses.replace(each, handshake_s=each.reference_s) for each in ONE_BOX],
        [dataclasses.replace(each, handshake_s=0.006, near_s=0.4 * each.reference_s) for each in ONE_BOX],
        [Host(0.006), Host(0.006), Host(0.09)],
        ONE_BOX[:2],
        [dataclasses.replace(each, address="203.0.113.1") for each in ONE_BOX],
    ],
    ids=["a clock each", "an offset for each connection", "a SYN proxy", "times of their own", "equally far",
         "handshakes of their own", "acknowledgements of their own", "one slow reference", "two hosts", "one address"],
)  # fmt: skip
def test_what_may_be_harmless_says_nothing(tmp_path, hosts):
    assert found(tmp_path, *hosts) == {}


def test_the_quickest_connections_are_compared(tmp_path):
    said = found(tmp_path, dataclasses.replace(ONE_BOX[0], other_s=0.03), *ONE_BOX[1:])
    assert list(said) == [Says.SPLIT_SUPPORT]


def test_delays_longer_than_any_are_no_clock():
    points = [(seconds * 10**9, seconds * 1000) for seconds in range(9)]
    assert timestamp_clock(points) == TimestampClock(1000.0, 0.0)
    # The middle one bends no slope.
    assert timestamp_clock([*points[:4], (4 * 10**9, 2000), *points[5:]]) is None


@pytest.mark.parametrize(
    ("other", "what"),
    [({"ttl": 50}, "hop limit"), ({"scale": None}, "order of options"),
     ({"ttl": 50, "scale": None}, "order of options and the hop limit")],
)  # fmt: skip
def test_several_stacks_are_said(tmp_path, other, what):
    said = found(tmp_path, *ONE_BOX[:2], dataclasses.replace(ONE_BOX[2], **other))
    assert list(said) == [Says.SEVERAL]
    assert f"of 3 hosts differ in the {what}:" in said[Says.SEVERAL].sentence


def test_one_time_decides_unless_several_stacks_answer(tmp_path):
    def verdict(hosts):
        path, observations = observed(tmp_path, hosts)
        further: dict[tuple[int, int], list[CheckFinding]] = {}
        for key, finding in stack_findings(path, observations):
            further.setdefault(key, []).append(finding)
        (judged,) = judge(observations, further=further)
        said = json.loads(json_text(document((judged,), observations)))
        jsonschema.validate(said, SCHEMA)
        return judged, check_page_text(said)

    split, _ = verdict(ONE_BOX)
    assert split.verdict is CheckVerdict.SPLIT_TCP
    assert "one timestamp clock" in split.reason
    several, _ = verdict([dataclasses.replace(each, ttl=60 - n) for n, each in enumerate(ONE_BOX)])
    assert several.verdict is CheckVerdict.INCONCLUSIVE
    assert several.reason == (
        "Hosts at different distances acknowledge data after one time, but no middlebox does. "
        "The quickest handshakes of 3 hosts differ in the hop limit: more than one machine answers them."
    )
    assert several.hosts_split == 0
    _, page = verdict(
        [dataclasses.replace(each, near_s=each.reference_s, ttl=60 - n) for n, each in enumerate(ONE_BOX)]
    )
    assert "Also seen: The quickest handshakes of 3 hosts differ in the hop limit" in page


@given(
    rate_hz=st.sampled_from((100.0, 250.0, 1000.0)),
    start=st.integers(0, 2**32 - 1),
    seed=st.integers(0, 1000),
    far_s=st.floats(0, 0.3),
)
def test_a_clock_is_found_across_the_turn_of_its_counter(rate_hz, start, seed, far_s):
    chance = np.random.default_rng(seed)
    made = []
    for first_s in (0.0, 0.4):
        sent_s = first_s + np.sort(chance.uniform(0, 3, 12))
        late_s = np.concatenate([[0.0], chance.exponential(0.004, 11)])
        made.append(timestamp_clock([
            (1_700_000_000_000_000_000 + int((s + far_s + d) * 1e9), (start + int(s * rate_hz)) % 2**32)
            for s, d in zip(sent_s, late_s, strict=True)
        ]))  # fmt: skip
    one, other = made
    assert one is not None
    assert other is not None
    assert one.rate_hz == rate_hz
    assert one.is_same(other)
    assert not one.is_same(TimestampClock(rate_hz, one.zero_s + 1.5))
