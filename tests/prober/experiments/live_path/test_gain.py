"""The gain of a real split on a real path, against the truth: the split sends faster while windows open."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from prober.archive.archive_file import open_archive
from prober.experiments.gain import Gain, GainMeasured
from prober.measurement.experiment import ObservedTask
from prober.measurement.task import Status
from tests.prober.serving import PEPSCOPE

PLAN = """
directions = ["down"]
[experiments.gain]
repeats = 8
sizes_bytes = [1_000, 100_000]
"""
SERVER = "exec pepscope probe serve --state state --listen 203.0.113.10 > server.txt"
MIDDLE = """
pepscope proxy split --interception transparent --ports 80 --device pepscope-cell --setup
exec pepscope proxy split --interception transparent --ports 80 --listen 0.0.0.0:8888
"""
MOBILE = """
until grep -q MOBILE server.txt; do sleep 0.1; done
export PEPSCOPE_PROBE_KEY=$(sed -n 's/^KEY //p' server.txt)
exec pepscope probe run plan.toml --server 203.0.113.10 -o runs
"""


def test_port_80_gains_by_its_split_and_most_where_windows_open(tmp_path: Path) -> None:
    for name, text in (("plan.toml", PLAN), ("server.sh", SERVER), ("middle.sh", MIDDLE), ("mobile.sh", MOBILE)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    commands = ["--server-command", "sh server.sh", "--middle-command", "sh middle.sh", "--", "sh", "mobile.sh"]
    done = subprocess.run(
        [PEPSCOPE, "emulate", "lte-split", *commands],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{PEPSCOPE.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "runs").iterdir()
    with open_archive(path) as archive:
        assert {item.status for item in archive.observations} == {Status.DONE}
        observed = [ObservedTask(item) for item in archive.observations]
        rows = Gain().metrics(observed)["gain"]
        measured = [Gain().kept(item) for item in observed]
    assert [(row["size_bytes"], row["pairs"]) for row in rows] == [(1_000, 8), (100_000, 8)]
    assert best_gain(measured, 100_000) > 0.1
    assert best_gain(measured, 100_000) > best_gain(measured, 1_000), "one segment gains nothing by a split"


def best_gain(measured: Sequence[GainMeasured], size_bytes: int) -> float:
    """Of the shortest times: a busy machine makes any time longer and none shorter, and may do so to half of them."""
    pairs = [pair for pair in measured if pair.size_bytes == size_bytes]
    return min(pair.free_total_s for pair in pairs) / min(pair.usual_total_s for pair in pairs) - 1
