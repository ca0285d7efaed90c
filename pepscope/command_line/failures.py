"""How a command ends: with an exit status, and where it fails with one sentence on standard error. Without click."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TypeVar

from pepscope.command_line.volume import say
from pepscope.errors import PepscopeError
from pepscope.processes.signals import EndedBySignal

Result = TypeVar("Result")

INTERRUPTED = 130  # 128 + SIGINT, as shells report it
PIPE_CLOSED = 141  # 128 + SIGPIPE
INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h


class PipeClosedError(Exception):
    """The reader of our standard output closed it; a separate class because click would treat it as a failure."""


def written_out(act: Callable[[], Result]) -> Result:
    """Act and flush standard output. Raises PipeClosedError where its reader has gone, which is no error of ours."""
    try:
        result = act()
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise PipeClosedError from error
    return result


def exit_status(act: Callable[[], int]) -> int:
    """The status that `act` returns; every failure ends in one sentence on standard error and a status of its own."""
    try:
        return act()
    except PepscopeError as error:
        return complain(str(error), error.exit_status)
    except PipeClosedError:
        _write_no_more()
        return PIPE_CLOSED
    except OSError as error:
        # What has no name is standard output: everything else is opened by name.
        if error.filename:
            return complain(f"{error.filename}: {error.strerror or error}", PepscopeError.exit_status)
        _write_no_more()
        return complain(f"standard output cannot be written: {error.strerror or error}", PepscopeError.exit_status)
    except ModuleNotFoundError as error:
        if os.environ.get("PEPSCOPE_DEBUG"):
            raise
        from pepscope.extras import EXTRA_OF_COMMAND, missing_package

        sentence = missing_package(error.name or str(error), EXTRA_OF_COMMAND.get(_command()))
        return complain(sentence, PepscopeError.exit_status)
    except MemoryError:
        return complain("out of memory; a lower --memory bounds what is held at once", PepscopeError.exit_status)
    except KeyboardInterrupt:
        say("")  # behind the terminal's ^C
        return complain("interrupted", INTERRUPTED)
    except EndedBySignal as end:
        return complain(f"ended by {end.signal.name}", end.status)
    except SystemExit:
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        if os.environ.get("PEPSCOPE_DEBUG"):
            raise
        detail = " ".join(str(error).split())
        return complain(
            f"internal error, {type(error).__name__}: {detail}; PEPSCOPE_DEBUG=1 shows where", INTERNAL_ERROR
        )


def _write_no_more() -> None:
    """Let go of what is still to be written: Python flushes standard output at exit, which would fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(message: str, status: int) -> int:
    """Say what failed; returns the status."""
    say(f"pepscope: {message.strip().removesuffix('.')}")
    return status


def _command() -> str:
    """The command that was asked for."""
    return next((word for word in sys.argv[1:] if not word.startswith("-")), "")
