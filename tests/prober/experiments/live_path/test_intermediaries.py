"""Experiments that look at what intermediaries do, on real kernels: end to end, split, and stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from detector.verdict.weighing import judge
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Verdict
from prober.experiments.abort import Abort
from prober.experiments.cache import Cache
from prober.experiments.dead_port import DeadPort
from prober.experiments.odd_requests import OddRequests
from prober.experiments.options import Options
from prober.experiments.recompress import Recompress
from prober.experiments.transfers import Transfers
from prober.experiments.uplink_buffer import UplinkBuffer
from prober.experiments.window import Window
from prober.measurement.experiment import Experiment
from prober.protocol.application import Application
from tests.prober.experiments.live_path.live import REUSING_HAPROXY, Live

if TYPE_CHECKING:
    pass

#: As little as each rule needs.
HURRIED: dict[str, dict[str, Any]] = {
    "abort": {"size_bytes": 2_000_000, "after_bytes": 200_000, "watch_s": 10.0},
    "cache": {"size_bytes": 20_000, "fetches": 2},
    "odd-requests": {},
    "options": {"size_bytes": 5_000},
    "recompress": {"size_bytes": 60_000},
    "uplink-buffer": {"size_bytes": 600_000, "after_bytes": 50_000, "pause_s": 2.0},
    "window": {"size_bytes": 300_000, "read_bit_s": 2e6},
}
#: Of a split point: less than any of the objects, all buffers together, since what is swallowed whole looks stored.
SMALL_LEGS = tuple(
    word
    for leg in ("mobile.receive", "mobile.send", "server.receive", "server.send")
    for word in ("--set", f"{leg}_buffer_bytes=32768")
)
SPEAKING: tuple[Experiment[Any, Any], ...] = (Abort(), Cache(), OddRequests(), Options(), Recompress())
SILENT: tuple[Experiment[Any, Any], ...] = (UplinkBuffer(), Window())


def measured(path: Live, experiment: Experiment[Any, Any], application: Application = Application.HTTP_DATA) -> Any:
    direction = Direction.UP if experiment.name == "uplink-buffer" else Direction.DOWN
    captured = experiment.name in ("options", "uplink-buffer", "window")
    return path.measure(experiment, application, direction, captured=captured, **HURRIED[experiment.name])


@pytest.mark.parametrize("experiment", SPEAKING, ids=lambda experiment: experiment.name)
def test_end_to_end_has_no_split_findings(path: Live, experiment: Experiment[Any, Any]) -> None:
    expected = {
        "abort": "abort-end-to-end",
        "cache": "every-request-arrived",
        "odd-requests": "requests-arrived-as-sent",
        "options": "handshake-as-sent",
        "recompress": "same-bytes",
    }
    made = measured(path, experiment)
    assert made.findings == [expected[experiment.name]], made


@pytest.mark.parametrize("experiment", SILENT, ids=lambda experiment: experiment.name)
@pytest.mark.parametrize("application", [Application.HTTP_DATA, Application.TCP])
def test_end_to_end_a_slow_end_is_no_split(
    path: Live, experiment: Experiment[Any, Any], application: Application
) -> None:
    made = measured(path, experiment, application)
    assert made.evidence == ()
    assert made.pairs[0].verdict is Verdict.REGULAR, made.pairs[0].reason


def test_a_split_takes_what_an_aborting_mobile_does_not(path: Live) -> None:
    with path.proxy("split", "--set", "buffer_bytes=1000000"):
        aborted, asked = measured(path, Abort()), measured(path, OddRequests())
    assert aborted.findings == ["acknowledged-beyond-abort"], aborted
    assert asked.findings == ["requests-arrived-as-sent"]


def test_a_split_takes_what_a_slow_end_does_not(path: Live) -> None:
    with path.proxy("split", "--set", "buffer_bytes=65536", *SMALL_LEGS):
        uplink, window = measured(path, UplinkBuffer()), measured(path, Window())
    for made in (uplink, window):
        assert made.pairs[0].verdict is Verdict.SPLIT_TCP, made.pairs[0].reason
        found = {item.finding for item in made.pairs[0].evidence}
        assert found & {"sender-ahead", "sender-far-ahead", "window-alternates", "window-open-receiver-behind"}, found


def test_a_leg_that_is_not_closed_outlives_the_abort(path: Live) -> None:
    small = ("--set", "buffer_bytes=16384", "--set", "aborts=never", "--set", "limits.drain_s=0.5", *SMALL_LEGS)
    with path.proxy("split", *small):
        made = path.measure(
            Abort(), direction=Direction.DOWN, size_bytes=2_000_000, after_bytes=200_000, watch_s=3.0, captured=True
        )
    (reported,) = made.facts["aborts"]
    assert reported["server_ending"] == ""
    assert reported["zero_window_probes"], reported


def test_a_proxy_that_reads_http_is_seen_at_its_work(path: Live) -> None:
    with path.proxy("store-and-forward"):
        copies, asked = measured(path, Cache()), measured(path, OddRequests())
        image = measured(path, Recompress(), Application.HTTP_IMAGE)
        text = measured(path, Recompress())
    assert copies.findings == ["served-from-cache", "proxy-header-added"], copies
    assert copies.evidence[0].numbers["kept_though_forbidden"] == 0
    assert "rewritten-headers" in asked.findings
    assert image.findings == text.findings == ["other-bytes", "proxy-header-added"]
    assert "coded with gzip" in text.evidence[0].summary


def test_a_proxy_that_uses_its_connections_again_is_proved_while_the_server_is_silent(path: Live) -> None:
    with path.proxy(REUSING_HAPROXY):
        made = path.measure(DeadPort(), attempts=2, connect_timeout_s=1.5, take_s=1.5)
    assert made.findings[0] == "request-on-older-connection", made
    assert made.evidence[0].numbers["reached_the_server"] >= 1
    assert 0 < made.evidence[0].numbers["older_by_s"] < 60
    assert judge(made.evidence).verdict is Verdict.SPLIT_TCP
    assert all("nonce" not in attempt for attempt in made.measurement.values["attempts"])


def test_a_proxy_that_uses_its_connections_again_is_proved_by_the_log_of_the_server(path: Live) -> None:
    with path.proxy(REUSING_HAPROXY):
        copies = measured(path, Cache())
        moved = path.measure(Transfers(), direction=Direction.UP, sizes_bytes=(5_000,))
    for made in (copies, moved):
        found = {item.finding: item for item in made.evidence}
        assert {"request-on-older-connection", "proxy-header-added"} <= set(found), made
        assert found["proxy-header-added"].numbers["declared_in_requests"] == "x-forwarded-for"
        assert judge(made.evidence).verdict is Verdict.SPLIT_TCP


def test_transfers_end_to_end_carry_no_field_of_an_intermediary(path: Live) -> None:
    for application in (Application.HTTP_DATA, Application.HTTPS):
        for direction in Direction:
            made = path.measure(Transfers(), application, direction, sizes_bytes=(5_000,))
            assert made.evidence == ()
            assert [row["requests_before"] for row in made.measurement.values["arrivals"]] == [0]
