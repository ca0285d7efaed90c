"""A package that is not installed is one sentence with the command that installs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pepscope.errors import LivePathError
from pepscope.extras import missing_package
from reference_sim.live_path.taps import live_taps
from reference_sim.scenario import Scenario

ROOT = Path(__file__).parents[2]
CAPTURES = [str(ROOT / "examples" / "split" / f"{place}.pcap.gz") for place in ("server", "mobile")]
PROGRAM = "import sys; sys.modules[sys.argv.pop(1)] = None; from pepscope.cli import main; main()"


def without(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in an installation that lacks a module."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, module, *arguments], capture_output=True, text=True, check=False, cwd=ROOT
    )


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("scipy.optimize", "pip install pepscope"),
        ("dpkt", "pip install 'pepscope[emulate]'"),
        ("prometheus_client", "pip install 'pepscope[proxy]'"),
        ("pyarrow.parquet", "pip install 'pepscope[parquet]'"),
        ("papers.command", "pip install --force-reinstall pepscope"),
    ],
)
def test_the_command_is_that_of_the_metadata(module: str, command: str) -> None:
    sentence = missing_package(module)
    assert sentence == f"this needs the package {module.partition('.')[0]}, which is not installed: {command}"


def test_an_audit_of_captures_names_the_extra_that_its_queries_need_too(tmp_path: Path) -> None:
    done = without("pyarrow", "audit-captures", CAPTURES[0], "-o", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "pepscope: this needs the package pyarrow, which is not installed: pip install 'pepscope[corpora]'\n"
    )


def test_a_command_without_its_room_reports_it() -> None:
    done = without("papers", "reproduce", "hu", "-o", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "pepscope: this needs the package papers, which is not installed: pip install --force-reinstall pepscope\n"
    )


@pytest.mark.parametrize("module", ["pandas", "plotly", "dpkt", "pyarrow", "papers", "prober", "reference_sim"])
def test_detect_needs_no_package_of_other_parts(module: str) -> None:
    done = without(module, "detect", *CAPTURES)
    assert (done.returncode, done.stderr) == (0, "")
    assert "split-tcp" in done.stdout


def test_segments_are_joined_only_where_dpkt_is(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario.from_toml(ROOT / "examples" / "scenario.toml").with_values(
        {"record.taps": [{"name": "mobile", "after_hop": 0, "coalescing": {}}]}
    )
    (tap,) = live_taps(scenario, ((0, len(scenario.path)),))
    assert tap.has_effects
    monkeypatch.setattr("reference_sim.live_path.taps.find_spec", lambda _: None)
    with pytest.raises(LivePathError, match=r"pip install 'pepscope\[emulate\]'"):
        live_taps(scenario, ((0, len(scenario.path)),))
