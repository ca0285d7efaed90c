"""Connections whose beginning a capture lacks, so that which end is the client was guessed by the ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from detector.one_capture.members import Ints
from detector.one_capture.networks import address_numbers
from pepscope.captures.exchanges import Exchanges

#: Bits of a port.
_PORT_BITS = 16


def untimed_from_wrong_ends(
    columns: Mapping[str, npt.NDArray[Any]], guessed: npt.NDArray[np.bool_], exchanges: Exchanges
) -> Exchanges:
    """The exchanges; none times an answer of connections whose client was `guessed` where others show a server.

    Other connections show one by a SYN-ACK from the same address and port. Services on ports of the range that systems
    give to clients (32768 and more) are such, and judged from the wrong end they are held against what servers do.
    """
    if not guessed.any():
        return exchanges
    clients, servers = _end_points(columns)
    served = servers[columns["handshake_syn_ack_ns"] >= 0]
    swapped = guessed & np.isin(clients, served) & ~np.isin(servers, served)
    return replace(exchanges, repeated=exchanges.repeated | swapped[exchanges.connection])


def _end_points(columns: Mapping[str, npt.NDArray[Any]]) -> Ints:
    """A number for address and port: of the clients, and of the servers."""
    place, _ = address_numbers(np.concatenate([columns[f"{end}_address"] for end in ("client", "server")]))
    port = np.concatenate([columns[f"{end}_port"] for end in ("client", "server")]).astype(np.int64)
    numbers: Ints = (place.astype(np.int64) << _PORT_BITS | port).reshape(2, -1)
    return numbers
