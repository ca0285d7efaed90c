"""The tutorial of docs/guide/probing.md, pasted into a shell."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from prober.archive.archive_file import open_archive
from prober.commands.default_plan import default_plan
from prober.measurement.task import Status
from tests.prober.serving import PEPSCOPE

GUIDE = (Path(__file__).parents[3] / "docs" / "guide" / "probing.md").read_text(encoding="utf-8")
SPLIT = {"HTTP data", "HTTP image"}


def pasted(heading: str) -> str:
    """The commands of a section, here-documents included."""
    block = GUIDE.partition(f"## {heading}\n")[2].partition("```console\n")[2].partition("```")[0]
    return re.sub(r"^\$ ", "", block, flags=re.MULTILINE)


def matrix(text: str) -> dict[str, list[str]]:
    """Verdicts down and up of each application, from the table on the terminal."""
    rows = text.partition("APPLICATION")[2].splitlines()[1:6]
    return {row[:14].strip(): re.findall(r"regular|split-tcp|tcp-proxy|inconclusive|-(?= )", row[14:]) for row in rows}


def test_the_tutorial_on_one_machine_works_as_pasted(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{PEPSCOPE.parent}:{os.environ['PATH']}", "COLUMNS": "80"}
    done = subprocess.run(
        ["bash", "-e", "-c", pasted("One machine")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    audited, _, again = done.stdout.rpartition("APPLICATION")
    shown, shown_again = matrix(audited), matrix(f"APPLICATION{again}")
    assert shown == shown_again, "an archive gives the same verdicts later"
    assert shown == matrix(GUIDE), "the guide shows what comes out"
    assert {name for name, verdicts in shown.items() if verdicts != ["regular", "regular"]} == SPLIT
    assert "<html" in (tmp_path / "audit.html").read_text(encoding="utf-8")[:1000]
    (path,) = (tmp_path / "runs").iterdir()
    key = re.findall(r"^KEY (\S+)", (tmp_path / "server.txt").read_text(), flags=re.MULTILINE)[0]
    with open_archive(path) as archive:
        assert archive.manifest.complete
        assert {item.status for item in archive.observations} == {Status.DONE}
        assert key.split(".")[1] not in json.dumps(dict(archive.metadata))


def test_the_guides_numbers_of_the_default_plan_hold(tmp_path: Path) -> None:
    import tomllib

    from prober.plan import Plan
    from prober.run.dry_run import dry_run

    outlook = dry_run(Plan.from_mapping(tomllib.loads(default_plan())))
    reported = re.search(r"about (\d+) MB up and (\d+) MB down", GUIDE)
    assert reported is not None
    assert outlook.bytes_up / 1e6 == pytest.approx(int(reported[1]), rel=0.15)
    assert outlook.bytes_down / 1e6 == pytest.approx(int(reported[2]), rel=0.15)
    assert 720 <= outlook.expected_s <= 960, "a quarter of an hour"
