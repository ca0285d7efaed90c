"""Uploads to hosts that read slowly: what a small buffer takes is no middlebox's, what it cannot take is."""

from __future__ import annotations

import socket
import threading

import pytest

from pepscope.errors import UsageError
from prober.check.experiment import Asked, PlaceObservation, PortMaterial
from prober.check.experiments.slow_reader import UPLOAD_BYTES, SlowReaderUpload, SlowUpload
from prober.check.finding import Says
from prober.check.given import Given, SlowReader, read_slow_reader
from prober.check.probes.distances import Distance

EXPERIMENT = SlowReaderUpload()
BUFFER_BYTES = 32_768


def uploaded(buffer_bytes: int, read_all: bool):
    """An upload to a host that reads nothing, or everything at once; the user says that it reads 1 kB/s."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        server.bind(("127.0.0.1", 0))
        server.listen()
        given = Given(slow_reader=SlowReader("127.0.0.1", server.getsockname()[1], 1_000, buffer_bytes))
        ended = threading.Event()
        reader = threading.Thread(target=_read, args=(server, read_all, ended), daemon=True)
        reader.start()
        (place,) = EXPERIMENT.subjects((), given)
        measured = EXPERIMENT.measure(Asked(place, Distance.unknown(), given))
        ended.set()
        reader.join(60)
    assert measured is not None
    observation = PlaceObservation(place, Distance.unknown(), {EXPERIMENT.name: measured})
    return measured, list(EXPERIMENT.examine(PortMaterial(4, place.target.port, [observation])))


def _read(server: socket.socket, read_all: bool, ended: threading.Event) -> None:
    link, _ = server.accept()
    with link:
        try:
            while read_all and link.recv(65_536):
                pass
        except OSError:
            return
        ended.wait(120)


def test_what_a_buffer_takes_is_no_middleboxs(monkeypatch):
    monkeypatch.setattr("prober.check.experiments.slow_reader._WATCH_S", 1.5)
    measured, findings = uploaded(BUFFER_BYTES, read_all=False)
    assert 0 < measured.looks[-1][1] < 200_000
    assert findings == []


def test_what_nobody_there_can_have_taken_is():
    measured, (finding,) = uploaded(BUFFER_BYTES, read_all=True)
    assert measured.looks[-1][1] >= UPLOAD_BYTES
    assert (finding.name, finding.says) == ("acknowledged-beyond-the-reader", Says.SPLIT)
    assert finding.numbers["acknowledged_beyond_bytes"] > 800_000


def test_a_quick_reader_is_believed():
    quick = SlowUpload(((0.0, 0), (0.5, 500_000), (1.0, 1_000_000)), 1_000_000, 0)
    assert quick.most_beyond_bytes <= 0


def test_readers_are_read():
    assert read_slow_reader("h.example:9:20000:65536") == SlowReader("h.example", 9, 20_000, 65_536)
    assert read_slow_reader("[2001:db8::1]:9:20000:0").host == "2001:db8::1"
    for bad in ("", "h:9", "h:0:1:1", "h:9:nan:1", ":9:1:1", "h:9:1:-1", "h:x:1:1"):
        with pytest.raises(UsageError, match="slow-reader must be"):
            read_slow_reader(bad)
