"""Work by parts: the same results from one process and from several, and what happens where a process fails."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest

from pepscope.errors import PepscopeError
from pepscope.processes.parts import by_parts


@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 7, 300])
def test_parts_come_in_order_and_cover_every_place(jobs: int, count: int) -> None:
    places = [3 * place for place in range(count)]
    found = list(by_parts(lambda part: [(place, os.getpid()) for place in part], places, jobs))
    assert [place for part, _ in found for place in part] == places
    assert [place for _, made in found for place, _ in made] == places
    if jobs > 1 and count > jobs:
        assert os.getpid() not in {process for _, made in found for _, process in made}


@pytest.mark.parametrize(
    ("count", "jobs", "fewest", "sizes"),
    [
        (160, 1, 1, {20}),  # eight parts
        (160, 1, 50, {54, 52}),  # three even parts
        (160, 1, 1000, {80}),  # two parts all the same
        (160, 2, 1000, {40}),
        (5000, 1, 3000, {1667, 1666}),
        (5000, 2, 3000, {1000}),  # even ones: no process waits long for the last
        (1, 4, 10, {1}),
    ],
)
def test_parts_are_small_only_where_they_are_worth_it(count: int, jobs: int, fewest: int, sizes: set[int]) -> None:
    found = by_parts(len, range(count), jobs, fewest_places=fewest)
    assert {made for _, made in found} == sizes


@pytest.mark.parametrize("jobs", [1, 3])
def test_an_error_of_the_work_is_raised_here(jobs: int) -> None:
    def work(part: Sequence[int]) -> int:
        if 40 in part:
            raise PepscopeError("the captures ended")
        return len(part)

    with pytest.raises(PepscopeError, match="the captures ended"):
        list(by_parts(work, range(100), jobs))


def test_a_process_that_is_killed_is_one_sentence() -> None:
    def work(part: Sequence[int]) -> int:
        if 40 in part:
            os.kill(os.getpid(), signal.SIGKILL)
        return len(part)

    with pytest.raises(PepscopeError, match="ended with signal 9: give it more memory, or use one job"):
        list(by_parts(work, range(100), 2))


@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.parametrize("stretches", [[], [300], [100, 1, 199], [7] * 40])
def test_a_stretch_is_the_work_of_one_process(jobs: int, stretches: list[int]) -> None:
    places = range(sum(stretches))
    found = list(by_parts(lambda part: [(place, os.getpid()) for place in part], places, jobs, stretches))
    made = [each for _, part in found for each in part]
    assert [place for place, _ in made] == [place for part, _ in found for place in part] == list(places)
    begin = 0
    for length in stretches:
        assert len({process for _, process in made[begin : begin + length]}) == 1
        begin += length
    assert all(len(part) <= max(1, len(places) // (8 * jobs)) for part, _ in found)


@pytest.mark.parametrize("to_be_had", [0, 1])
def test_work_is_done_by_the_processes_that_are_to_be_had(to_be_had: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fork = os.fork
    started: list[int] = []

    def limited() -> int:
        if len(started) == to_be_had:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        started.append(process := fork())
        return process

    monkeypatch.setattr(os, "fork", limited)
    found = list(by_parts(lambda part: [(place, os.getpid()) for place in part], range(100), 3))
    made = [each for _, part in found for each in part]
    assert [place for place, _ in made] == list(range(100))
    assert {process for _, process in made} == ({started[0]} if to_be_had else {os.getpid()})


def test_work_is_done_here_where_no_pipe_is_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> tuple[int, int]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pipe", refuse)
    assert {made for _, made in by_parts(lambda _: os.getpid(), range(100), 3)} == {os.getpid()}


def test_more_tasks_than_a_pipe_holds_are_all_done() -> None:
    stretches = [1] * 20_000
    found = list(by_parts(list, range(20_000), 2, stretches))
    assert [place for _, made in found for place in made] == list(range(20_000))


def test_what_cannot_be_sent_is_one_sentence() -> None:
    with pytest.raises(PepscopeError, match="ended with exit status 1"):
        list(by_parts(lambda _: lambda: None, range(100), 2))


def without_statuses(act: Callable[[], object]) -> object:
    """What a program does that was started to ignore SIGCHLD, so that the system keeps no status of processes."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        return act()
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_work_is_done_where_the_system_keeps_no_status_of_processes() -> None:
    found = without_statuses(lambda: [place for _, made in by_parts(list, range(100), 2) for place in made])
    assert found == list(range(100))


def test_processes_that_are_killed_are_one_sentence_without_their_status_too() -> None:
    def kill(_: Sequence[int]) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(PepscopeError, match="a process that shares the work ended"):
        without_statuses(lambda: list(by_parts(kill, range(100), 2)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_processes_start_leaves_none_behind(number: signal.Signals) -> None:
    """The first process asks for it as it begins, while this one starts the others."""
    program = (
        "import os, sys, time\n"
        "from pepscope.processes.parts import by_parts\n"
        "from pepscope.command_line.failures import exit_status\n"
        "from pepscope.processes.signals import end_in_order\n"
        "def work(part):\n"
        "    os.kill(os.getppid(), int(sys.argv[1]))\n"
        "    time.sleep(3600)\n"
        "end_in_order()\n"
        "sys.exit(exit_status(lambda: list(by_parts(work, range(100), 8))))\n"
    )
    command = [sys.executable, "-c", program, str(int(number))]
    # It ends when no process holds its standard error.
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=600, check=False)
    assert done.returncode == 128 + number
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_signal_that_another_thread_takes_ends_the_work_too() -> None:
    program = (
        "import signal, sys, threading, time\n"
        "from pepscope.processes.parts import by_parts\n"
        "from pepscope.command_line.failures import exit_status\n"
        "def take():\n"
        "    time.sleep(0.5)\n"
        "    signal.pthread_kill(threading.get_ident(), signal.SIGINT)\n"
        "threading.Thread(target=take).start()\n"
        "sys.exit(exit_status(lambda: list(by_parts(lambda _: time.sleep(3600), range(100), 2))))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (130, "\npepscope: interrupted\n")


def test_who_stops_asking_leaves_no_process_behind() -> None:
    parts = by_parts(lambda _: os.getpid(), range(1000), 2)
    _, process = next(parts)
    del parts
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
