"""What a server that one leaves running may do: its privileges once it serves, and its systemd unit."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.prober.commands.test_serve import started
from tests.prober.serving import PEPSCOPE

NET_ADMIN, NET_RAW, DAC_OVERRIDE = 12, 13, 1


def capabilities(task: Path) -> dict[str, set[int]]:
    found = re.findall(r"^(Cap\w+|NoNewPrivs):\s*([0-9a-f]+)$", (task / "status").read_text(), re.MULTILINE)
    return {name: {bit for bit in range(64) if int(value, 16) >> bit & 1} for name, value in found}


@pytest.mark.parametrize("owner", ["own", "another"])
def test_privileges_go_before_anything_is_served(tmp_path: Path, owner: str) -> None:
    """The process that serves has none; its helper has two, and so have the processes that remove rules."""
    state, more = tmp_path / "state", set[int]()
    state.mkdir()
    if owner == "another" and os.geteuid() == 0:
        os.chown(state, 12_345, 12_345)
        tmp_path.chmod(0o755)
        more = {DAC_OVERRIDE}
    with started(state) as server, server.control() as mobile:
        capture = mobile.start_capture("x", 100)
        with mobile.hold_acks(server.ready["ports"]["tcp"][0], 0.05, 60):
            serving, (helper,) = tasks(server.process.pid), children(server.process.pid)
            keepers = children(helper)
            assert len(serving) > 4
            assert keepers, "what removes the rules of a hold"
            for task in serving:
                assert_bounded(task, more)
            for task in (*tasks(helper), *(task for keeper in keepers for task in tasks(keeper))):
                assert_bounded(task, {NET_ADMIN, NET_RAW} | more)
        assert mobile.finish_capture(capture).ended_early == ""


def tasks(pid: int) -> list[Path]:
    return [*Path(f"/proc/{pid}/task").iterdir()]


def children(pid: int) -> list[int]:
    return [int(number) for task in tasks(pid) for number in (task / "children").read_text().split()]


def assert_bounded(task: Path, allowed: set[int]) -> None:
    held = capabilities(task)
    assert held["NoNewPrivs"] == {0}
    for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"):
        assert held[name] <= allowed, (task, name)


def unit(tmp_path: Path, command: str) -> Path:
    path = tmp_path / {"serve": "pepscope-probe.service", "dashboard": "pepscope-dashboard.service"}[command]
    path.write_text(subprocess.run([PEPSCOPE, "probe", command, "--show", "unit"], capture_output=True, text=True,
                                   check=True, timeout=600).stdout)  # fmt: skip
    return path


@pytest.mark.parametrize("command", ["serve", "dashboard"])
def test_systemd_takes_the_unit(tmp_path: Path, command: str) -> None:
    file = unit(tmp_path, command)
    checked = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert file.name not in checked.stderr, "no warnings"


@pytest.mark.parametrize(("command", "most"), [("serve", 30), ("dashboard", 20)])
def test_the_unit_exposes_little(tmp_path: Path, command: str, most: int) -> None:
    """The greatest exposure that passes, ten times the score of the guide."""
    words = ["systemd-analyze", "security", "--offline=yes", f"--threshold={most}", str(unit(tmp_path, command))]
    checked = subprocess.run(words, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout[-300:]
