"""The client as it is shipped: in a Python without packages it measures against a real server."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from prober.archive.archive_file import open_archive
from prober.commands.default_plan import default_plan
from prober.lean.packing import files_of_client, write_single_file, write_wheel
from prober.measurement.task import Status
from tests.prober.serving import PEPSCOPE, Serving, serving, without_root

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
PLAN = "[limits]\npatience_s = 20\n[experiments.transfers]\nsizes_bytes = [20_000]\nrepeats = 1\n[experiments.cache]\n"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("client") / "pepscope-client.pyz"
    write_single_file(file)
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("state")) as running:
        yield running


def started(client: Path, directory: Path, *words: object, key: str = "", prefix: tuple[str, ...] = ()):
    """Without the packages of this environment (-S) and without its variables (-I)."""
    return subprocess.run(
        [*prefix, sys.executable, "-I", "-S", str(client), *map(str, words)],
        cwd=directory,
        env={**os.environ, "PEPSCOPE_PROBE_KEY": key},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize("prefix", [(), tuple(without_root())])
def test_it_runs_a_plan_and_the_full_package_judges_the_archive(client, server, tmp_path, prefix) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    tmp_path.chmod(0o777)
    words = ("probe", "run", plan, "--server", server.server, "-o", tmp_path)
    done = started(client, tmp_path, *words, "--note", "cell=7", key=server.key, prefix=prefix)
    assert done.returncode == 0, done.stderr
    assert "does not judge" in done.stderr
    archive = Path(done.stdout.splitlines()[-1])
    assert f"pepscope audit {archive.name}" in done.stderr
    with open_archive(archive) as read:
        assert {each.status for each in read.observations} == {Status.DONE}
        assert all(each.measurement.values["intact"] for each in read.observations if "intact" in
                   each.measurement.values)  # fmt: skip
        assert read.metadata["notes"] == {"cell": "7"}
        captured = [each for each in read.observations if each.task.captured]
        if prefix:
            assert all("CAP_NET_RAW" in each.capture_note for each in captured)
        else:
            assert captured
            assert all(each.mobile_capture in read.captures for each in captured)
    judged = subprocess.run(
        [str(PEPSCOPE), "audit", str(archive), "--json"], capture_output=True, text=True, timeout=600, check=False
    )
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["runs"]


def test_what_it_cannot_do_is_said_by_name(client, server, tmp_path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(default_plan())
    words = ("probe", "run", plan, "--server", server.server, "--dry-run", "--json")
    done = started(client, tmp_path, *words, key=server.key, prefix=tuple(without_root()))
    document = json.loads(done.stdout)
    assert "CAP_NET_RAW" in document["without_captures"]["mobile-capture"]
    reasons = " ".join(reason for each in document["experiments"] for reason in each["impossible"])
    assert "ImportError" not in reasons
    held = next(each for each in document["experiments"] if each["name"] == "delayed-ack")["impossible"]
    assert any(reason.startswith("mobile-hold: ") for reason in held)


def test_its_plan_is_the_default_plan(client, tmp_path) -> None:
    assert started(client, tmp_path, "probe", "plan").stdout == default_plan()


def test_its_check_says_its_plan_and_its_errors(client, tmp_path) -> None:
    targets = tmp_path / "targets.txt"
    targets.write_text("127.0.0.1 9 plain\n")
    plan = started(client, tmp_path, "check", "--targets", targets, "--dry-run")
    assert (plan.returncode, plan.stdout) == (0, "")
    assert "contacts: 127.0.0.1; port 9; IPv4" in plan.stderr
    targets.write_text("no-such-host.invalid 80\n")
    failed = started(client, tmp_path, "check", "--targets", targets)
    assert failed.returncode == 2
    assert failed.stderr.startswith("pepscope-client: no target can be resolved; no-such-host.invalid: ")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("judge",), "a command must be check, probe plan, probe run, probe upload or probe withdraw, got judge"),
        (("probe", "run", "none.toml"), "none.toml: No such file or directory"),
        (("probe", "run", "bad.toml"), "limits.tries must be a whole number between 1 and 100, got 0"),
    ],
)
def test_its_errors_are_sentences(client, tmp_path, words, sentence) -> None:
    (tmp_path / "bad.toml").write_text("[limits]\ntries = 0\n")
    done = started(client, tmp_path, *words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("pepscope-client: ")
    assert done.stderr.splitlines()[-1].endswith(sentence)


def test_a_platform_without_a_module_is_named() -> None:
    program = (
        "import sys; sys.modules['fcntl'] = None; from prober.lean.__main__ import main; "
        "sys.exit(main(['probe', 'run', 'plan.toml']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stderr) == (
        2, f"pepscope-client: this needs Python's module fcntl, which {sys.platform} does not have\n"
    )  # fmt: skip


def test_all_of_it_needs_the_standard_library_alone() -> None:
    """Every module that it holds, where nothing else can be imported."""
    names = sorted(name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files_of_client()
                   if name.endswith(".py"))  # fmt: skip
    assert {"prober.run.runner", "prober.experiments.gain", "prober.check.judging", "prober.host.hold.tun_hold",
            "prober.client.applications.ftp"} <= set(names)  # fmt: skip
    program = f"""
import importlib, sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if name == "pepscope._core" or top not in sys.stdlib_module_names | {{"pepscope", "prober"}}:
            raise ModuleNotFoundError(f"{{name}} was imported", name=name)
sys.meta_path.insert(0, Nothing())
from prober.lean.msgspec_subset import modules
sys.modules.update(modules())
for name in {names}:
    importlib.import_module(name)
"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_wheel_installs_and_lists_its_files(tmp_path) -> None:
    wheel = write_wheel(tmp_path)
    again = write_wheel(tmp_path / "again")
    assert wheel.read_bytes() == again.read_bytes(), "the same bytes each time"
    with zipfile.ZipFile(wheel) as archive:
        record = next(name for name in archive.namelist() if name.endswith("/RECORD"))
        rows = list(csv.reader(archive.read(record).decode().splitlines()))
        assert {row[0] for row in rows} == set(archive.namelist())
        for name, digest, size in rows[:-1]:
            content = archive.read(name)
            assert len(content) == int(size)
            own = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            assert digest == f"sha256={own}"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target",
               str(tmp_path / "site"), str(wheel)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    program = tmp_path / "site" / "bin" / "pepscope-client"
    done = subprocess.run(
        [str(program), "probe", "plan"], env={"PYTHONPATH": str(tmp_path / "site")}, cwd=tmp_path,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr, done.stdout) == (0, "", default_plan())


def test_the_single_file_is_small(client) -> None:
    assert client.stat().st_size < 400_000
    with zipfile.ZipFile(client) as archive:
        assert not [name for name in archive.namelist() if name.endswith((".so", ".pyc"))]
        assert "prober/server" not in " ".join(archive.namelist())
