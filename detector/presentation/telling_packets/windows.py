"""Advertised windows at the sender and at the receiver."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detector.pair import Vantage
from detector.presentation.telling_packets.rows import flow_rows
from detector.presentation.telling_packets.telling import Scene, Telling, counted, strongest
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


def transfer_ends(scenes: Sequence[Scene]) -> list[list[Telling]]:
    """When all was acknowledged to the sender, and when the last bytes reached the receiver."""
    made: list[list[Telling]] = [[] for _ in scenes]
    directions = [scene.direction or bulk_direction(scene.pair) for scene in scenes]
    flows = [(scene.pair, way) for scene, way in zip(scenes, directions, strict=True)]
    for place, sender, rows in flow_rows([pair.sender(way) for pair, way in flows], directions):
        if rows.last_acknowledging is not None:
            most = counted(rows.acknowledged_bytes, "byte")
            shows = f"acknowledges the last of {most} to the sender"
            made[place].append(Telling(sender, rows.last_acknowledging, shows))
    for place, receiver, rows in flow_rows([pair.receiver(way) for pair, way in flows], directions):
        if rows.first_new is not None and rows.last_new is not None:
            made[place] += [
                Telling(receiver, rows.first_new, "brings the first bytes to the receiver"),
                Telling(receiver, rows.last_new, "brings the last new bytes to the receiver"),
            ]
    return made
