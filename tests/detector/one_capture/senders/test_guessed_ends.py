"""Connections from before the capture, whose client and server ports do not tell, but other connections do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from detector.one_capture.columns import vantage_columns
from detector.one_capture.senders.guessed_ends import untimed_from_wrong_ends
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction
from tests.captures.containers import LINK_RAW, Frame, write_pcap
from tests.captures.conversation import START_NS, Conversation, Endpoint
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
    found = untimed_from_wrong_ends(columns, np.asarray([guessed, False]), made)
    assert found.repeated.tolist() == [not counts, False]


@pytest.mark.parametrize("service", ["192.0.2.1", "2001:db8::1"])
def test_another_capture_of_the_vantage_point_shows_who_serves(tmp_path: Path, service: str) -> None:
    host = "2001:db8:1::1" if ":" in service else "10.0.0.1"
    before = Conversation(Endpoint(host, HERE[1], 1), Endpoint(service, SERVICE[1], 77))
    later = Conversation(Endpoint(host, 41000, 5), Endpoint(service, SERVICE[1], 99), START_NS + 60_000_000_000)
    for talk in (before, later.handshake()):
        for said in range(0, 40, 10):
            talk.send(Direction.UP, said, said, b"q" * 10).wait(20).send(Direction.DOWN, said, said + 10, b"a" * 10)
            talk.wait(0.1)
    captures = []
    for number, talk in enumerate((before, later)):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(write_pcap([Frame(each.time_ns, each.packet()) for each in talk.segments], LINK_RAW))
        captures.append(open_capture([str(path)]))
    for order in (captures, captures[::-1]):
        found = vantage_columns(order)
        assert found.columns["client_port"].tolist() == [SERVICE[1] if each is captures[0] else 41000 for each in order]
        of_first = found.capture[found.exchanges.connection] == order.index(captures[0])
        assert of_first.any(), "the connection holds exchanges"
        assert (found.exchanges.repeated == of_first).all()
    assert not vantage_columns(captures[:1]).exchanges.repeated.any(), "nothing tells"
