"""DNS queries and QUIC packets as references: well formed for Wireshark, and deaf to all but their answers."""

from __future__ import annotations

import socket
import struct
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.host import reference_datagrams
from prober.host.reference_datagrams import dns_question, least_dns_s, least_quic_s, quic_question

if TYPE_CHECKING:
    from pathlib import Path

QUESTIONS = {"dns": dns_question, "quic": quic_question}


def version_negotiation(asked: bytes) -> bytes:
    """What a server that knows QUIC's first version answers (RFC 9000, section 17.2.1)."""
    far, near = asked[6:14], asked[15:23]
    return b"\x80" + bytes(4) + b"\x08" + near + b"\x08" + far + struct.pack("!I", 1)


def dns_answer(asked: bytes) -> bytes:
    return asked[:2] + b"\x81\x80" + asked[4:]


ANSWERS = {"dns": dns_answer, "quic": version_negotiation}


def test_wireshark_reads_them(tmp_path: Path):
    capture = tmp_path / "asked.pcap"
    records = b""
    quic = quic_question().data
    for number, (port, data, is_answer) in enumerate(
        ((53, dns_question().data, False), (443, quic, False), (443, version_negotiation(quic), True))
    ):
        ports = (port, 40_000 + port) if is_answer else (40_000 + port, port)
        udp = struct.pack("!HHHH", *ports, 8 + len(data), 0) + data
        ends = (b"\x0a\0\0\x02", b"\x0a\0\0\x01") if is_answer else (b"\x0a\0\0\x01", b"\x0a\0\0\x02")
        packet = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, *ends) + udp
        records += struct.pack("<IIII", number, 0, len(packet), len(packet)) + packet
    capture.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101) + records)
    fields = ("dns.qry.type", "dns.qry.name", "quic.version", "quic.supported_version", "_ws.malformed")
    wanted = [word for field in fields for word in ("-e", field)]
    shown = subprocess.run(
        ["tshark", "-r", str(capture), "-d", "udp.port==443,quic", "-T", "fields", *wanted],
        capture_output=True, text=True, check=True, timeout=600,
    ).stdout.rstrip("\n").split("\n")  # fmt: skip
    query, asked, answered = (line.split("\t") for line in shown)
    assert query[:2] == ["2", "<Root>"]
    assert int(asked[2], 16) == 0x1A2A3A4A
    assert (int(answered[2], 16), int(answered[3], 16)) == (0, 1)
    assert [line[4] for line in (query, asked, answered)] == ["", "", ""]
    assert len(quic) == 1_200


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_server_is_timed_and_silence_is_not_waited_for_twice(monkeypatch, kind):
    asked: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        monkeypatch.setattr(reference_datagrams, f"_{kind.upper()}_PORT", server.getsockname()[1])
        thread = threading.Thread(target=_answer, args=(server, ANSWERS[kind], asked), daemon=True)
        thread.start()
        least = {"dns": least_dns_s, "quic": least_quic_s}[kind]
        after_s = least("127.0.0.1", 3, 60.0)
        server.sendto(b"", server.getsockname())
        thread.join(60)
        assert after_s is not None
        assert 0 < after_s < 60
        assert len(asked) == 3
        assert least("127.0.0.1", 3, 0.05) is None
        assert server.recv(4096)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.recv(4096)


def _answer(server: socket.socket, answer, asked: list[bytes]) -> None:
    while True:
        data, where = server.recvfrom(4096)
        if not data:
            return
        asked.append(data)
        server.sendto(b"something else", where)
        server.sendto(answer(data), where)


@pytest.mark.parametrize("kind", QUESTIONS)
@given(data=st.binary(max_size=64))
def test_only_an_answer_is_one(kind, data):
    question = QUESTIONS[kind]()
    assert question.is_answer(ANSWERS[kind](question.data))
    assert not question.is_answer(data)
    assert not question.is_answer(question.data)
    assert not question.is_answer(ANSWERS[kind](QUESTIONS[kind]().data)) or kind == "dns"
