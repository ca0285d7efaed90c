"""Vantages whose client and server were guessed in the wrong order."""

from __future__ import annotations

import numpy as np

from detector.pair import Vantage
from pepscope.captures.packets import Direction


def swap_guessed_sides(first: Vantage, second: Vantage) -> tuple[Vantage, Vantage]:
    """Exchange client and server in the vantage whose sides were guessed."""
    if first.connection.side_guessed:
        return _with_sides_swapped(first), second
    return first, _with_sides_swapped(second)


def _with_sides_swapped(vantage: Vantage) -> Vantage:
    """The same connection with client and server exchanged."""
    old = vantage.connection
    connection = old._replace(
        client_address=old.server_address,
        client_port=old.server_port,
        server_address=old.client_address,
        server_port=old.client_port,
        tunnel_up=old.tunnel_down,
        tunnel_down=old.tunnel_up,
        up=old.down,
        down=old.up,
    )
    packets = vantage.packets.replaced(direction=vantage.packets.direction ^ np.uint8(1))
    payload = {direction: vantage.payload[direction.reverse] for direction in Direction}
    return Vantage(vantage.capture, connection, packets, payload, vantage.clock_set_back)
