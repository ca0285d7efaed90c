"""A package that is not installed is one sentence with the command that installs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pepscope
from pepscope.cli import SUMMARIES
from pepscope.errors import LivePathError, MissingPackageError
from pepscope.extras import EXTRA_OF_COMMAND, missing_package, requirements
from reference_sim.live_path.taps import live_taps
from reference_sim.scenario import Scenario

ROOT = Path(__file__).parents[2]
CAPTURES = [str(ROOT / "examples" / "split" / f"{place}.pcap.gz") for place in ("server", "mobile")]
PROGRAM = "import sys; sys.modules[sys.argv.pop(1)] = None; from pepscope.cli import main; main()"


def without(module: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """A command in an installation that lacks a module."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, module, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("lap", "pip install pepscope"),
        ("plotly", "pip install 'pepscope[html]'"),
        ("pandas", "pip install 'pepscope[frames]'"),
        ("scipy.special", "pip install 'pepscope[simulate]'"),
        ("dpkt", "pip install 'pepscope[emulate]'"),
        ("prometheus_client", "pip install 'pepscope[proxy]'"),
        ("pyarrow.parquet", "pip install 'pepscope[parquet]'"),
        ("papers.command", "pip install --force-reinstall pepscope"),
    ],
)
def test_the_command_is_that_of_the_metadata(module: str, command: str) -> None:
    sentence = missing_package(module)
    assert sentence == f"this needs the package {module.partition('.')[0]}, which is not installed: {command}"


def test_the_extra_of_the_command_is_named_where_several_have_the_package() -> None:
    assert missing_package("pyarrow", "corpora").endswith("pip install 'pepscope[corpora]'")
    assert missing_package("dpkt", "corpora").endswith("pip install 'pepscope[emulate]'")


def test_every_command_names_an_extra_that_there_is() -> None:
    assert set(EXTRA_OF_COMMAND) <= set(SUMMARIES)
    assert set(EXTRA_OF_COMMAND.values()) <= set(requirements())


def test_a_module_of_other_platforms_is_no_package_to_install() -> None:
    assert missing_package("termios") == f"this does not run on {sys.platform}, whose Python has no module termios"


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("plotly", ("detect", *CAPTURES, "--html", "page.html"), "html"),
        ("pandas", ("inspect", CAPTURES[0], "--csv"), "frames"),
        ("pandas", ("reproduce", "hu", "-o", "papers"), "simulate"),
        ("pandas", ("simulate", "--campaign", "fig11", "-o", "result"), "simulate"),
        (
            "prometheus_client",
            ("watch", str(ROOT / "examples" / "split"), "--once", "--metrics", "127.0.0.1:0"),
            "watch",
        ),
        ("pyarrow", ("audit-captures", str(ROOT / "examples"), "-o", "result"), "corpora"),
    ],
)
def test_a_command_without_its_extra_names_it(
    module: str, arguments: tuple[str, ...], extra: str, tmp_path: Path
) -> None:
    done = without(module, *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"pepscope: this needs the package {module}, which is not installed: pip install 'pepscope[{extra}]'\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_detections_are_written_as_csv_without_pandas(tmp_path: Path) -> None:
    done = without("pandas", "detect", *CAPTURES, "--csv", str(tmp_path / "verdicts.csv"))
    assert done.returncode == 0, done.stderr
    names = {"verdicts.csv", "verdicts.evidence.csv", "verdicts.groups.csv", "verdicts.hosts.csv"}
    assert {each.name for each in tmp_path.iterdir()} == names


def test_python_users_get_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    result = pepscope.detect(*CAPTURES)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'pepscope\[frames\]'"):
        result.to_frame()


def test_a_command_without_its_room_reports_it() -> None:
    done = without("papers", "reproduce", "hu", "-o", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "pepscope: this needs the package papers, which is not installed: pip install --force-reinstall pepscope\n"
    )


@pytest.mark.parametrize(
    "module", ["pandas", "plotly", "scipy", "dpkt", "pyarrow", "papers", "prober", "reference_sim"]
)
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
