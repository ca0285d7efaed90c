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


def begun(records: Records, share: float) -> Records:
    """This share of each connection's packets, the first ones."""
    kept = np.zeros(len(records), np.bool_)
    for number in range(records.connections):
        places = np.flatnonzero(records.connection == number)
        kept[places[: int(len(places) * share)]] = True
    return records.take(kept)


def verdicts(run: str, directory: Path, added: int, shares: tuple[float, float] = (1.0, 1.0)) -> list[Verdict]:
    """Of all connections, where the gateway changes three segments of each with so many, and the captures at the client
    and at the server hold these shares of them."""
    pair = Source(str(TESTS / "fresh"), run).read()
    server = pair.records["server"]
    for number in range(server.connections):
        for place in (6, 4, 2):
            data = (server.connection == number) & server.is_up & (server.payload_bytes > 0)
            if data.sum() > 7:
                server = lengthened(server, number, place, added)
    paths = [str(directory / f"{side}.pcap") for side in ("mobile", "server")]
    for path, records, share in zip(paths, (pair.records["mobile"], server), shares, strict=True):
        write(Path(path), begun(records, share), "raw")
    return [found.verdict for found in detect(*paths).pairs]


@pytest.mark.parametrize("added", [1, 3, 9])
@pytest.mark.parametrize("run", REGULAR)
def test_a_gateway_ends_no_connection(run, added, tmp_path):
    assert not any(verdict.is_split for verdict in verdicts(run, tmp_path, added))


@pytest.mark.parametrize("added", [1, 9])
@pytest.mark.parametrize("run", SPLIT)
def test_behind_a_gateway_no_split_looks_regular(run, added, tmp_path):
    assert Verdict.REGULAR not in verdicts(run, tmp_path, added)


@pytest.mark.parametrize("shares", [(0.9, 0.9), (0.8, 0.7), (0.7, 0.8)])
@pytest.mark.parametrize("run", REGULAR)
def test_a_gateway_ends_no_connection_that_captures_show_in_part(run, shares, tmp_path):
    """No FIN shows how long the streams are: packets that kept their identity lie apart."""
    assert not any(verdict.is_split for verdict in verdicts(run, tmp_path, 9, shares))


@pytest.mark.parametrize("shares", [(0.9, 0.9), (0.8, 0.7), (0.7, 0.8)])
@pytest.mark.parametrize("run", SPLIT)
def test_splits_that_captures_show_in_part_stay_splits_behind_a_gateway(run, shares, tmp_path):
    assert all(verdict.is_split for verdict in verdicts(run, tmp_path, 9, shares))
