"""What the paper leaves open of figs 8 and 11, one thing changed at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PERIOD = "path[3].down.rates.period_s"
RATES = "path[3].down.rates"
#: Of section 5.1: packets that wait at the Node-B.
BUFFER_PACKETS = 15
#: Rates of 25-175 %: of 89.26 packets of 500 bytes a second, and up to 7168 bits in 2 ms.
STRONG_BIT_S = (89_260, 624_820)
FAST_BIT_S = (512_000, 3_584_000)
FASTER = "up to 3.6 Mbit/s"
LONG_STEPS = "steps of 25 ms"
#: With so many packets of buffer the law has room for what three steps at those rates bring.
LARGE_BUFFER_PACKETS = 200
#: Ts below half of the shortest period, as the paper asks for, and that of section 5.1; the law's d follows the delay.
STEP_S, LONG_STEP_S = 0.005, 0.025
#: delta Ts of section 5.1.
APPROACH_A_STEP = 0.875
DELAY_S = 0.02
SCHEMES = ("i-tcp", "adaptation")

_LEG = {"maximum_segment_size_bytes": 460, "timestamps": False}
_SERVER_LEG = {**_LEG, "sack": False, "receive_buffer_bytes": 65_536}
_PATIENT_TIMER = {"retransmission_timeout_minimum_s": 1.0, "retransmission_timeout_maximum_s": 60.0}


def fast_link(
    scheme: str,
    *,
    rates_bit_s: tuple[int, int] = STRONG_BIT_S,
    buffer_packets: int = BUFFER_PACKETS,
    delay_s: float = DELAY_S,
    frames_a_packet: int = 1,
    service: str = "exact",
    least_timer_s: float = 0.2,
    step_s: float = STEP_S,
) -> Mapping[str, Any]:
    """Values over the scenario `ren-lin-fast-link`; `scheme` is `tcp`, `i-tcp` or `adaptation`."""
    frames = frames_a_packet * buffer_packets
    values: dict[str, Any] = {
        f"{RATES}.low_bit_s": rates_bit_s[0],
        f"{RATES}.high_bit_s": rates_bit_s[1],
        "path[3].down.radio_frame_bytes": 500 if frames_a_packet == 1 else 40,
        "path[3].down.queue_frames": frames,
        "path[3].down.service": service,
        "path[2].down.delay_s": delay_s,
        "path[3].reports.period_s": step_s,
    }
    if scheme == "tcp":
        return {**values, "server.retransmission_timeout_minimum_s": least_timer_s}
    proxy: dict[str, Any] = {"name": "proxy", "buffer_bytes": 65_536, "server_leg": _SERVER_LEG}
    if scheme == "i-tcp":
        leg = {"control": "reno", "recovery": "new-reno", "initial_window_segments": 2, "sack": False}
        proxy |= {
            "kind": "split-proxy",
            "mobile_leg": {**_LEG, **leg, "retransmission_timeout_minimum_s": least_timer_s},
        }
    else:
        control = {
            "frames_per_packet": frames_a_packet,
            "reference_frames": frames / 2,
            "buffer_frames": frames,
            "step_s": step_s,
            "approach_per_s": APPROACH_A_STEP / step_s,
            "delay_steps": -int(-delay_s // step_s),
            "allows_wrong_parameters": True,
        }
        leg = {**_LEG, **_PATIENT_TIMER, "recovery": "rack"}
        proxy |= {"kind": "window-adaptation-proxy", "control": control, "mobile_leg": leg}
        values["mobile.sack"] = True
    return {**values, "path[1]": proxy}


_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "as chosen": {},
    "frames of 40 bytes": {"frames_a_packet": 13},
    "7 packets of buffer": {"buffer_packets": 7},
    "30 packets of buffer": {"buffer_packets": 30},
    "50 ms more": {"delay_s": DELAY_S + 0.05},
    "75 ms more": {"delay_s": DELAY_S + 0.075},
    "175 ms more": {"delay_s": DELAY_S + 0.175},
    "rates of 0-200 %": {"rates_bit_s": (0, 714_080)},
    "four times the rates": {"rates_bit_s": (4 * STRONG_BIT_S[0], 4 * STRONG_BIT_S[1])},
    FASTER: {"rates_bit_s": FAST_BIT_S},
    f"{FASTER}, 30 packets of buffer": {"rates_bit_s": FAST_BIT_S, "buffer_packets": 30},
    f"{FASTER}, 60 packets of buffer": {"rates_bit_s": FAST_BIT_S, "buffer_packets": 60},
    f"{FASTER}, {LARGE_BUFFER_PACKETS} packets of buffer": {
        "rates_bit_s": FAST_BIT_S,
        "buffer_packets": LARGE_BUFFER_PACKETS,
    },
    "frozen service": {"service": "frozen"},
}
#: Values by "scheme, change"; steps are the law's alone, the least timer I-TCP's.
CHOICES: Mapping[str, Mapping[str, Any]] = {
    **{f"{scheme}, {name}": fast_link(scheme, **change) for name, change in _CHANGES.items() for scheme in SCHEMES},
    f"adaptation, {LONG_STEPS}": fast_link("adaptation", step_s=LONG_STEP_S),
    f"adaptation, {FASTER}, {LONG_STEPS}": fast_link("adaptation", rates_bit_s=FAST_BIT_S, step_s=LONG_STEP_S),
    f"adaptation, {FASTER}, 60 packets of buffer, {LONG_STEPS}": fast_link(
        "adaptation", rates_bit_s=FAST_BIT_S, buffer_packets=60, step_s=LONG_STEP_S
    ),
    "i-tcp, timers of 1 s and more": fast_link("i-tcp", least_timer_s=1.0),
}
