"""Every kind of proxy, transparent or asked for, down and up, between the two halves of a live path."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reference_sim.live_path import MIDDLE, SERVER, LiveEmulation, LiveSettings, live_path
from reference_sim.scenario import Scenario
from tests.cases import each_pair
from tests.end_to_end.proxied import TRANSFER, judged, read_truth

PEPSCOPE = str(Path(sysconfig.get_path("scripts")) / "pepscope")
PORT, RAW_PORT, PROXY_PORT, TUNNEL_PORT, REPORT_PORT = 80, 5001, 8888, 9004, 31_000
LENGTH = 1_500_000

CORE = {"kind": "wired", "name": "core", "down": {"rate_bit_s": 50_000_000, "delay_s": 0.01}}
LINK = {"kind": "wired", "name": "cell", "down": {"rate_bit_s": 8_000_000, "delay_s": 0.02, "queue_packets": 100}}
CELL = {
    "kind": "hsdpa",
    "name": "cell",
    "preset": "four-terminals",
    "report_period_s": 0.025,
    "uplink": {"rate_bit_s": 4_000_000},
}
SMALL_BUFFERS = [
    f"{field}=32768"
    for field in (
        "buffer_bytes", "mobile.send_buffer_bytes", "mobile.receive_buffer_bytes", "server.send_buffer_bytes",
        "server.receive_buffer_bytes",
    )
]  # fmt: skip
TRANSPARENT = ["--interception", "transparent", "--device", "pepscope-cell", "--ports", f"{PORT},{RAW_PORT}"]
TRANSPARENT += ["--listen", f"0.0.0.0:{PROXY_PORT}"]
EXPLICIT = ["--listen", f"{MIDDLE[4]}:{PROXY_PORT}", "--allow", "203.0.113.0/24"]
DIVERTING = ["--interception", "destination-transparent", "--ports", f"{PORT},{RAW_PORT}"]
DIVERTING += ["--listen", f"0.0.0.0:{PROXY_PORT}"]

MODES: dict[str, tuple[list[str], str]] = {
    "split": (SMALL_BUFFERS, "split-tcp"),
    "store-and-forward": (["store.pause_s=0.5"], "tcp-proxy"),
    "window-adaptation": (
        [*SMALL_BUFFERS, f"adaptation.reports={MIDDLE[4]}:{REPORT_PORT}", "adaptation.step_s=0.025"],
        "split-tcp",
    ),
    "udp-tunnel": (SMALL_BUFFERS, "split-tcp"),
}


def command(mode: str, where: list[str], settings: list[str], truth: Path | None = None) -> tuple[str, ...]:
    """A proxy, its rules before it where it needs some."""
    words = [PEPSCOPE, "proxy", mode, *where, *(word for setting in settings for word in ("--set", setting))]
    run = shlex.join([*words, *([] if truth is None else ["--truth", str(truth)])])
    rules = f"{shlex.join(words)} --setup && " if "--interception" in where else ""
    return ("sh", "-c", f"{rules}exec {run}")


@contextlib.contextmanager
def path_with(mode: str, directory: Path, middle: tuple[str, ...]) -> Iterator[LiveEmulation]:
    """A path whose middle runs a command, with a server behind it."""
    kind = {"store-and-forward": "store-and-forward-proxy", "window-adaptation": "window-adaptation-proxy"}
    last = CELL if mode == "window-adaptation" else LINK
    scenario = Scenario.from_mapping(
        {
            "name": mode,
            "duration_s": 60,
            "path": [CORE, {"kind": kind.get(mode, "split-proxy"), "name": "proxy"}, last],
            "record": {"taps": [{"name": name, "snap_bytes": 512} for name in ("server", "mobile")]},
        }
    )
    serving = (sys.executable, str(TRANSFER), "serve", SERVER[4], str(PORT), str(RAW_PORT))
    settings = LiveSettings(middle_command=middle, server_command=serving, report_port=REPORT_PORT)
    with live_path(scenario, directory, settings) as emulation:
        yield emulation


def through(mode: str, transparent: bool, direction: str, directory: Path) -> tuple[list[Any], list[dict[str, Any]]]:
    """One transfer through one proxy: verdicts, and the proxy's own truth."""
    settings, _ = MODES[mode]
    truth = directory / "truth.jsonl"
    way, proxy = ("direct", "-") if transparent else ("connect", MIDDLE[4])
    before = ""
    if mode == "udp-tunnel":
        tunnel = f"{MIDDLE[4]}:{TUNNEL_PORT}"
        allowed = ["--allow", "203.0.113.0/24"]
        middle = command(mode, allowed, [*settings, f"tunnel.listen={tunnel}"], truth)
        own = DIVERTING if transparent else ["--listen", f"127.0.0.1:{PROXY_PORT}"]
        end = command(mode, own, ["tunnel.end=client", f"tunnel.server={tunnel}"])
        waiting = f"until ss -Hltn sport = :{PROXY_PORT} | grep -q .; do sleep 0.05; done"
        before = f"({shlex.join(end)} >/dev/null 2>&1 & ) ; {waiting}; "
        proxy = "127.0.0.1"
    else:
        middle = command(mode, TRANSPARENT if transparent else EXPLICIT, settings, truth)
    port = RAW_PORT if mode == "store-and-forward" and not transparent else PORT
    fetching = [sys.executable, str(TRANSFER), "fetch", way, proxy, str(PROXY_PORT), SERVER[4], str(port)]
    with path_with(mode, directory, middle) as emulation:
        assert emulation.run(["sh", "-c", before + shlex.join([*fetching, str(LENGTH), direction])]) == 0
        run = emulation.result()
    return judged(run.captures["server"], run.captures["mobile"]), read_truth(truth)


@pytest.mark.parametrize(("mode", "transparent", "direction"), each_pair([*MODES], [True, False], ["down", "up"]))
def test_the_detector_agrees_with_the_proxys_truth(
    mode: str, transparent: bool, direction: str, tmp_path: Path
) -> None:
    pairs, truth = through(mode, transparent, direction, tmp_path)
    expected = MODES[mode][1]
    assert [line["ending"] for line in truth] == ["finished"]
    assert [line["class"] for line in truth] == [expected]
    # CONNECT asks for a relay, and where the receiver is the slower end its buffers may hold what a store holds.
    buffered = mode == "store-and-forward" and not transparent and direction == "down"
    right = {expected, "split-tcp"} if buffered else {expected}
    (pair,) = pairs
    assert pair["verdict"] in right, json.dumps(pair["reason"])


@pytest.mark.parametrize("direction", ["down", "up"])
def test_the_same_path_without_a_proxy_is_regular(direction: str, tmp_path: Path) -> None:
    with path_with("split", tmp_path, ("true",)) as emulation:
        fetching = [sys.executable, str(TRANSFER), "fetch", "direct", "-", "0", SERVER[4], str(PORT), str(LENGTH)]
        assert emulation.run([*fetching, direction]) == 0
        run = emulation.result()
    (pair,) = judged(run.captures["server"], run.captures["mobile"])
    assert pair["verdict"] == "regular", pair["reason"]
