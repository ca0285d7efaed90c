"""Several captures of one vantage point as one table of columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.metamorphic.records import records_of
from benchmarks.metamorphic.writing import write
from detector.one_capture.columns import VantageColumns, vantage_columns
from pepscope.captures.capture import open_capture
from pepscope.captures.exchanges import ANSWERED_BEFORE, Exchanges
from tests.captures.containers import read_capture
from tests.detector.one_capture.real_networks import named


def of(*paths: Path) -> VantageColumns:
    return vantage_columns([open_capture(str(path)) for path in paths])


def test_several_captures_equal_their_concatenation(tmp_path: Path) -> None:
    """Connections that do not overlap in time stand in both in one order."""
    every = records_of(read_capture(named("umts-nat.server").path), {})
    begins = np.asarray([every.time_ns[every.connection == n].min() for n in range(every.connections)])
    early = begins[every.connection] < np.median(begins)
    for name, part in (("early", every.take(early)), ("late", every.take(~early)), ("whole", every)):
        write(tmp_path / name, part, "raw")
    parts, whole = of(tmp_path / "early", tmp_path / "late"), of(tmp_path / "whole")
    places = np.argsort(parts.columns["first_time_ns"], kind="stable")
    wanted = np.argsort(whole.columns["first_time_ns"], kind="stable")
    assert len(places) == len(wanted) == every.connections
    for name, column in whole.columns.items():
        if name != "id":
            np.testing.assert_array_equal(parts.columns[name][places], column[wanted], err_msg=name)
    assert parts.capture.tolist() == sorted(parts.capture.tolist())
    assert [parts.clients[n] for n in places] == [whole.clients[n] for n in wanted]
    assert [parts.servers[n] for n in places] == [whole.servers[n] for n in wanted]
    number = {int(of_parts): int(of_whole) for of_parts, of_whole in zip(places, wanted, strict=True)}
    for mine, its in ((parts.exchanges, whole.exchanges), (parts.exchanges.round_trips, whole.exchanges.round_trips)):
        assert len(mine) == len(its) > 0
        renumbered = np.asarray([number[int(row)] for row in mine.connection])
        order, other = np.lexsort((mine.asked, renumbered)), np.lexsort((its.asked, its.connection))
        for name in mine.__struct_fields__:
            if name not in ("connection", "round_trips"):
                np.testing.assert_array_equal(getattr(mine, name)[order], getattr(its, name)[other], err_msg=name)


@pytest.mark.parametrize("step_ns", [1_000, 1_000_000])
def test_times_that_count_frames_time_nothing(step_ns: int, tmp_path: Path) -> None:
    every = records_of(read_capture(named("umts-nat.server").path), {})
    counted = replace(every, time_ns=every.time_ns.min() + np.arange(len(every)) * step_ns)
    write(tmp_path / "counted", counted, "raw")
    write(tmp_path / "but one", replace(counted, time_ns=counted.time_ns + 7 * (counted.connection == 3)), "raw")
    assert of(tmp_path / "counted").exchanges.repeated.all()
    assert not of(tmp_path / "but one").exchanges.repeated.all()


@pytest.mark.parametrize("packets", [24, 48])
def test_one_connection_whose_ends_lie_at_whole_steps_is_timed(packets: int, tmp_path: Path) -> None:
    every = records_of(read_capture(named("umts-nat.server").path), {})
    (long, *_) = [each for each in np.unique(every.connection) if np.count_nonzero(every.connection == each) >= packets]
    rows = np.flatnonzero(every.connection == long)[:packets]
    one = every.take(rows)
    last_ns = one.time_ns[0] + (one.time_ns[-1] - one.time_ns[0]) // (packets - 1) * (packets - 1)
    write(tmp_path / "one", replace(one, time_ns=np.append(one.time_ns[:-1], last_ns)), "raw")
    assert not of(tmp_path / "one").exchanges.repeated.all()


@pytest.mark.parametrize("stood", [True, False])
def test_times_that_stood_are_told_from_those_of_one_machine(stood: bool, tmp_path: Path) -> None:
    """On one machine round trips may take a microsecond, but not all of a conversation's packets."""
    every = records_of(read_capture(named("umts-nat.server").path), {})
    after_ns = every.time_ns - every.time_ns.min()
    times_ns = np.where(every.connection == 0, np.arange(len(every)) * 1_000, after_ns) if stood else after_ns // 20_000
    write(tmp_path / "changed", replace(every, time_ns=every.time_ns.min() + times_ns // 1_000 * 1_000), "raw")
    found = of(tmp_path / "changed").exchanges
    assert not found.repeated.all()
    assert (found.round_trips.handshake_ns == ANSWERED_BEFORE).any() == stood


def test_one_capture_is_read_as_it_is() -> None:
    found = of(named("umts-nat.server").path)
    assert isinstance(found.exchanges, Exchanges)
    assert set(found.capture.tolist()) == {0}
    assert len(found.clients) == len(found.servers) == len(found.capture)
    assert int(found.exchanges.connection.max()) < len(found.capture)
    assert len(found.senders) == 2 * len(found.capture)
