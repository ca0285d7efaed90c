"""Exchanges of which the capture holds no words: they may be TLS handshakes, which a split point may answer itself.

Headers alone (`tcpdump -s 68`) do not show whether a connection speaks TLS. Where it does, its first answers are a
library's: the answer to the hello, and with TLS 1.2 one more. A group whose connections cannot be read therefore has
three readings, one as probable as another: none of the first answers of its connections belongs to a handshake, the
first one does, or the first two do. A port has one protocol, so that all hosts are read alike.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from detector.one_capture.likelihoods.timing_tables import CLASSES, CLOSE, OPENING
from detector.one_capture.members import Ints
from pepscope.captures.exchanges import ExchangeKind, Exchanges

#: How many of the first answers of a connection may belong to a handshake.
MOST_HANDSHAKES = 2

_HANDSHAKE = CLASSES.index("handshake")


def unread_numbers(exchanges: Exchanges, asked: int, rows: Ints) -> Ints:
    """Of these exchanges, which are asked in one direction: which of its connection's each is, from 1, where too little
    of it was captured to be read; 0 where it was read."""
    is_asked = exchanges.asked == asked
    before = np.concatenate([[0], np.cumsum(is_asked)])
    connection = exchanges.connection[rows]
    number = before[rows + 1] - before[np.searchsorted(exchanges.connection, connection)]
    return np.where(exchanges.kind[rows] == ExchangeKind.UNREAD, number, 0)


def reading(kind: Ints, unread: Ints, handshakes: int) -> Ints:
    """The classes of exchanges and closes where so many first answers of connections that cannot be read belong to TLS
    handshakes; `unread` numbers them (`unread_numbers`)."""
    is_handshake: npt.NDArray[np.bool_] = (kind < CLOSE) & (unread > 0) & (unread <= handshakes)
    return np.where(is_handshake, kind - kind % OPENING + _HANDSHAKE, kind)
