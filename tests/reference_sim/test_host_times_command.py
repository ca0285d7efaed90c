"""The command `host-times`: what it writes and says."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

SCENARIO = Scenario.from_mapping(
    {
        "name": "times",
        "duration_s": 60.0,
        "server": {"host": "linux"},
        "mobile": {"host": "linux"},
        "path": [{"kind": "wired", "down": {"rate_bit_s": 20_000_000, "delay_s": 0.01, "queue_packets": 200}}],
        "traffic": [{"kind": "download", "bytes": 1_500_000, "count": 8, "spacing_s": 1.0}],
    }
)


def test_the_command_writes_a_table_and_what_it_rests_on(tmp_path: Path) -> None:
    run = simulate(SCENARIO, tmp_path)
    table, paths = tmp_path / "times.toml", [str(run.captures["server"])]
    command = [sys.executable, "-m", "pepscope", "host-times", *paths]
    done = subprocess.run([*command, "-o", str(table), "--json"], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    assert document["captures"] == [{"path": paths[0], "end": "server"}]
    assert document["times"] == tomllib.loads(table.read_text(encoding="utf-8"))
    assert document["samples"]["receiving"] > 1000
    assert "connected" in document["not_measured"]
    wrong = subprocess.run([*command, "--end", "middle"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2


def test_the_command_says_where_a_capture_is_damaged(tmp_path: Path) -> None:
    whole = simulate(SCENARIO, tmp_path).captures["server"]
    cut = tmp_path / "cut.pcapng"
    content = whole.read_bytes()
    cut.write_bytes(content[: len(content) * 3 // 4 + 2])
    done = subprocess.run(
        [sys.executable, "-m", "pepscope", "host-times", str(cut)], capture_output=True, text=True, check=True
    )
    assert f"pepscope: {cut} is damaged at byte " in done.stderr
    assert "receiving = " in done.stdout


def test_the_command_follows_a_link_and_leaves_it(tmp_path: Path) -> None:
    run = simulate(SCENARIO, tmp_path)
    link, table = tmp_path / "link.toml", tmp_path / "times.toml"
    link.symlink_to(table)
    command = [sys.executable, "-m", "pepscope", "host-times", str(run.captures["server"]), "-o"]
    subprocess.run([*command, str(link)], capture_output=True, check=True)
    assert link.is_symlink()
    assert "receiving" in tomllib.loads(table.read_text(encoding="utf-8"))
    unnamed = subprocess.run([*command, ""], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (unnamed.returncode, len(unnamed.stderr.splitlines())) == (2, 1)


def test_the_command_names_the_file_that_it_cannot_write(tmp_path: Path) -> None:
    run = simulate(SCENARIO, tmp_path)
    table = tmp_path / "missing" / "times.toml"
    command = [sys.executable, "-m", "pepscope", "host-times", str(run.captures["server"]), "-o", str(table)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"pepscope: {table} cannot be written: No such file or directory\n"
