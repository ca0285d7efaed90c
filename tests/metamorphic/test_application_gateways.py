"""A NAT that changes what some segments say, as gateways for FTP and SIP do, and numbers all that follows anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.metamorphic.pairs import Source
from benchmarks.metamorphic.records import SYN, Records, with_length
from benchmarks.metamorphic.writing import write
from pepscope import detect
from pepscope.results.verdicts import Verdict

TESTS = Path(__file__).parents[1]

REGULAR = ("reg-local", "reg-terminal-nots")
SPLIT = ("spl-localack-terminal", "spl-relay-terminal-nots")


def lengthened(records: Records, number: int, place: int, added: int) -> Records:
    """The client's `place`th segment of data in a connection carries so many bytes more behind its fourth, and the
    sequence numbers of what follows lie higher."""
    here = records.connection == number
    data = here & records.is_up & (records.payload_bytes > 0)
    row = np.flatnonzero(data)[place]
    number_changed, at = int(records.sequence[row]), int(records.header_bytes[row]) + 4
    later = here & (records.flags & SYN == 0)
    is_after = later & records.is_up & (records.sequence > number_changed)
    covers = later & ~records.is_up & (records.acknowledgement > number_changed)
    copies = data & (records.sequence == number_changed)
    renumbered = records.put(records.tcp + 4, 4, records.sequence + added, is_after)
    renumbered = renumbered.put(records.tcp + 8, 4, records.acknowledgement + added, covers)
    bytes_shown = renumbered.data.copy()
    bytes_shown[copies, at + added :] = renumbered.data[copies, at:-added]
    bytes_shown[copies, at : at + added] = ord("1")
    more = np.where(copies, added, 0)
    held = np.minimum(renumbered.held + more, bytes_shown.shape[1])
    return with_length(replace(renumbered, data=bytes_shown, held=held, wire=renumbered.wire + more), copies)


def verdicts(run: str, directory: Path, added: int) -> list[Verdict]:
    """Of all connections, where the gateway changes three segments of each with so many."""
    pair = Source(str(TESTS / "fresh"), run).read()
    server = pair.records["server"]
    for number in range(server.connections):
        for place in (6, 4, 2):
            data = (server.connection == number) & server.is_up & (server.payload_bytes > 0)
            if data.sum() > 7:
                server = lengthened(server, number, place, added)
    paths = [str(directory / f"{side}.pcap") for side in ("mobile", "server")]
    for path, records in zip(paths, (pair.records["mobile"], server), strict=True):
        write(Path(path), records, "raw")
    return [found.verdict for found in detect(*paths).pairs]


@pytest.mark.parametrize("added", [1, 3, 9])
@pytest.mark.parametrize("run", REGULAR)
def test_a_gateway_ends_no_connection(run, added, tmp_path):
    assert not any(verdict.is_split for verdict in verdicts(run, tmp_path, added))


@pytest.mark.parametrize("added", [1, 9])
@pytest.mark.parametrize("run", SPLIT)
def test_behind_a_gateway_no_split_looks_regular(run, added, tmp_path):
    assert Verdict.REGULAR not in verdicts(run, tmp_path, added)
