"""Work over real Dask processes: every piece once, whatever dies."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

import pytest

from pepscope.errors import PepscopeError, UsageError
from pepscope.processes.workers import ClusterLostError, WorkerDiedError, over_workers
from pepscope.processes.workers.cluster import _closing
from tests.pepscope.processes.clusters import Cluster, cluster

#: A scheduler or a worker that starts on a busy machine is waited for so long.
LONG_S = 120

#: Where a scheduler is killed, its clients leave sockets to the collector of garbage.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect them here, where they are no failure: later they would be another test's."""
    yield
    gc.collect()


def logged(path: str) -> str:
    """Says in `path` that it began, waits while `wait` lies beside it unless it is free, and kills its process where
    told to."""
    place = Path(path)
    with place.open("a") as stream:
        stream.write(f"{os.getpid()}\n")
    while (place.parent / "wait").exists() and place.suffix != ".free":
        time.sleep(0.01)
    if place.suffix == ".kills":
        os.kill(os.getpid(), signal.SIGKILL)
    return place.name


def items(directory: Path, names: Sequence[str]) -> list[str]:
    return [str(directory / name) for name in names]


def begun(paths: Sequence[str]) -> Counter[str]:
    """How often the work on each item began."""
    return Counter({Path(path).name: len(Path(path).read_text().split()) for path in paths if Path(path).exists()})


def wait_until(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_work_goes_on_when_a_killed_scheduler_comes_back(tmp_path: Path) -> None:
    paths = items(tmp_path, [str(number) for number in range(12)])
    with cluster(1) as running:
        found = over_workers(logged, paths, processes=1, scheduler=running.address, patience_s=LONG_S)
        outcomes = dict(next(found) for _ in range(3))
        (tmp_path / "wait").touch()
        wait_until(lambda: sum(begun(paths).values()) > len(outcomes))
        running.stop()
        known = dict(outcomes)
        running.start_scheduler()
        running.start_worker()
        (tmp_path / "wait").unlink()
        outcomes |= dict(found)
    assert {place: Path(path).name for place, path in enumerate(paths)} == outcomes
    assert {begun(paths)[str(name)] for name in known.values()} == {1}


def test_a_client_that_looks_for_its_scheduler_while_it_closes_hides_no_loss() -> None:
    """distributed 2026.8 raises this where the scheduler went away just before."""

    class Reconnecting:
        def close(self) -> None:
            raise RuntimeError("ConnectionPool is closed")

    with pytest.raises(ConnectionAbortedError), _closing(Reconnecting()):
        raise ConnectionAbortedError


def test_a_scheduler_that_stays_away_is_one_sentence(tmp_path: Path) -> None:
    paths = items(tmp_path, ["0.free", *map(str, range(1, 12))])
    (tmp_path / "wait").touch()
    with cluster(1) as running:
        # Its worker has to start within the patience, too.
        wait_until(lambda: running.workers() == 1)
        found = over_workers(logged, paths, processes=1, scheduler=running.address, patience_s=2)
        next(found)
        running.stop()
        with pytest.raises(ClusterLostError, match="went away and did not come back within 2 s") as raised:
            list(found)
    assert "\n" not in str(raised.value)
    with pytest.raises(UsageError, match="no Dask scheduler"):
        list(over_workers(logged, paths, processes=1, scheduler=running.address))


def test_killed_workers_lose_nothing_and_what_kills_them_is_named(tmp_path: Path) -> None:
    paths = items(tmp_path, [*map(str, range(6)), "6.kills", *map(str, range(7, 12))])
    with cluster(3) as running, running.kept_at(3):
        found = over_workers(logged, paths, processes=1, scheduler=running.address, patience_s=LONG_S)
        outcomes: dict[int, object] = dict(found)
    assert isinstance(outcomes.pop(6), WorkerDiedError)
    assert outcomes == {place: Path(path).name for place, path in enumerate(paths) if place != 6}


def test_a_cluster_that_lost_its_workers_is_one_sentence(tmp_path: Path) -> None:
    paths = items(tmp_path, ["0", "1.kills", "2"])
    with cluster(1) as running:
        wait_until(lambda: running.workers() == 1)
        with pytest.raises(ClusterLostError, match="has had no workers for 3 s"):
            list(over_workers(logged, paths, processes=1, scheduler=running.address, patience_s=3))


@pytest.mark.parametrize("changed", ["scheduler's distributed", "worker's distributed", "worker's pepscope"])
def test_another_version_is_one_sentence(changed: str, tmp_path: Path) -> None:
    who, module = changed.split("'s ")
    other = (module, "0.0.7")
    running = Cluster()
    try:
        running.start_scheduler(other if who == "scheduler" else None)
        running.start_worker(other if who == "worker" else None)
        with pytest.raises(PepscopeError) as raised:
            list(
                over_workers(logged, items(tmp_path, ["0"]), processes=1, scheduler=running.address, patience_s=LONG_S)
            )
    finally:
        running.stop()
    here = metadata.version(module)
    assert f"the {who} at " in str(raised.value)
    assert f"has {module} 0.0.7, here it is {here}" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not begun(items(tmp_path, ["0"]))
