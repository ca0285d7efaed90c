"""A man page for every command; groff is what reads them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_command_has_a_page_that_groff_reads(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "distribution" / "man_pages.py", tmp_path], check=True)
    written = sorted(tmp_path.iterdir())
    assert {"pepscope.1", "pepscope-detect.1", "pepscope-probe-serve.1", "pepscope-probe-key-add.1"} <= {
        page.name for page in written
    }
    for page in written:
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), page.name
        # The terminal's bold is a letter, a backspace and the letter again.
        assert "SYNOPSIS" in re.sub(".\b", "", done.stdout), page.name
