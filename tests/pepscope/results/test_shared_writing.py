"""Texts that several processes make are those that one makes, in order, whatever becomes of the processes."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pepscope.processes.forked import ForkedProcess
from pepscope.results.encoding.output import write_json, write_json_lines
from pepscope.results.encoding.shared_writing import made_in_order
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import DetectionResult, PairResult
from tests.pepscope.results.detections import DETECTIONS, PAIRS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="one process makes all where none can be forked")

#: More than a pipe holds, something, and nothing.
SIZES = (3_000_000, 1, 0)


def text(number: int) -> bytes:
    return bytes([number]) * SIZES[number % len(SIZES)]


def written(make: Callable[[int], bytes], count: int, jobs: int) -> bytes:
    return b"".join(made_in_order(make, count, jobs))


@pytest.mark.parametrize("jobs", [1, 2, 3, 9])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_texts_come_in_order_from_any_number_of_processes(count: int, jobs: int) -> None:
    assert written(text, count, jobs) == b"".join(map(text, range(count)))


def test_each_process_makes_its_share() -> None:
    makers = [*map(int, written(lambda _: b"%d " % os.getpid(), 7, 3).split())]
    assert makers == [*makers[:2], os.getpid(), *makers[:2], os.getpid(), os.getpid()]
    assert len(set(makers)) == 3


@pytest.mark.parametrize("at", [0, 2])
def test_what_is_missing_of_a_text_is_made_here(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, write = os.getpid(), os.write

    def end_midway(file: int, content: memoryview) -> int:
        if os.getpid() != ours and len(content) == SIZES[0] - at * 1000:
            write(file, content[: SIZES[0] // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return write(file, content)

    def make(number: int) -> bytes:
        return (bytes(range(250)) * 12_000)[number * 1000 :]

    monkeypatch.setattr(os, "write", end_midway)
    assert written(make, 5, 2) == b"".join(map(make, range(5)))


@pytest.mark.parametrize("delivered", [1, 3])
def test_what_a_process_does_not_deliver_is_made_here(delivered: int) -> None:
    ours = os.getpid()

    def make(number: int) -> bytes:
        if number > delivered and os.getpid() != ours:
            os.kill(os.getpid(), signal.SIGKILL)
        return text(number)

    assert written(make, 7, 2) == b"".join(map(text, range(7)))


@pytest.mark.parametrize("refused", ["fork", "pipe"])
@pytest.mark.parametrize("granted", [0, 1])
def test_what_no_process_can_be_had_for_is_made_here(
    refused: str, granted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, call = [], getattr(os, refused)

    def limited() -> object:
        asked.append(refused)
        if len(asked) > granted:
            raise BlockingIOError("as many as a user may have")
        return call()

    monkeypatch.setattr(os, refused, limited)
    opened = len([*Path("/dev/fd").iterdir()])
    assert written(text, 7, 3) == b"".join(map(text, range(7)))
    assert len(asked) == 2
    assert len([*Path("/dev/fd").iterdir()]) == opened


def test_a_process_that_is_interrupted_as_it_begins_says_nothing() -> None:
    """Ctrl-C reaches all processes of a terminal: the first one alone ends with words."""
    program = (
        "import os, signal\n"
        "from pepscope.results.encoding.shared_writing import made_in_order\n"
        "fork = os.fork\n"
        "def interrupted():\n"
        "    if not (process := fork()):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return process\n"
        "os.fork = interrupted\n"
        "print(b''.join(made_in_order(lambda number: b'%d' % number, 4, 2)).decode())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0123\n", "")


def test_an_error_is_raised_as_by_one_process() -> None:
    def make(number: int) -> bytes:
        if number == 3:
            raise ValueError("the third")
        return text(number)

    for jobs in (1, 2, 3):
        made = made_in_order(make, 7, jobs)
        assert text(0).startswith(next(made))
        with pytest.raises(ValueError, match="the third"):
            list(made)


def test_no_process_is_left_where_nobody_asks_for_more() -> None:
    made = made_in_order(lambda number: b" %d " % os.getpid() + bytes(SIZES[0]), 9, 3)
    makers: list[int] = []
    while os.getpid() not in makers:
        makers += map(int, bytes(next(made)).replace(b"\0", b"").split())
    made.close()
    assert len(makers) == 3
    for maker in set(makers) - {os.getpid()}:
        with pytest.raises(ProcessLookupError):
            os.kill(maker, 0)


@settings(max_examples=20)
@given(DETECTIONS, st.lists(st.lists(PAIRS, min_size=1, max_size=2), min_size=2, max_size=4), st.integers(2, 4))
def test_reports_are_the_same_whoever_makes_their_text(
    result: DetectionResult, blocks: list[list[PairResult]], jobs: int
) -> None:
    table = PairTable()
    for block in blocks:
        table.extend(PairTable(block))
    assert table.columns.evidence.blocks == len(blocks)
    together = replace(result, pairs=table, groups=())
    for write in (write_json, write_json_lines):
        alone, shared = io.StringIO(), io.StringIO()
        write(together, alone)
        write(together, shared, jobs=jobs)
        assert shared.getvalue() == alone.getvalue()


def test_an_interrupt_while_processes_are_ended_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    end = ForkedProcess.end

    def interrupted(self: ForkedProcess) -> int:
        signal.raise_signal(signal.SIGINT)
        ended.append(self.process)
        return end(self)

    monkeypatch.setattr(ForkedProcess, "end", interrupted)
    texts = made_in_order(text, 9, 4)
    next(texts)
    with pytest.raises(KeyboardInterrupt):
        texts.close()
    assert len(ended) == 3
