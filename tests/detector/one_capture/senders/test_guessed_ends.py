"""Connections from before the capture, whose client and server ports do not tell, but other connections do."""

from __future__ import annotations

import numpy as np
import pytest

from detector.one_capture.senders.guessed_ends import with_ends_as_others
from tests.detector.one_capture.made_exchanges import Asked, Trips, addresses, exchanges

HERE, SERVICE = ("10.0.0.1", 44732), ("192.0.2.1", 50052)


@pytest.mark.parametrize(("shaken", "other", "guessed", "counts"), [
    (True, SERVICE, True, False),
    (False, SERVICE, True, True),  # a SYN that nothing answers shows no server
    (True, ("192.0.2.1", 50053), True, True),
    (True, SERVICE, False, True),  # the SYN of the connection itself was captured
])  # fmt: skip
def test_an_end_that_serves_others_is_no_client(
    shaken: bool, other: tuple[str, int], guessed: bool, counts: bool
) -> None:
    """The first connection's ends are taken for each other; the second one's are known."""
    columns = {"handshake_syn_ack_ns": np.asarray([-1, 1000 if shaken else -1])}
    for end, ends in (("client", [SERVICE, ("10.0.0.1", 41000)]), ("server", [HERE, other])):
        columns[f"{end}_address"] = addresses([host for host, _ in ends])
        columns[f"{end}_port"] = np.asarray([port for _, port in ends], np.uint16)
    made = exchanges([Asked(0, 30.0, 20.0), Asked(1, 30.0, 20.0)], [Trips(20.0)] * 2, [Trips(20.0)] * 2, connections=2)
    found = with_ends_as_others(columns, np.asarray([guessed, False]), made)
    assert found.repeated.tolist() == [not counts, False]
