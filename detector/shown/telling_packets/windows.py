"""Advertised windows at the sender and at the receiver."""

from __future__ import annotations

import numpy as np

from detector.pair import Vantage
from detector.shown.telling_packets.rows import acknowledging_rows, first_copies
from detector.shown.telling_packets.telling import Scene, Telling, counted, strongest
from detector.streams.window_course import bulk_direction
from pepscope.captures.packets import Direction, TcpFlag

_SPECIAL = int(TcpFlag.SYN | TcpFlag.RST)


def shut_and_open(scene: Scene) -> list[Telling]:
    """The least windows that the sender was shown, and the least one that the receiver advertised."""
    direction = scene.direction or bulk_direction(scene.pair)
    made = []
    for vantage, most, whose in (
        (scene.pair.sender(direction), scene.most, "shows the sender"),
        (scene.pair.receiver(direction), 1, "advertises, as the receiver's least,"),
    ):
        if vantage is not None:
            made += _least(vantage, direction.reverse, most, whose)
    return made


def _least(vantage: Vantage, advertising: Direction, most: int, whose: str) -> list[Telling]:
    packets = vantage.packets
    rows = np.flatnonzero((packets.direction == advertising) & ((packets.flags & _SPECIAL) == 0))
    windows = packets.window_bytes[rows]
    return [
        Telling(vantage, int(rows[place]), f"{whose} a window of {counted(int(windows[place]), 'byte')}")
        for place in strongest(-windows.astype(np.float64), most)
    ]


def transfer_ends(scene: Scene) -> list[Telling]:
    """When all was acknowledged to the sender, and when the last bytes reached the receiver."""
    direction = scene.direction or bulk_direction(scene.pair)
    sender, receiver = scene.pair.sender(direction), scene.pair.receiver(direction)
    made = []
    if sender is not None and len(rows := sender.derived(acknowledging_rows, direction)):
        most = counted(int(sender.packets.acknowledgement_offset[rows[-1]]), "byte")
        made.append(Telling(sender, int(rows[-1]), f"acknowledges the last of {most} to the sender"))
    if receiver is not None and len(rows := receiver.derived(first_copies, direction)):
        made += [
            Telling(receiver, int(rows[0]), "brings the first bytes to the receiver"),
            Telling(receiver, int(rows[-1]), "brings the last new bytes to the receiver"),
        ]
    return made
