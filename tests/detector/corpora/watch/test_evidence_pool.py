"""The window of evidence: what leaves it, what stays of too much, and what a file of it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from detector.corpora.watch.evidence_pool import MOST_EXCHANGES, Evidence, EvidencePool, evidence_of, thinned
from detector.corpora.watch.state_file import read_state, write_state
from detector.one_capture.columns import joined_vantages, selected, vantage_columns
from detector.one_capture.networks import NetworkTable
from pepscope.captures.capture import open_capture
from pepscope.captures.direction import Direction
from pepscope.captures.exchanges import ExchangeKind
from pepscope.errors import UsageError
from tests.detector.corpora.watch.cut_captures import SPLIT
from tests.detector.one_capture.made_exchanges import Asked
from tests.detector.one_capture.made_vantages import Talk, vantage

TABLE = NetworkTable()
VANTAGE = replace(vantage_columns([open_capture(str(SPLIT))]), captures=())
CONNECTIONS = len(VANTAGE.capture)
FIRST_NS, LAST_NS = (int(getattr(VANTAGE.columns["last_time_ns"], name)()) for name in ("min", "max"))


def to_ports(ports: Sequence[int]) -> Evidence:
    """The capture's connections, over and over, to these ports one after the other."""
    many = joined_vantages([VANTAGE] * (len(ports) // CONNECTIONS + 1))
    no_references = np.zeros(len(many.references), np.bool_)
    some = selected(many, np.arange(len(ports)), no_references)
    columns = {**some.columns, "server_port": np.asarray(ports, some.columns["server_port"].dtype)}
    return evidence_of(replace(some, columns=columns), 1)


def counts(evidence: Evidence) -> Counter[int]:
    return Counter(evidence.vantage.columns["server_port"].tolist())


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6), most=st.integers(1, 150)
)  # fmt: skip
@settings(deadline=None, max_examples=60)
def test_of_too_much_each_group_keeps_equally_much(sizes: list[int], most: int) -> None:
    ports = [1000 + number for number, size in enumerate(sizes) for _ in range(size)]
    kept = counts(thinned(to_ports(ports), most, TABLE))
    assert sum(kept.values()) <= most or sum(sizes) <= most
    if sum(sizes) <= most:
        assert kept == Counter(ports)
    elif len(sizes) <= most:
        largest = max(kept.values())
        # Whoever has less than the others has all that it had; and no room is left for one more of each.
        assert all(kept[1000 + number] in (largest, size) for number, size in enumerate(sizes))
        assert sum(min(size, largest + 1) for size in sizes) > most


def test_connections_without_exchanges_go_first() -> None:
    of_ten = selected(VANTAGE, np.arange(10), np.ones(len(VANTAGE.references), np.bool_)).exchanges
    exchanges = replace(of_ten, round_trips=VANTAGE.exchanges.round_trips)
    to_one_port = {**VANTAGE.columns, "server_port": np.full(CONNECTIONS, 80)}
    made = evidence_of(replace(VANTAGE, exchanges=exchanges, columns=to_one_port), 3)
    timed = np.bincount(made.vantage.exchanges.connection, minlength=CONNECTIONS) > 0
    assert timed[:10].all()
    assert not timed[10:].any()
    left = thinned(made, 10, TABLE)
    assert set(left.vantage.columns["client_port"]) == set(VANTAGE.columns["client_port"][:10])


def test_what_ended_before_the_window_leaves() -> None:
    pool = EvidencePool(1, 1000, TABLE)
    pool.add(evidence_of(VANTAGE, 1), LAST_NS)
    recent = int((VANTAGE.columns["last_time_ns"] >= LAST_NS - 10**9).sum())
    assert 0 < len(pool) == recent < CONNECTIONS
    pool.add(None, FIRST_NS)  # a file that comes late does not move the window back
    assert len(pool) == recent
    pool.add(None, max(LAST_NS, int(VANTAGE.references.asked_ns.max())) + 10**9 + 1)
    assert len(pool) == 0
    assert pool.evidence is not None
    assert not len(pool.evidence.vantage.references)


def test_of_a_connection_with_very_many_exchanges_some_stay() -> None:
    first = np.flatnonzero(VANTAGE.exchanges.connection == 0)
    rows = np.concatenate([np.repeat(first, 200), np.flatnonzero(VANTAGE.exchanges.connection > 0)])
    columns = {
        name: getattr(VANTAGE.exchanges, name)[rows]
        for name in VANTAGE.exchanges.__struct_fields__
        if name != "round_trips"
    }
    made = evidence_of(replace(VANTAGE, exchanges=replace(VANTAGE.exchanges, **columns)), 1)
    before = np.bincount(VANTAGE.exchanges.connection)
    after = np.bincount(made.vantage.exchanges.connection)
    assert after[0] == MOST_EXCHANGES < 200 * before[0]
    assert np.array_equal(after[1:], before[1:])
    assert set(made.vantage.exchanges.question_ns) == set(VANTAGE.exchanges.question_ns)


def test_what_asks_for_a_proxy_stays_however_much_follows() -> None:
    """A proxy that wants a password refuses the first CONNECT."""
    kinds = [ExchangeKind.HTTP_REQUEST, ExchangeKind.PROXY_CONNECT] + [ExchangeKind.TURN] * (3 * MOST_EXCHANGES)
    asked = [Asked(0, 20.3, 20.0, kind, Direction.UP, 1000.0 * place) for place, kind in enumerate(kinds)]
    made = evidence_of(vantage([Talk(port=3128, more=asked)], at_client=True), 1)
    assert made.vantage.declared.asks.all()


def test_a_state_gives_the_evidence_back(tmp_path: Path) -> None:
    path, made = tmp_path / "state", evidence_of(VANTAGE, 1)
    assert read_state(path, "eth0") == ({}, None)
    write_state(path, "eth0", {"files": {"a": [1]}}, made)
    source, found = read_state(path, "eth0")
    assert source == {"files": {"a": [1]}}
    assert found is not None
    assert np.array_equal(found.rank, made.rank)
    for name, column in made.vantage.columns.items():
        assert np.array_equal(found.vantage.columns[name], column)
    assert np.array_equal(found.vantage.exchanges.answered_ns, made.vantage.exchanges.answered_ns)
    assert np.array_equal(found.vantage.exchanges.round_trips.least_ns, made.vantage.exchanges.round_trips.least_ns)
    assert np.array_equal(found.vantage.senders.option_kinds, made.vantage.senders.option_kinds)
    assert np.array_equal(found.vantage.references.asked_ns, made.vantage.references.asked_ns)
    with pytest.raises(UsageError, match=r"is of eth0, not of eth1: give each source its own$"):
        read_state(path, "eth1")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"\x93NUMPY", b"text"])
def test_what_is_no_state_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"cannot be read .*: remove it to begin anew"):
        read_state(path, "eth0")


def test_a_state_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_state(tmp_path / "state", "eth0", {}, None)
    monkeypatch.setattr("pepscope.__version__", "9.9")
    with pytest.raises(UsageError, match=r"is of pepscope 0\.1\.0: remove it"):
        read_state(tmp_path / "state", "eth0")
