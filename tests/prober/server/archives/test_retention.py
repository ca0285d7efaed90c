"""Which archives the rules delete, and that no clock that is set has a say in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.errors import ServerError
from prober.server.archives.retention import DAY_S, overdue
from prober.server.archives.running_time import RunningTime
from prober.server.archives.stored_archive import ArchiveRecord
from prober.server.settings import RetentionTable, ServerSettings


def record(number: int, client: str = "alice", size_bytes: int = 100, received_s: float = 0.0) -> ArchiveRecord:
    return ArchiveRecord(
        schema=1, client=client, sha256=f"{number:064x}", size_bytes=size_bytes, name="run.zip", number=number,
        # By the time of day the later ones came first: the rules must not look at it.
        received_unix_s=2_000_000_000 - number, received_running_s=received_s, network="192.0.2.0/24",
    )  # fmt: skip


def deleted(records: list[ArchiveRecord], running_s: float = 0.0, **rules: float) -> list[int]:
    return [each.number for each, _ in overdue(records, RetentionTable(**rules), running_s)]  # type: ignore[arg-type]


def test_without_rules_nothing_is_deleted() -> None:
    assert deleted([record(number) for number in range(50)], 1e9) == []


def test_age_is_counted_in_running_time() -> None:
    records = [record(1, received_s=0.0), record(2, received_s=5 * DAY_S)]
    assert deleted(records, 6.9 * DAY_S, days=7) == []
    assert deleted(records, 7.1 * DAY_S, days=7) == [1]
    assert deleted(records, 13 * DAY_S, days=7) == [1, 2]


def test_of_each_client_the_latest_stay() -> None:
    records = [record(number, "alice" if number % 2 else "bob") for number in range(8, 0, -1)]
    assert sorted(deleted(records, client_archives=3)) == [1, 2]
    assert sorted(deleted(records, client_bytes=250)) == [1, 2, 3, 4]
    assert sorted(deleted(records, client_archives=0)) == list(range(1, 9))


def test_a_client_that_uploads_a_lot_deletes_nothing_of_the_others() -> None:
    records = [record(1, "bob"), *(record(number, "alice") for number in range(2, 30))]
    assert deleted(records, total_bytes=1000) == list(range(2, 21))


@given(
    sizes=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1000), st.floats(0, 100)), max_size=30),
    days=st.none() | st.floats(1, 50),
    total=st.none() | st.integers(0, 5000),
    count=st.none() | st.integers(0, 5),
    own=st.none() | st.integers(0, 3000),
)
def test_what_stays_obeys_all_rules_and_nothing_more_goes(sizes, days, total, count, own) -> None:
    records = [
        record(number, client, size, received * DAY_S)
        for number, (client, size, received) in enumerate(sorted(sizes, key=lambda item: item[2]))
    ]
    rules = RetentionTable(days=days, total_bytes=total, client_archives=count, client_bytes=own)
    gone = [each for each, _ in overdue(records, rules, 100 * DAY_S)]
    assert len({each.number for each in gone}) == len(gone)
    kept = [each for each in records if each not in gone]
    assert days is None or all(100 * DAY_S - each.received_running_s <= days * DAY_S for each in kept)
    assert total is None or sum(each.size_bytes for each in kept) <= total
    for client in "abc":
        mine = [each for each in kept if each.client == client]
        assert count is None or len(mine) <= count
        assert own is None or sum(each.size_bytes for each in mine) <= own
        others = [each.number for each in gone if each.client == client]
        assert not mine or not others or max(others) < min(each.number for each in mine), "the oldest of a client go"
    if (days, total, count, own) == (None,) * 4:
        assert gone == []


def test_running_time_goes_on_from_where_the_last_server_stopped(tmp_path: Path) -> None:
    now = [1000.0]
    first = RunningTime(tmp_path, lambda: now[0])
    now[0] += 90.0
    assert first() == 90.0
    first.store()
    assert not (tmp_path / "running-time").exists(), "not due yet"
    now[0] += 300.0
    first.store()
    now[0] += 10.0
    # Killed: what was not stored is lost. The host starts again, and its clock with it.
    now[0] = 5.0
    second = RunningTime(tmp_path, lambda: now[0])
    assert second() == 390.0
    now[0] = 4.0
    assert second() == 390.0, "never back"
    now[0] = 25.0
    second.store(now=True)
    assert RunningTime(tmp_path, lambda: now[0])() == 410.0


@pytest.mark.parametrize("content", ["", "-5", "1e9", "x" * 200, "٣"])
def test_a_damaged_running_time_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "running-time").write_text(content)
    (tmp_path / "running-time").chmod(0o600)
    with pytest.raises(ServerError, match="running-time must h"):
        RunningTime(tmp_path)


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ({"days": 0}, r"^retention.days must be a number between 1e-06 and 1e\+06, got 0$"),
        ({"hours": 1}, r"^retention.hours is not a field; fields of retention are client_archives, .*, total_bytes$"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rules: dict[str, float], sentence: str) -> None:
    with pytest.raises(ServerError, match=sentence):
        ServerSettings.from_mapping({"retention": rules})
