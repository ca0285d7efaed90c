"""Active experiments on real kernels: address translation, firewalls and raised hop limits are no split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from detector.verdict.weighing import judge
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Verdict
from prober.experiments.delayed_ack import DelayedAck
from prober.experiments.ttl_syn import TtlSyn
from prober.measurement.experiment import Experiment
from tests.prober.experiments.live_path.live import HTTP_PORT, Live
from tests.prober.experiments.live_path.short_options import BOTH_WAYS, HURRIED, INTACT, NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pepscope.results.verdicts import Evidence

TRANSLATION = "-t nat -A POSTROUTING -o pepscope-wired -j MASQUERADE"
NO_ICMP = "-A OUTPUT -p icmp -j DROP"


@pytest.mark.parametrize(
    ("experiment", "rule"), [(TtlSyn(), TRANSLATION), (TtlSyn(), NO_ICMP), (DelayedAck(), TRANSLATION)]
)
def test_address_translation_and_silent_routers(path: Live, experiment: Experiment[Any, Any], rule: str) -> None:
    direction = Direction.UP if experiment.name == "delayed-ack" else None
    with path.rules(rule):
        made = path.measure_until_found(experiment, direction=direction, captured=True, **HURRIED[experiment.name])
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
        made = syn_proxy.measure_until_found(
            experiment, direction=direction, captured=is_captured, **HURRIED[experiment.name]
        )
        findings[name] = made.findings
        evidence += made.evidence
    assert findings["dead-port-both"] == ["dead-port-answered"]
    assert findings["handshake-rtt-both"] == ["handshake-shorter-than-path"]
    assert findings["delayed-ack-up"] == findings["delayed-ack-down"] == ["acks-only-from-receiver"]
    assert findings["slow-reader-down"] == ["no-more-taken-than-receiver-holds"]
    handshakes = [item for item in evidence if item.finding.startswith(("handshake", "dead-port"))]
    assert judge(handshakes).verdict is Verdict.INCONCLUSIVE
    assert judge(evidence).verdict in (Verdict.INCONCLUSIVE, Verdict.REGULAR)


def test_captures_show_a_time_to_live_that_a_middlebox_raised(path: Live) -> None:
    raised = f"-t mangle -A PREROUTING -i pepscope-cell -p tcp --dport {HTTP_PORT} -j TTL --ttl-set 64"
    with path.rules(raised):
        blind = path.measure(TtlSyn(), **HURRIED["ttl-syn"])
        seeing = path.measure(TtlSyn(), captured=True, **HURRIED["ttl-syn"])
    assert blind.findings == ["handshake-answered-nearer"]
    assert judge(blind.evidence).verdict is Verdict.INCONCLUSIVE
    assert seeing.findings == []
