"""Hu's two parameter sets as values over the scenario `hu-umts-regular`, which has no proxy at `path[1]`."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

BASE = "hu-umts-regular"
RATE = "path[2].down.rate_bit_s"
SIZE = "traffic[0].page_bytes"
LOSS = "path[0].down.loss.probability"
BLOCK_ERRORS = "path[2].down.block_error_rate"
#: Sendings of a PDU, MaxDAT + 1.
SENDINGS = "path[2].radio_link_control.maximum_transmissions"

RATES_BIT_S = (64_000, 128_000, 256_000, 384_000)
WINDOWS = (3, 5, 10)

#: Files a run; the paper gives a mean time between them and no number.
FILES = 20
THINK_TIME_S = 30.0

_RENO: Mapping[str, Any] = {
    "control": "reno",
    "recovery": "reno",
    "initial_slow_start_threshold_bytes": 32768,
    "timestamps": False,
    "sack": False,
    "limited_transmit": False,
    "retransmission_timeout_initial_s": 3.0,
    "retransmission_timeout_minimum_s": 1.0,
    "retransmission_timeout_maximum_s": 60.0,
}

#: The first table of the slides, also the paper's table 1: segments of 536 bytes, one at first, 100 ms each way.
FIRST_TABLE: Mapping[str, Any] = {
    "server.maximum_segment_size_bytes": 536,
    "mobile.maximum_segment_size_bytes": 536,
    "server.initial_window_segments": 1,
    "path[0].down.delay_s": 0.1,
    "path[0].up.delay_s": 0.1,
    "path[0].down.loss.probability": 0.0,
    "path[2].down.delay_s": 0.015,  # RLC round trip of 50 ms, below the prohibit time of 60 ms
    "path[2].radio_link_control.status_prohibit_s": 0.06,
    "path[2].radio_link_control.unreported_is_lost_after_s": 0.05,
}

#: A radio link with a round trip of 0.4 s, after which a PDU that no report names counts as lost.
FAR_RADIO: Mapping[str, Any] = {
    "path[2].down.delay_s": 0.2,
    "path[2].up.delay_s": 0.2,
    "path[2].radio_link_control.unreported_is_lost_after_s": 0.4,
}

#: The second table of the slides is the scenario's own.
SECOND_TABLE: Mapping[str, Any] = {}


def split(window: int, *, segment_bytes: int = 1460, buffer_bytes: int = 65536) -> dict[str, Any]:
    """A split proxy at the gateway whose sender to the mobile starts with `window` segments."""
    server_leg = {
        "receive_buffer_bytes": 65535,
        "window_scale": -1,
        "timestamps": False,
        "sack": False,
        "delayed_acknowledgement_segments": 1,
        "maximum_segment_size_bytes": segment_bytes,
    }
    mobile_leg = {**_RENO, "initial_window_segments": window, "maximum_segment_size_bytes": segment_bytes}
    proxy = {"kind": "split-proxy", "name": "gateway", "buffer_bytes": buffer_bytes}
    return {"path[1]": {**proxy, "server_leg": server_leg, "mobile_leg": mobile_leg}}


def ftp(page_bytes: int, *, files: int = FILES) -> dict[str, Any]:
    """Files that are asked for at exponential intervals, each on a connection of its own, finished or not."""
    source = random.Random(f"hu/{page_bytes}")
    start_s, entries = 0.0, []
    for _ in range(files):
        entries.append({"kind": "download", "bytes": page_bytes, "start_s": round(start_s, 6)})
        start_s += source.expovariate(1.0 / THINK_TIME_S)
    return {"traffic": entries}
