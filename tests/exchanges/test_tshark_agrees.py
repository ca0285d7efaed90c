"""Exchanges of real connections against tshark: times of questions and answers, kinds of handshakes, round trips."""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from pepscope.captures.capture import Capture, open_capture
from pepscope.captures.exchanges import EXCHANGE_KINDS, ExchangeKind, Exchanges, exchanges_of
from tests.exchanges.tshark_exchanges import Frame, handshake_exchanges, least_plain_round_trips, tshark_frames

CAPTURES = Path(__file__).parent
NAMES = ("tls-handshakes", "server-behind-relay", "browser-before-relay")


@dataclass(frozen=True)
class Read:
    """One capture as both read it."""

    frames: list[Frame]
    capture: Capture

    def rows(self) -> dict[tuple[int, bool, int, int], int]:
        """Place of each exchange, by connection, asker, question and answer."""
        found = self.capture.exchanges()
        columns = (found.connection, found.asked == 1, found.question_ns, found.answered_ns)
        keys = zip(*(column.tolist() for column in columns), strict=True)
        return {key: place for place, key in enumerate(keys)}


@pytest.fixture(scope="module", params=NAMES)
def read(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Read:
    plain = tmp_path_factory.mktemp("captures") / f"{request.param}.pcap"
    plain.write_bytes(lzma.decompress((CAPTURES / f"{request.param}.pcap.xz").read_bytes()))
    return Read(tshark_frames(plain), open_capture(str(plain)))


def test_questions_and_answers_are_those_of_tshark(read: Read) -> None:
    wanted, rows = handshake_exchanges(read.frames), read.rows()
    found = read.capture.exchanges()
    kinds = {
        (stream, server, question_ns, answered_ns): kind for stream, server, kind, question_ns, answered_ns in wanted
    }
    assert kinds.keys() <= rows.keys()
    # Where both spoke at once, only what acknowledges the other whole is an answer, and tshark's runs end there.
    assert all(found.crossed[rows[key]] for key in rows.keys() - kinds.keys())
    assert len(kinds) >= 79
    for key, kind in kinds.items():
        if kind is not None:
            assert EXCHANGE_KINDS[found.kind[rows[key]]] == kind, key


def test_round_trips_are_those_of_tshark(read: Read) -> None:
    table = read.capture.exchanges().round_trips
    known = table.least_ns >= 0
    keys = zip(table.connection[known].tolist(), (table.asked[known] == 1).tolist(), strict=True)
    assert dict(zip(keys, table.least_ns[known].tolist(), strict=True)) == least_plain_round_trips(read.frames)


def test_handshake_times_are_those_of_the_summaries(read: Read) -> None:
    table, columns = read.capture.exchanges().round_trips, read.capture.connection_columns()
    handshakes = table.handshake_ns.reshape(-1, 2)
    for way, name in enumerate(("handshake_syn_ack_ns", "handshake_ack_ns")):
        timed_once = handshakes[:, way] >= 0
        assert timed_once.mean() > 0.9
        assert np.array_equal(handshakes[timed_once, way], columns[name][timed_once])


def test_one_connection_gives_the_same_as_all(read: Read) -> None:
    whole = read.capture.exchanges()
    for connection in read.capture.connections:
        of_connection = read.capture.packets(connection.id), read.capture.payload(connection.id)
        alone = exchanges_of(*of_connection, connection.server_port)
        of_it = whole.connection == connection.id
        for name in ("asked", "kind", "strict", "answered_ns", "answer_bytes", "round_trip_ns"):
            assert np.array_equal(getattr(alone, name), getattr(whole, name)[of_it]), name


def _opened(name: str) -> tuple[Capture, Exchanges]:
    capture = open_capture(str(CAPTURES / f"{name}.pcap.xz"))
    return capture, capture.exchanges()


def test_strict_exchanges_show_the_hidden_leg_and_what_is_not_causal_is_left_out() -> None:
    """The relay's near leg takes 15 ms; the client behind it is 40 ms further."""
    _, found = _opened("server-behind-relay")
    strict = found.strict & (found.asked == 1) & ~found.repeated
    assert np.count_nonzero(strict) >= 12
    assert found.gap_ns[strict].min() > 40_000_000
    assert found.round_trip_ns[strict].max() < 20_000_000
    # A browser sends its requests without waiting for tickets and settings.
    _, browser = _opened("browser-before-relay")
    assert np.count_nonzero(browser.kind == ExchangeKind.TLS_CONTROL) > 10
    assert not browser.strict[browser.kind == ExchangeKind.TLS_CONTROL].any()


def test_every_handshake_is_recognised_though_packets_were_cut() -> None:
    for name in NAMES:
        capture, found = _opened(name)
        ports = capture.connection_columns()["server_port"]
        encrypted = {number for number, port in enumerate(ports) if port in {443, 8443, 4431, 4432, 4433}}
        asked = {
            kind: set(found.connection[(found.kind == kind) & (found.asked == way)].tolist())
            for way, kind in ((0, ExchangeKind.TLS_HELLO), (1, ExchangeKind.TLS_FINISHED))
        }
        spoke = encrypted & set(found.connection.tolist())
        assert asked[ExchangeKind.TLS_HELLO] == spoke, name
        assert asked[ExchangeKind.TLS_FINISHED] <= spoke
        assert len(asked[ExchangeKind.TLS_FINISHED]) >= 0.6 * len(spoke), name
