"""The page of commands says what the commands say."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_commands_page_is_current() -> None:
    build = runpy.run_path(str(DOCS / "build.py"))
    written = (DOCS / "commands.md").read_text(encoding="utf-8")
    assert written == build["page"](), "run `make docs`"
    for name in ("detect", "explain", "inspect"):
        assert f"## pepscope {name}\n" in written
