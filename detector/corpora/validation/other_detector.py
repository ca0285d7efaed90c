"""Another detector as a command: given one or two captures, it writes its verdicts as JSON."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from detector.corpora.validation.answers import Answer, AnswerError, decode_answer
from pepscope.errors import UsageError
from pepscope.strict_reading import shown

#: More output than a detector of some hundred thousand connections writes.
MOST_OUTPUT_BYTES = 1 << 30

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1  # prctl(2)

#: How often output and time are looked at.
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class OtherDetector:
    """A command that gets captures as its last arguments, and may take so long for them."""

    words: tuple[str, ...]
    timeout_s: float

    @classmethod
    def from_command(cls, command: str, timeout_s: float) -> OtherDetector:
        """From a command line, without a shell. Raises UsageError where there is no such program."""
        try:
            words = tuple(shlex.split(command))
        except ValueError as error:
            raise UsageError(f"the detector must be a command, got {shown(command)}: {error}") from None
        if not words:
            raise UsageError("the detector must be a command, got nothing")
        if not timeout_s > 0:
            raise UsageError(f"the detector's timeout must be above 0 s, got {timeout_s:g} s")
        program = shutil.which(words[0])
        if program is None:
            raise UsageError(f"the detector must be a program that can be run, got {shown(words[0])}")
        # Workers may have another working directory.
        return cls((str(Path(program).absolute()), *words[1:]), timeout_s)

    @property
    def name(self) -> str:
        """What the report calls it."""
        return shlex.join((Path(self.words[0]).name, *self.words[1:]))


def ask(detector: OtherDetector, captures: Sequence[str]) -> Answer:
    """Run a detector on captures, as a process group of its own. Raises AnswerError with what went wrong."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                [*detector.words, *captures], stdin=subprocess.DEVNULL, stdout=output, stderr=complaints,
                start_new_session=True, preexec_fn=_end_with_parent,
            )  # fmt: skip
        except OSError as error:
            raise AnswerError(f"it could not be started: {error.strerror or error}") from None
        try:
            status = _watched(process, output.fileno(), detector.timeout_s)
        finally:
            _end(process)
        if status != 0:
            complaints.seek(0)
            raise AnswerError(_ended_with(status, complaints.read(1 << 16)))
        output.seek(0)
        return decode_answer(output.read(), captures)


def _end_with_parent() -> None:
    """Have the kernel end this process with the one that started it, which may be killed at any time."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _watched(process: subprocess.Popen[bytes], output: int, timeout_s: float) -> int:
    """Its exit status. Raises AnswerError where it takes too long or writes too much."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            status = process.wait(min(_LOOK_S, max(0.0, deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            status = None
        if os.fstat(output).st_size > MOST_OUTPUT_BYTES:
            raise AnswerError(f"it wrote more than {MOST_OUTPUT_BYTES >> 20} MiB")
        if status is not None:
            return status
        if time.monotonic() >= deadline:
            raise AnswerError(f"it took longer than {timeout_s:g} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what it left running, too."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _ended_with(status: int, complaints: bytes) -> str:
    if status < 0:
        try:
            how = f"was ended by {signal.Signals(-status).name}"
        except ValueError:
            how = f"was ended by signal {-status}"
    else:
        how = f"ended with status {status}"
    lines = complaints.decode("utf-8", "replace").strip().splitlines()
    return f"it {how}" + (f": {lines[-1].strip()[:300]}" if lines else "")
