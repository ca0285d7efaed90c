"""The congestion control and the link of the guide run when pasted into a copy of the crates; nothing else changes."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide" / "simulation-in-rust.md"
MOST_LINES = 60
#: Where the copy is a workspace of its own.
WORKSPACE = ROOT / "target" / "extending"
#: One folder deeper than in the tree: cargo tells crates of one name apart by their places in their workspaces, so that
#: the copy is built where the tree is, beside its crates and with the dependencies that are compiled there.
COPY = WORKSPACE / "copy"
CRATES = ("applications", "path", "tcp", "drive", "wire")


def _blocks(mark: str) -> dict[str, str]:
    """The guide's code blocks, by what the comment before them names."""
    text = GUIDE.read_text(encoding="utf-8")
    return dict(re.findall(rf"<!-- {mark}: ([^>]*?) -->\n```rust\n(.*?)```", text, re.S))


def _copy_of_the_crates() -> None:
    shutil.rmtree(WORKSPACE, ignore_errors=True)
    for crate in CRATES:
        shutil.copytree(ROOT / "crates" / crate, COPY / "crates" / crate)
    shutil.copytree(ROOT / "docs", COPY / "docs", ignore=shutil.ignore_patterns("figures"))
    shutil.copy2(ROOT / "Cargo.lock", WORKSPACE)
    workspace = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    members = ", ".join(f'"copy/crates/{crate}"' for crate in CRATES)
    (WORKSPACE / "Cargo.toml").write_text(re.sub(r"members = \[.*?\]", f"members = [{members}]", workspace))


def _paste() -> None:
    for file, code in _blocks("paste").items():
        assert code.count("\n") < MOST_LINES, file
        (COPY / file).write_text(code, encoding="utf-8")
    for place, line in _blocks("line").items():
        file, macro = place.split()
        source = (COPY / file).read_text(encoding="utf-8")
        assert line.count("\n") == 1
        listed = re.search(rf"^{macro}! {{\n(?:.*\n)*?(?=^}})", source, re.M)
        assert listed is not None, f"{file} has no list {macro}!"
        (COPY / file).write_text(source[: listed.end()] + line + source[listed.end() :], encoding="utf-8")


def test_a_control_and_a_link_are_one_file_and_one_line_each() -> None:
    _copy_of_the_crates()
    _paste()
    command = ["cargo", "test", "--offline", "-p", "pepscope-drive", "--test", "fast_path", "--", "--nocapture"]
    environment = {"CARGO_TARGET_DIR": str(ROOT / "target")} | os.environ
    done = subprocess.run(command, cwd=WORKSPACE, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr
    for run in ("scalable over wired", "scalable over outages", "cubic over outages", "scalable through a proxy"):
        assert re.search(rf"^{run}: \d+ arrivals", done.stdout, re.M), run
    fields = runpy.run_path(str(COPY / "docs" / "scenario_fields.py"))["scenario_fields"]()
    assert "| `scalable` | Scalable TCP (Kelly, 2003) |" in fields
    assert "| `outages` | a delay, and periodic outages in which packets wait, see" in fields
    assert "`outage_s` (0-10" in fields
