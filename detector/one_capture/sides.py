"""Which ends of its connections a capture is far from: there a hidden leg may be, and there exchanges are timed.

At a host's own interface one end answers within the time that a kernel takes, and only the other one's answers say
anything. In between (a router, a gateway) both stretches of the path can be judged, each by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from detector.one_capture.likelihoods.timing_tables import Floats
from pepscope.results.verdicts import GroupSide

#: An end that answers sooner than this is the capture's own host, or stands beside it.
OWN_HOST_S = 0.0005

#: So is one that answers within this share of the other end's time.
OWN_SHARE = 0.1


def judged_sides(columns: Mapping[str, npt.NDArray[Any]], taken_at: GroupSide | None) -> tuple[GroupSide, ...]:
    """The sides to judge by the connections' summaries (`Capture.connection_columns`), or as the user says.

    `CLIENT`: the capture was taken near the clients, and judged is what lies between it and the servers; `SERVER` the
    other way round. Both where the capture lies in between, none where it has no connection.
    """
    if taken_at is not None:
        return (taken_at,)
    if not len(columns["first_time_ns"]):
        return ()
    to_server_s = _typical_s(columns["handshake_syn_ack_ns"], columns["up_round_trip_time_min_ns"])
    to_client_s = _typical_s(columns["handshake_ack_ns"], columns["down_round_trip_time_min_ns"])
    if np.isnan(to_server_s) or np.isnan(to_client_s):
        return _by_one_end(to_client_s, to_server_s)
    near, far = sorted((to_client_s, to_server_s))
    if near < max(OWN_HOST_S, OWN_SHARE * far):
        return (GroupSide.CLIENT,) if to_client_s <= to_server_s else (GroupSide.SERVER,)
    return GroupSide.CLIENT, GroupSide.SERVER


def _by_one_end(to_client_s: float, to_server_s: float) -> tuple[GroupSide, ...]:
    """Where only one end's answers were seen: the end that takes longer than a kernel is the far one."""
    known_s, far, near = (
        (to_server_s, GroupSide.CLIENT, GroupSide.SERVER)
        if np.isnan(to_client_s)
        else (to_client_s, GroupSide.SERVER, GroupSide.CLIENT)
    )
    if np.isnan(known_s):
        return GroupSide.CLIENT, GroupSide.SERVER
    return (far,) if known_s >= OWN_HOST_S else (near,)


def _typical_s(handshake_ns: npt.NDArray[np.int64], data_ns: npt.NDArray[np.int64]) -> float:
    """The middle of the connections' least times to one end, which is -1 where it was not seen."""
    times = np.where((handshake_ns < 0) | ((data_ns >= 0) & (data_ns < handshake_ns)), data_ns, handshake_ns)
    known: Floats = times[times >= 0] / 1e9
    if not len(known):
        return float("nan")
    # As np.median, which imports masked arrays first.
    middle = [(len(known) - 1) // 2, len(known) // 2]
    return float(np.partition(known, middle)[middle].mean())
