"""Signals end a command in order: with a status and at most one sentence, its processes ended, its files whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pepscope.processes.signals import ENDING_SIGNALS, signals_held, stopped_by_signals

ROOT = Path(__file__).parents[3]
IN_ORDER = "import os, signal, sys, time\nfrom pepscope.processes.signals import end_in_order\nend_in_order()\n"
SENTENCES = {
    signal.SIGINT: "\npepscope: interrupted\n",
    signal.SIGTERM: "pepscope: ended by SIGTERM\n",
    signal.SIGHUP: "pepscope: ended by SIGHUP\n",
}


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )


def as_a_command(act: str) -> str:
    """A program that does something the way commands are run."""
    return f"{IN_ORDER}from pepscope.command_line.failures import exit_status\n{act}\nsys.exit(exit_status(act))\n"


@pytest.mark.parametrize("number", ENDING_SIGNALS)
def test_a_report_is_whole_or_not_there(number: signal.Signals, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text("earlier")
    act = (
        "from pepscope.whole_file import output_file\n"
        "def act():\n"
        "    with output_file(sys.argv[2]) as stream:\n"
        "        stream.write(b'half')\n"
        "        os.kill(os.getpid(), int(sys.argv[1]))\n"
        "        time.sleep(3600)\n"
    )
    done = run(as_a_command(act), str(int(number)), str(report))
    assert (done.returncode, done.stderr) == (128 + number, SENTENCES[number])
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("report.json", "earlier")]


@pytest.mark.parametrize("number", ENDING_SIGNALS)
def test_a_signal_that_comes_while_python_ignores_what_is_raised_comes_again(number: signal.Signals) -> None:
    act = (
        "class Slow:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), int(sys.argv[1]))\n"
        "        time.sleep(0.1)\n"
        "def act():\n"
        "    Slow()\n"
        "    time.sleep(3600)\n"
    )
    done = run(as_a_command(act), str(int(number)))
    assert (done.returncode, done.stderr) == (128 + number, SENTENCES[number])


@pytest.mark.parametrize("number", ENDING_SIGNALS)
def test_a_second_signal_does_not_disturb_what_is_taken_down(number: signal.Signals) -> None:
    act = (
        "def act():\n"
        "    try:\n"
        "        os.kill(os.getpid(), int(sys.argv[1]))\n"
        "        time.sleep(3600)\n"
        "    finally:\n"
        "        os.kill(os.getpid(), int(sys.argv[1]))\n"
        "        print('taken down')\n"
    )
    done = run(as_a_command(act), str(int(number)))
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "taken down\n", SENTENCES[number])


def test_text_that_a_signal_cut_short_is_no_report(tmp_path: Path) -> None:
    program = (
        f"{IN_ORDER}import click\n"
        "from pepscope.command_line.reports import ReportingCommand, json_option\n"
        "@click.command(cls=ReportingCommand)\n"
        "@json_option('')\n"
        "def report(as_json):\n"
        "    print('half')\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    time.sleep(3600)\n"
        "report()\n"
    )
    assert run(program, f"--json={tmp_path / 'report.json'}").returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_what_the_caller_ignores_stays_ignored_and_forked_processes_end_at_once() -> None:
    program = (
        f"import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n{IN_ORDER}"
        "os.kill(os.getpid(), signal.SIGHUP)\n"
        "from pepscope.processes.signals import stopped_by_signals\n"
        "with stopped_by_signals() as stopped:\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    assert not stopped.is_set()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    os._exit(1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = run(program)
    assert (done.stdout, done.stderr) == (f"-{int(signal.SIGTERM)}\n", "")


def test_a_second_interrupt_does_not_wait() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stopped_by_signals() as stopped:
        signal.raise_signal(signal.SIGINT)
        assert stopped.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == before


def test_signals_wait_until_what_they_would_disturb_is_done() -> None:
    done = []

    def start() -> None:
        with signals_held():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            done.append("started")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert done == ["started"]


POOL = """
from pepscope.processes.workers import over_workers
from tests.pepscope.processes.test_signals import unfinished

def act():
    print("begins", flush=True)
    list(over_workers(unfinished, [sys.argv[1] + str(number) for number in range(4)], processes=2, scheduler=None))

if __name__ == '__main__':
    sys.exit(exit_status(act))
"""


def unfinished(path: str) -> None:
    """Begins a file, and never ends."""
    from pepscope.whole_file import whole_file

    with whole_file(Path(path)):
        time.sleep(3600)


def test_a_signal_that_another_thread_takes_ends_the_work_too(tmp_path: Path) -> None:
    taking = (
        "import threading\n"
        "def take():\n"
        "    while len(os.listdir(os.path.dirname(sys.argv[1]))) < 2:\n"
        "        time.sleep(0.05)\n"
        "    time.sleep(0.2)\n"
        "    signal.pthread_kill(threading.get_ident(), signal.SIGINT)\n"
        "if __name__ == '__main__':\n"
        "    threading.Thread(target=take).start()\n"
    )
    done = run(f"{IN_ORDER}from pepscope.command_line.failures import exit_status\n{taking}{POOL}", f"{tmp_path}/")
    assert (done.returncode, done.stderr) == (130, SENTENCES[signal.SIGINT])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", ENDING_SIGNALS)
@pytest.mark.parametrize("reaches", [os.kill, os.killpg], ids=["the command", "all its processes"])
@pytest.mark.parametrize("begun", [False, True])
def test_workers_end_with_what_asks_for_the_work(
    number: signal.Signals, reaches: object, begun: bool, tmp_path: Path
) -> None:
    program = f"{IN_ORDER}from pepscope.command_line.failures import exit_status\n{POOL}"
    running = subprocess.Popen(
        [sys.executable, "-c", program, f"{tmp_path}/"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert running.stdout is not None
    assert running.stdout.readline() == "begins\n"
    if begun:
        deadline_s = time.monotonic() + 300
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline_s:
            time.sleep(0.05)
        assert len(list(tmp_path.iterdir())) == 2
    else:  # while processes start
        time.sleep(0.1)
    assert callable(reaches)
    reaches(running.pid, number)
    _, said = running.communicate(timeout=600)  # ends when no process holds standard error
    assert (running.returncode, said) == (128 + number, SENTENCES[number])
    assert list(tmp_path.iterdir()) == []
