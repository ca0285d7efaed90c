"""The method, the experiment and the writer of docs/guide/extending.md, as a distribution of its own and as ours."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

import pepscope
from pepscope.results.verdicts import DetectionResult, Outcome, Verdict
from prober.measurement.experiment import Experiment
from prober.measurement.task import Measurement
from prober.plan import Plan
from tests.prober.experiments.observed import seen
from tests.prober.serving import mobile_end, scripted, serving

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guide" / "extending.md").read_text(encoding="utf-8")
MOST_LINES = 60
SPLIT = [str(ROOT / "examples" / "split" / f"{end}.pcap.gz") for end in ("mobile", "server")]
COMMAND = ("-c", "from pepscope.cli import main; main()")
#: Where the TTL of the second packet, the SYN-ACK, stands in the mobile's capture: file header, two record headers, the
#: first packet (raw IP), and 8 bytes of the second.
SYN_ACK_TTL = 24 + 16 + 60 + 16 + 8


def blocks(mark: str) -> dict[str, str]:
    """The guide's code blocks that are not Rust, by what the comment before them names."""
    found = re.findall(rf"<!-- {mark}: ([^>]*?) -->\n```(?:python|toml|ini|text)\n(.*?)```", GUIDE, re.S)
    assert found, mark
    return dict(found)


@dataclass(frozen=True)
class Installed:
    """A folder of installed distributions, beside the tree."""

    site: Path

    def python(self, *arguments: str, tree: Path = ROOT, status: int = 0) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join([str(tree), str(self.site)])
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.site,
            env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == status, done.stdout[-2000:] + done.stderr[-4000:]
        return done

    def module(self, name: str) -> Any:
        """A module of the distribution; the entry points stay unknown to this process."""
        spec = importlib.util.spec_from_file_location(name, self.site / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made


def tracked_changes() -> str:
    """What differs from the last commit in files of the project; empty where this is no working copy."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        return ""
    done = subprocess.run(["git", "diff", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The distribution of the guide, installed offline."""
    source, site = tmp_path_factory.mktemp("additions"), tmp_path_factory.mktemp("site")
    for file, code in blocks("paste").items():
        (source / Path(file).name).write_text(code, encoding="utf-8")
    before = tracked_changes()
    offline = ("--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check")
    pip = [sys.executable, "-m", "pip", "install", "-q", *offline, "--target", str(site), str(source)]
    done = subprocess.run(pip, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert tracked_changes() == before
    return Installed(site)


@pytest.fixture(scope="module")
def other_hop_limit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The mobile's capture of the split example, its SYN-ACK from four hops farther away than the data."""
    capture = bytearray(gzip.decompress(Path(SPLIT[0]).read_bytes()))
    assert capture[SYN_ACK_TTL] == 64
    capture[SYN_ACK_TTL] = 60
    path = tmp_path_factory.mktemp("captures") / "mobile.pcap"
    path.write_bytes(capture)
    return str(path)


@pytest.fixture(scope="module")
def own() -> DetectionResult:
    """What pepscope alone says of the split example."""
    return pepscope.detect(*SPLIT)


def by_method(document: dict[str, Any]) -> dict[str, Any]:
    (pair,) = document["pairs"]
    return {item["method"]: item for item in pair["evidence"]}


def test_each_example_is_complete_in_less_than_sixty_lines() -> None:
    pasted = blocks("paste")
    assert len(pasted) == 5
    assert all(code.count("\n") < MOST_LINES for code in pasted.values())


def test_a_method_of_another_distribution_is_weighed_and_explained(
    installed: Installed, other_hop_limit: str, tmp_path: Path
) -> None:
    found = json.loads(installed.python(*COMMAND, "detect", other_hop_limit, "--json").stdout)
    item = by_method(found)["hop_limit"]
    assert (item["finding"], item["outcome"], item["strength"]) == ("other-hop-limit", "split", 1.0)
    assert item["numbers"] == {"direction": "down", "syn_hop_limit": 60, "data_hop_limit": 64}
    without = pepscope.detect(other_hop_limit).to_dict()
    assert "hop_limit" not in by_method(without)
    assert found["pairs"][0]["probability"]["regular"] < without["pairs"][0]["probability"]["regular"] - 0.1

    verdict = tmp_path / "verdict.json"
    verdict.write_text(json.dumps(found))
    assert (
        "- Hop limit (very firm, strength 1.00): Data arrive"
        in installed.python(*COMMAND, "explain", str(verdict)).stdout
    )


def test_a_method_that_decides_nothing_changes_no_verdict(installed: Installed, own: DetectionResult) -> None:
    found = json.loads(installed.python(*COMMAND, "detect", *SPLIT, "--json", "--packets", "0").stdout)
    (pair,), (own_pair,) = found["pairs"], own.to_dict()["pairs"]
    added = by_method(found)["hop_limit"]
    assert added["finding"] == "same-hop-limit"
    assert [item for item in pair["evidence"] if item != added] == own_pair["evidence"]
    assert (pair["verdict"], pair["probability"]) == (own_pair["verdict"], own_pair["probability"])


def test_a_writer_of_another_distribution_is_found_by_its_name(
    installed: Installed, own: DetectionResult, tmp_path: Path
) -> None:
    program, table = blocks("program")["markdown"], tmp_path / "verdicts.md"
    installed.python("-c", program, *SPLIT, str(table))
    (pair,) = own.pairs
    assert pair.verdict is not Verdict.INCONCLUSIVE
    assert table.read_text().splitlines()[2:] == [
        f"| {pair.vantages[0].client} | {pair.vantages[0].server} | {pair.verdict.value} |"
    ]


def test_an_experiment_of_another_distribution_is_planned(installed: Installed) -> None:
    assert "[experiments.half-close]\nrepeats = 3\n" in installed.python(*COMMAND, "probe", "plan").stdout


def test_the_experiment_judges_what_was_measured(installed: Installed) -> None:
    experiment: Experiment[Any, Any] = installed.module("half_close").HalfClose()

    def examined(*answers: tuple[bool, bool]) -> Sequence[Any]:
        values = [{"answered": usual, "answered_by_free_port": free} for usual, free in answers]
        return experiment.examine([seen(experiment.name, each) for each in values])

    (found,) = examined((False, True), (False, True), (False, True), (False, False))
    assert (found.finding, found.outcome, found.strength) == ("half-close-dropped", Outcome.SPLIT, 0.875)
    assert examined((False, True), (True, True)) == ()
    assert examined((False, False)) == ()


def test_the_experiment_measures_servers_and_proxies_that_drop_half_closed_connections(
    installed: Installed, tmp_path: Path
) -> None:
    experiment: Experiment[Any, Any] = installed.module("half_close").HalfClose()

    def drop(link: Any) -> None:
        while link.recv(4096):
            pass

    def measured(end: Any) -> Measurement:
        (task, *_) = experiment.tasks(experiment.options(), Plan())
        with end.task():
            return experiment.measure(task, end)

    with serving(tmp_path) as server, mobile_end(server, Plan()) as end, scripted(drop) as dropping:
        assert measured(end).values == {"answered": True, "answered_by_free_port": True}
        ports = msgspec.structs.replace(end.about.ports, http=dropping)
        end.about = msgspec.structs.replace(end.about, ports=ports)
        assert measured(end).values == {"answered": False, "answered_by_free_port": True}


def test_a_check_makes_the_experiment_of_another_distribution(installed: Installed, tmp_path: Path) -> None:
    def answer(link: Any) -> None:
        if link.recv(4096):
            link.sendall(b"HTTP/1.1 200 OK\r\nVia: 1.1 box\r\nConnection: close\r\n\r\n")

    with scripted(answer) as port:
        (tmp_path / "targets.txt").write_text(f"127.0.0.1 {port} plain\n")
        words = ("check", "--targets", str(tmp_path / "targets.txt"), "--json", "--no-capture")
        found = json.loads(installed.python(*COMMAND, *words).stdout)
    (place,), (judged,) = found["places"], found["ports"]
    assert place["experiments"]["declared-intermediaries"] == {"via": "1.1 box"}
    assert "Answers came via 1.1 box." in {each["sentence"] for each in judged["findings"]}


BROKEN = {
    "hop_limit = absent:METHOD": "the plug-in hop_limit (absent:METHOD) of pepscope.methods cannot be loaded",
    "hop_limit = broken:METHOD": "cannot be loaded (ZeroDivisionError: division by zero)",
    "hop_limit = plain:EXAMINE": "must be a Method",
    "hop_limit = plain:TEARDOWN": "must have a name that no method of pepscope has: teardown",
    "hop_limit = plain:AGAIN": "two findings have the key acknowledged-beyond-abort",
}
PLAIN = """
from detector.method import Method, by_connection
from pepscope.results.finding import Finding, Weight, split

class AgainFinding(Finding):
    AGAIN = split("acknowledged-beyond-abort", Weight("hops", -1.0, 0.0, 0.0, 0.0, "Test."))

EXAMINE = by_connection(lambda observation: None)
TEARDOWN = Method("teardown", "hop limit", (), EXAMINE)
AGAIN = Method("hop_limit", "hop limit", (AgainFinding,), EXAMINE)
"""


@pytest.mark.parametrize(("entry", "said"), BROKEN.items())
def test_an_entry_point_that_cannot_be_used_ends_detect_with_one_sentence(
    tmp_path: Path, entry: str, said: str
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "plain.py").write_text(PLAIN)
    metadata = tmp_path / "additions-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: additions\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[pepscope.methods]\n{entry}\n")
    done = Installed(tmp_path).python(*COMMAND, "detect", *SPLIT, "--json", status=2)
    assert done.stdout == ""
    (sentence,) = done.stderr.splitlines()
    assert said in sentence


def test_the_examples_are_ours_with_one_line_of_a_registry(tmp_path: Path) -> None:
    for path in ("detector", "pepscope", "prober", "reports"):
        shutil.copytree(ROOT / path, tmp_path / path, ignore=shutil.ignore_patterns("__pycache__"))
    for file, code in blocks("paste").items():
        (tmp_path / file).write_text(code, encoding="utf-8")
    for file, line in blocks("import").items():
        assert line.count("\n") == 1
        source = (tmp_path / file).read_text(encoding="utf-8")
        (tmp_path / file).write_text(re.sub(r"^from (detector|prober)\.", rf"{line}\g<0>", source, count=1, flags=re.M))
    lines = blocks("line")
    assert set(lines) == {
        "detector/methods/__init__.py METHODS",
        "prober/experiments/registry.py BUILT_IN",
        "prober/check/registry.py BUILT_IN",
        "setup.cfg pepscope.writers",
    }
    for place, line in lines.items():
        file, registry = place.split()
        assert line.count("\n") == 1
        if file.endswith(".py"):
            source = (tmp_path / file).read_text(encoding="utf-8")
            listed = re.search(rf"^{registry}: .*\(\n(?:.*\n)*?(?=^\)$)", source, re.M)
            assert listed is not None, place
            (tmp_path / file).write_text(source[: listed.end()] + line + source[listed.end() :], encoding="utf-8")
    program = (
        "import importlib, sys\n"
        "from detector.methods import METHODS, findings\n"
        "from prober.experiments.registry import BUILT_IN, findings as of_experiments\n"
        "from prober.check.registry import BUILT_IN as OF_CHECK\n"
        "module, _, name = sys.argv[1].split()[2].partition(':')\n"
        "assert callable(getattr(importlib.import_module(module), name))\n"
        "print(METHODS[-1].title, BUILT_IN[-1].title, OF_CHECK[-1].title, sep='\\n')\n"
        "assert {'other-hop-limit', 'half-close-dropped'} <= {*findings(), *of_experiments()}\n"
    )
    line = lines["setup.cfg pepscope.writers"]
    assert line.startswith("    markdown = reports.detection.markdown_table:")
    done = Installed(tmp_path).python("-c", program, line.strip(), tree=tmp_path)
    assert done.stdout.splitlines() == ["hop limit", "half-closed connections", "declared intermediaries"]
