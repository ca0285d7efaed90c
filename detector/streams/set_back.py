"""Packets of a connection whose times fall back in its file."""

from __future__ import annotations

from msgspec import Struct

from detector.streams.curves import DOUBTED_STEP_NS, is_clock_set_back, without_backward_steps
from pepscope import _core
from pepscope.captures.packets import PacketColumns


class Continued(Struct, frozen=True):
    """Packets with times that continue, and whether they had fallen back."""

    packets: PacketColumns
    clock_set_back: bool = False


def continued(recorded: PacketColumns) -> Continued:
    """Packets with times that continue where they fall back.

    The reader takes packets in the order of time where their file has another one. What still falls back was captured
    in that order by a clock that was set.
    """
    if not _core.clock_falls(recorded, DOUBTED_STEP_NS):
        return Continued(recorded)
    packets = without_backward_steps(recorded)
    return Continued(packets, packets is not recorded or is_clock_set_back(recorded))
