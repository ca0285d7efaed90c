"""Advertised windows at the sender and at the receiver."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from detector.pair import Vantage
from detector.presentation.telling_packets.rows import rows_of_flows
from detector.presentation.telling_packets.telling import Scene, Telling, counted
from detector.streams.window_course import bulk_direction
from pepscope import _core
from pepscope.captures.packets import Direction

_NEW_DATA_ENDS = partial(_core.data_ends, only_new=True)


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
    found = _core.least_windows(vantage.packets, advertising.value, most)
    return [Telling(vantage, row, f"{whose} a window of {counted(window, 'byte')}") for row, window in found]


def transfer_ends(scenes: Sequence[Scene]) -> list[list[Telling]]:
    """When all was acknowledged to the sender, and when the last bytes reached the receiver."""
    made: list[list[Telling]] = [[] for _ in scenes]
    directions = [scene.direction or bulk_direction(scene.pair) for scene in scenes]
    flows = [(scene.pair, way) for scene, way in zip(scenes, directions, strict=True)]
    senders, receivers = [pair.sender(way) for pair, way in flows], [pair.receiver(way) for pair, way in flows]
    for place, sender, (row, most) in rows_of_flows(_core.furthest_acknowledgements, senders, directions):
        shows = f"acknowledges the last of {counted(most, 'byte')} to the sender"
        made[place].append(Telling(sender, row, shows))
    for place, receiver, (first, last) in rows_of_flows(_NEW_DATA_ENDS, receivers, directions):
        made[place] += [
            Telling(receiver, first, "brings the first bytes to the receiver"),
            Telling(receiver, last, "brings the last new bytes to the receiver"),
        ]
    return made
