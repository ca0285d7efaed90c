"""Work over processes: every piece once, whatever dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pepscope.errors import UsageError
from pepscope.processes.workers import WorkerDiedError, over_workers
from pepscope.whole_file import write_whole
from tests.pepscope.processes.clusters import local_cluster

ROOT = Path(__file__).parents[3]


def squared(number: int) -> int:
    if number == 13:
        raise ValueError("thirteen")
    return number * number


def is_imported(name: str) -> bool:
    return name in sys.modules


def killed_by(path: str) -> str:
    """Kills its own process where the file says so: always, or once."""
    place = Path(path)
    word = place.read_text()
    if word == "always":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "once":
        write_whole(place, "no more")  # a SIGTERM meanwhile leaves a whole word
        os.kill(os.getpid(), signal.SIGKILL)
    return word


def test_every_piece_of_work_comes_once_and_failures_are_outcomes() -> None:
    outcomes = dict(over_workers(squared, [1, 13, *range(20, 60)], processes=3, scheduler=None))
    assert sorted(outcomes) == list(range(42))
    assert isinstance(outcomes[1], ValueError)
    assert [outcomes[place] for place in range(2, 42)] == [number * number for number in range(20, 60)]
    assert list(over_workers(squared, [], processes=2, scheduler=None)) == []


def test_the_server_of_processes_imports_before_there_is_work() -> None:
    program = (
        "import sys, time\n"
        "from pepscope.processes.workers import over_workers, start_server\n"
        "from tests.pepscope.processes.test_workers import is_imported\n"
        "if __name__ == '__main__':\n"
        "    start_server(['wave'])\n"
        "    print(sorted(over_workers(is_imported, ['wave', 'aifc'], processes=1, scheduler=None)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[(0, True), (1, False)]\n"


def test_workers_of_a_cluster_must_see_what_they_write_beside(tmp_path: Path) -> None:
    with local_cluster(processes=False) as address:
        (tmp_path / "there").write_text("")
        found = over_workers(squared, [2, 13], processes=1, scheduler=address, shared=tmp_path / "there")
        outcomes = dict(found)
        assert outcomes[0] == 4
        assert isinstance(outcomes[1], ValueError)
        with pytest.raises(UsageError, match="do not see"):
            list(over_workers(squared, [2], processes=1, scheduler=address, shared=tmp_path / "elsewhere"))


def test_workers_that_cannot_start_are_an_error_of_all(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(40)]
    for path in paths:
        path.write_text("always")
    with pytest.raises(WorkerDiedError, match="no worker process starts"):
        list(over_workers(killed_by, [str(path) for path in paths], processes=2, scheduler=None))
    alone = list(over_workers(killed_by, [str(paths[0])], processes=2, scheduler=None))
    assert [type(outcome) for _, outcome in alone] == [WorkerDiedError]


def test_work_that_is_given_up_leaves_no_thread_and_no_process() -> None:
    threads = threading.active_count()
    outcomes = over_workers(time.sleep, [0, *[3600] * 5], processes=2, scheduler=None)
    assert next(outcomes) == (0, None)
    assert threading.active_count() > threads
    outcomes.close()
    assert (threading.active_count(), multiprocessing.active_children()) == (threads, [])


def test_a_worker_that_dies_takes_nothing_with_it(tmp_path: Path) -> None:
    words = ["fine"] * 6 + ["once", "always"] + ["fine"] * 6
    paths = [tmp_path / str(number) for number in range(len(words))]
    for path, word in zip(paths, words, strict=True):
        path.write_text(word)
    found = list(over_workers(killed_by, [str(path) for path in paths], processes=2, scheduler=None))
    assert sorted(place for place, _ in found) == list(range(len(words)))
    outcomes = dict(found)
    assert isinstance(outcomes[7], WorkerDiedError)
    assert outcomes[6] == "no more"
    assert all(outcomes[place] == "fine" for place, word in enumerate(words) if word == "fine")
