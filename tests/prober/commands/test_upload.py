"""`probe upload` and `--upload`, of pepscope and of the client that needs Python alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from prober.archive.archive_file import open_archive
from prober.lean.packing import write_single_file
from prober.server.archives.stored_archive import stored_archives
from tests.prober.runs_made_by_hand import whole_run
from tests.prober.serving import PEPSCOPE, Serving, serving

SCHEMAS = Path(__file__).parents[3] / "pepscope" / "schemas"
PLAN = "[limits]\npatience_s = 20\n[experiments.transfers]\nsizes_bytes = [20_000]\nrepeats = 1\n"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def server(state: Path) -> Iterator[Serving]:
    with serving(state) as running:
        yield running


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("client") / "pepscope-client.pyz"
    write_single_file(file)
    return file


@pytest.fixture(params=["pepscope", "lean"])
def words(request: pytest.FixtureRequest, client: Path) -> list[str]:
    """What either client begins with; the lean one has neither packages nor variables of this environment."""
    return [str(PEPSCOPE)] if request.param == "pepscope" else [sys.executable, "-I", "-S", str(client)]


def run(words: list[str], *arguments: object, key: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*words, "probe", *map(str, arguments)],
        env={**os.environ, "PEPSCOPE_PROBE_KEY": key}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def names(state: Path) -> set[str]:
    return {each.name for each in stored_archives(state / "archives")}


def test_a_directory_is_uploaded_and_then_found_there(words, server, state, tmp_path) -> None:
    first, second = whole_run(tmp_path / "one.pepscope.zip"), whole_run(tmp_path / "two.pepscope.zip")
    second.write_bytes(second.read_bytes() + words[0].encode() + bytes(len(words)))  # other bytes for each client
    done = run(words, "upload", tmp_path, "--server", server.server, "--json", key=server.key)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads((SCHEMAS / "probe-upload-1.json").read_text()))
    assert [(Path(each["archive"]).name, each["uploaded"]) for each in document["archives"]] == [
        (first.name, True), (second.name, True)
    ]  # fmt: skip
    again = run(words, "upload", first, "--server", server.server, key=server.key)
    assert (again.returncode, again.stdout) == (0, f"{first.name} is at the server already (2.80 kB)\n")
    assert second.name in names(state)


def test_a_run_is_uploaded_where_it_ends(words, server, state, tmp_path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    done = run(words, "run", plan, "--server", server.server, "-o", tmp_path, "--upload", key=server.key)
    assert done.returncode == 0, done.stderr
    archive = Path(done.stdout.splitlines()[-1])
    assert f"{archive.name} is at the server (" in done.stderr
    (record,) = [each for each in stored_archives(state / "archives") if each.name == archive.name]
    with open_archive(state / "archives" / "default" / f"{record.sha256}.zip") as read:
        assert read.observations


def test_an_audit_uploads_its_archive_too(server, state, tmp_path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    done = subprocess.run(
        [str(PEPSCOPE), "audit", str(plan), "--server", server.server, "-o", str(tmp_path), "--upload"],
        env={**os.environ, "PEPSCOPE_PROBE_KEY": server.key}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    (archive,) = tmp_path.glob("*.pepscope.zip")
    assert f"{archive.name} is at the server (" in done.stderr, done.stderr
    assert archive.name in names(state)


def test_a_refused_archive_keeps_no_other_back(words, tmp_path) -> None:
    small = whole_run(tmp_path / "b-small.pepscope.zip")
    large = tmp_path / "a-large.pepscope.zip"
    large.write_bytes(b"PK\x03\x04" + bytes(50_000))
    with serving(tmp_path / "state", options=("--set", "archives.archive_bytes=40_000")) as server:
        done = run(words, "upload", tmp_path, "--server", server.server, key=server.key)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"{large.name} was not uploaded: an archive must have at most 40000 bytes",
        f"{small.name} is at the server (2.80 kB)",
    ]


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("plan.toml", "plan.toml must be an archive of a run"),
        ("empty", "empty holds no archive of a run (*.pepscope.zip)"),
    ],
)
def test_what_is_no_archive_is_one_sentence(words, server, tmp_path, argument, sentence) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "empty").mkdir()
    done = run(words, "upload", tmp_path / argument, "--server", server.server, key=server.key)
    assert done.returncode == 2
    assert done.stderr.endswith(f"/{sentence}\n")
    assert done.stderr.count("\n") == 1


def test_a_wrong_server_or_key_is_one_sentence_soon(words, server, tmp_path) -> None:
    file = whole_run(tmp_path / "one.pepscope.zip")
    nowhere = run(words, "upload", file, "--server", "127.0.0.1:9", key=server.key)
    assert (nowhere.returncode, nowhere.stderr.count("\n")) == (2, 1)
    assert "tried: 127.0.0.1 port 9 (Connection refused)" in nowhere.stderr
    unnamed = run(words, "upload", file, key=server.key)
    assert unnamed.stderr.endswith("no server is named: give --server HOST, or server.host in the plan\n")
    token, fingerprint = server.key.split(".")[1:]
    wrong = run(words, "upload", file, "--server", server.server, key=f"pepscope1.{token[:-1]}x.{fingerprint}")
    assert (wrong.returncode, wrong.stdout) == (
        1, f"{file.name} was not uploaded: the token is missing or wrong\n"
    )  # fmt: skip
