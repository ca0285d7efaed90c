"""Colours: on terminals, unless NO_COLOR or a dumb terminal says otherwise; and one format for one output."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

CAPTURE = Path(__file__).parents[2] / "corpus" / "reg_dl_short10k.mob.pcap.gz"
ESCAPE = b"\x1b["


def on_terminal(*arguments: str, **environment: str) -> bytes:
    """What a command writes to a terminal."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    outer, inner = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "pepscope", *arguments],
        stdout=inner,
        stderr=subprocess.DEVNULL,
        env={**kept, "TERM": "xterm", **environment},
    ) as process:
        os.close(inner)
        pieces = []
        try:
            while piece := os.read(outer, 65536):
                pieces.append(piece)
        except OSError:
            pass  # the terminal's other end is closed
        os.close(outer)
        assert process.wait(120) == 0
    return b"".join(pieces)


@pytest.mark.parametrize("command", ["inspect", "detect"])
def test_colours_end_with_no_color_and_dumb_terminals(command: str) -> None:
    assert ESCAPE in on_terminal(command, str(CAPTURE))
    # An empty value is none (no-color.org).
    assert ESCAPE in on_terminal(command, str(CAPTURE), NO_COLOR="")
    assert ESCAPE not in on_terminal(command, str(CAPTURE), NO_COLOR="1")
    assert ESCAPE not in on_terminal(command, str(CAPTURE), TERM="dumb")


def test_two_formats_for_one_output_are_refused() -> None:
    command = [sys.executable, "-m", "pepscope", "inspect", "--json", "--csv", str(CAPTURE)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--json and --csv write to one standard output" in done.stderr
