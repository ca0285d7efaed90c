"""Active experiments on real kernels: each tells the truth with and without a split, and each trap fools none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from detector.verdict import judge
from pepscope.packets import Direction
from pepscope.results import Kind
from prober.experiment import Application, Experiment
from prober.experiments.dead_port import DeadPort
from prober.experiments.delayed_ack import DelayedAck
from prober.experiments.handshake_rtt import HandshakeRtt
from prober.experiments.slow_reader import SlowReader
from prober.experiments.ttl_syn import TtlSyn
from tests.prober.experiments.live import CELL_S, HAPROXY, HTTP_PORT, HTTPS_PORT, WIRED_S, Live, live

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pepscope.results import Evidence

#: As little as each rule needs.
HURRIED: dict[str, dict[str, Any]] = {
    "ttl-syn": {"rounds": 4, "most_hops": 4, "timeout_s": 0.6},
    "dead-port": {"attempts": 1, "connect_timeout_s": 1.2, "take_s": 1.0},
    "handshake-rtt": {"rounds": 10, "pause_s": 0.01},
    "delayed-ack": {"size_bytes": 60_000, "least_delay_s": 0.4},
    "slow-reader": {"fill_s": 1.0, "pause_s": 3.0},
}

INTACT = {
    "ttl-syn": "handshake-answered-at-the-end",
    "dead-port": "dead-port-silent",
    "handshake-rtt": "handshake-as-long-as-path",
    "delayed-ack": "acks-only-from-receiver",
    "slow-reader": "no-more-taken-than-receiver-holds",
}
SPLIT = {
    "ttl-syn": ["handshake-answered-nearer"],
    "dead-port": ["dead-port-took-data"],
    "handshake-rtt": ["handshake-shorter-than-path"],
    "delayed-ack": ["acks-not-from-receiver", "acks-sooner-than-path"],
    "slow-reader": ["more-taken-than-receiver-holds"],
}
BOTH_WAYS: tuple[tuple[Experiment, Direction | None], ...] = (
    (TtlSyn(), None),
    (DeadPort(), None),
    (HandshakeRtt(), None),
    (DelayedAck(), Direction.DOWN),
    (DelayedAck(), Direction.UP),
    (SlowReader(), Direction.DOWN),
)
NAMES = [
    f"{experiment.name}-{direction.name.lower() if direction is not None else 'both'}"
    for experiment, direction in BOTH_WAYS
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("live")) as made:
        yield made


@pytest.fixture(scope="module")
def split(path: Live) -> Iterator[Live]:
    with path.proxy("split", ports=f"{HTTP_PORT},{HTTPS_PORT}"):
        yield path


@pytest.mark.parametrize(("experiment", "direction"), BOTH_WAYS, ids=NAMES)
def test_an_end_to_end_connection(path: Live, experiment: Experiment, direction: Direction | None) -> None:
    made = path.measure(experiment, direction=direction, **HURRIED[experiment.name])
    assert made.findings == [INTACT[experiment.name]], made


@pytest.mark.parametrize("application", [Application.FTP, Application.HTTPS])
@pytest.mark.parametrize("experiment", [DelayedAck(), SlowReader(), DeadPort(), HandshakeRtt()], ids=lambda e: e.name)
def test_every_application_end_to_end(path: Live, experiment: Experiment, application: Application) -> None:
    direction = Direction.DOWN if experiment.name in ("delayed-ack", "slow-reader") else None
    made = path.measure(experiment, application, direction, **HURRIED[experiment.name])
    assert made.findings == [INTACT[experiment.name]], made


UPLOADS = [Application.HTTP_DATA, Application.HTTPS, Application.TCP]


@pytest.mark.parametrize("application", UPLOADS)
def test_an_upload_whose_reader_pauses(path: Live, application: Application) -> None:
    made = path.measure(SlowReader(), application, Direction.UP, **HURRIED["slow-reader"])
    assert made.findings == ["no-more-taken-than-receiver-holds"], made


def test_captures_say_the_same_as_kernels_of_held_acknowledgements(path: Live) -> None:
    made = path.measure(DelayedAck(), direction=Direction.UP, captured=True, **HURRIED["delayed-ack"])
    (evidence,) = made.evidence
    assert (evidence.method, evidence.finding) == ("delayed_ack", "acks-only-from-receiver")
    assert evidence.numbers["round_trip_min_s"] >= made.measurement.ack_delay_s - 0.002
    assert evidence.numbers["path_round_trip_s"] == pytest.approx(2 * (WIRED_S + CELL_S), rel=0.5)


TRANSLATION = "-t nat -A POSTROUTING -o pepscope-wired -j MASQUERADE"
NO_ICMP = "-A OUTPUT -p icmp -j DROP"


@pytest.mark.parametrize(
    ("experiment", "rule"), [(TtlSyn(), TRANSLATION), (TtlSyn(), NO_ICMP), (DelayedAck(), TRANSLATION)]
)
def test_address_translation_and_silent_routers(path: Live, experiment: Experiment, rule: str) -> None:
    direction = Direction.UP if experiment.name == "delayed-ack" else None
    with path.rules(rule):
        made = path.measure(experiment, direction=direction, captured=True, **HURRIED[experiment.name])
    assert made.findings == [INTACT[experiment.name]], made


@pytest.fixture
def syn_proxy(path: Live) -> Iterator[Live]:
    """netfilter's own: it answers SYNs in the server's stead, and then only translates sequence numbers."""
    path.in_middle("sysctl -qw net.netfilter.nf_conntrack_tcp_loose=0")
    to = f"-i pepscope-cell -p tcp --dport {HTTP_PORT}"
    with path.rules(
        f"-t raw -A PREROUTING {to} --syn -j CT --notrack",
        f"-A FORWARD {to} -m state --state INVALID,UNTRACKED -j SYNPROXY --sack-perm --timestamp --wscale 7 --mss 1460",
        "-A FORWARD -m state --state INVALID -j DROP",
    ):
        yield path


def test_a_firewall_that_answers_handshakes_is_no_split(syn_proxy: Live) -> None:
    findings: dict[str, list[str]] = {}
    evidence: list[Evidence] = []
    for (experiment, direction), name in zip(BOTH_WAYS, NAMES, strict=True):
        is_captured = experiment.name == "delayed-ack"
        made = syn_proxy.measure(experiment, direction=direction, captured=is_captured, **HURRIED[experiment.name])
        findings[name] = made.findings
        evidence += made.evidence
    assert findings["dead-port-both"] == ["dead-port-answered"]
    assert findings["handshake-rtt-both"] == ["handshake-shorter-than-path"]
    assert findings["delayed-ack-up"] == findings["delayed-ack-down"] == ["acks-only-from-receiver"]
    assert findings["slow-reader-down"] == ["no-more-taken-than-receiver-holds"]
    handshakes = [item for item in evidence if item.finding.startswith(("handshake", "dead-port"))]
    assert judge(handshakes).verdict is Kind.INCONCLUSIVE
    assert judge(evidence).verdict in (Kind.INCONCLUSIVE, Kind.REGULAR)


def test_a_time_to_live_that_is_raised_on_the_way_is_told_by_captures(path: Live) -> None:
    raised = f"-t mangle -A PREROUTING -i pepscope-cell -p tcp --dport {HTTP_PORT} -j TTL --ttl-set 64"
    with path.rules(raised):
        blind = path.measure(TtlSyn(), **HURRIED["ttl-syn"])
        seeing = path.measure(TtlSyn(), captured=True, **HURRIED["ttl-syn"])
    assert blind.findings == ["handshake-answered-nearer"]
    assert judge(blind.evidence).verdict is Kind.INCONCLUSIVE
    assert seeing.findings == []


@pytest.mark.parametrize(("experiment", "direction"), [(DelayedAck(), Direction.DOWN), (SlowReader(), Direction.DOWN)])
def test_a_split_by_haproxy(path: Live, experiment: Experiment, direction: Direction) -> None:
    with path.proxy(HAPROXY):
        made = path.measure(experiment, direction=direction, **HURRIED[experiment.name])
    assert made.findings == SPLIT[experiment.name], made


def test_a_slow_link_carries_an_echo_as_fast_as_a_handshake(tmp_path: Path) -> None:
    """At 20 kbit/s each byte more takes 0.4 ms more, each way."""
    with live(tmp_path, cell_s=0.01, cell_rate_bit_s=20_000) as slow:
        made = slow.measure(HandshakeRtt(), **HURRIED["handshake-rtt"])
    assert made.findings == ["handshake-as-long-as-path"], made


def test_losses_and_timeouts_that_strike_before_acknowledgements_do_fool_none(tmp_path: Path) -> None:
    """The mobile's first retransmission timeout, from a handshake of 0.2 s, is far below T: it sends again in vain."""
    with live(tmp_path, cell_s=0.08, loss=0.02) as lossy:
        held = lossy.measure(DelayedAck(), direction=Direction.UP, captured=True, **HURRIED["delayed-ack"])
        stopped = lossy.measure(SlowReader(), direction=Direction.DOWN, **HURRIED["slow-reader"])
    assert held.measurement.ack_delay_s >= 0.7
    assert held.findings == ["acks-only-from-receiver"], held
    assert stopped.findings == ["no-more-taken-than-receiver-holds"], stopped


@pytest.mark.parametrize(("experiment", "direction"), BOTH_WAYS, ids=NAMES)
def test_a_split_connection(split: Live, experiment: Experiment, direction: Direction | None) -> None:
    made = split.measure(experiment, direction=direction, **HURRIED[experiment.name])
    assert made.findings == SPLIT[experiment.name], made


@pytest.mark.parametrize("application", UPLOADS[:2])
def test_an_upload_that_somebody_else_takes(split: Live, application: Application) -> None:
    made = split.measure(SlowReader(), application, Direction.UP, **HURRIED["slow-reader"])
    assert made.findings == ["more-taken-than-receiver-holds"], made


def test_the_free_port_beside_a_split_one(split: Live) -> None:
    for experiment in (TtlSyn(), DeadPort()):
        made = split.measure(experiment, Application.TCP, **HURRIED[experiment.name])
        assert made.findings == [INTACT[experiment.name]], made


ROOTLESS = """
applications = ["http-data"]
[experiments.delayed-ack]
size_bytes = 60_000
least_delay_s = 0.4
[experiments.slow-reader]
fill_s = 1.0
pause_s = 3.0
[experiments.ttl-syn]
rounds = 4
timeout_s = 0.6
[experiments.dead-port]
attempts = 1
"""


def test_without_root_a_split_is_found_all_the_same(split: Live) -> None:
    run = split.audit_without_root(ROOTLESS)
    assert [(cell["direction"], cell["verdict"]) for cell in run["cells"]] == [
        ("down", "split-tcp"),
        ("up", "split-tcp"),
    ]
    found = {(cell["direction"], item["finding"]) for cell in run["cells"] for item in cell["evidence"]}
    taken = {(direction, "more-taken-than-receiver-holds") for direction in ("down", "up")}
    assert taken | {("up", "acks-not-from-receiver")} <= found
    (missing,) = run["not_measured"]
    assert (missing["experiment"], missing["direction"]) == ("delayed-ack", "down")
    assert "root" in missing["reason"]


def test_captures_show_the_split_while_acknowledgements_are_held(split: Live) -> None:
    made = split.measure(DelayedAck(), direction=Direction.DOWN, captured=True, **HURRIED["delayed-ack"])
    assert made.findings == SPLIT["delayed-ack"], made
    assert [evidence.numbers["ack_delay_s"] for evidence in made.evidence] == [
        pytest.approx(made.measurement.ack_delay_s)
    ] * 2
    assert made.facts["acknowledged_on_the_way_without_split"] == 0
