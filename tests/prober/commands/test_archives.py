"""`pepscope probe archives` and `probe withdraw` as their users meet them."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from prober.commands.probe import probe
from prober.lean.packing import write_single_file
from tests.prober.runs_made_by_hand import whole_run
from tests.prober.serving import PEPSCOPE, Serving, serving

SCHEMAS = Path(__file__).parents[3] / "pepscope" / "schemas"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def server(state: Path) -> Iterator[Serving]:
    with serving(state) as running:
        yield running


def run(*words: object) -> Result:
    return CliRunner().invoke(probe, [*map(str, words)])


def uploaded(server: Serving, directory: Path, count: int) -> list[Path]:
    files = [whole_run(directory / f"{number}.pepscope.zip") for number in range(count)]
    for file in files:
        file.write_bytes(file.read_bytes() + str(file).encode())  # other bytes for each test
    done = run("upload", *files, "--server", server.server, "--key", server.key)
    assert done.exit_code == 0, done.output
    return files


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def document(result: Result, schema: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    jsonschema.validate(found, json.loads((SCHEMAS / f"{schema}.json").read_text()))
    return found


def listed(state: Path, *options: str) -> list[str]:
    result = run("archives", "list", "--state", state, "--json", *options)
    return [each["sha256"] for each in document(result, "probe-archives-1")["archives"]]


def test_an_operator_lists_and_deletes_while_the_server_runs(server: Serving, state: Path, tmp_path: Path) -> None:
    files = uploaded(server, tmp_path, 3)
    digests = [digest(file) for file in files]
    assert listed(state)[-3:] == digests, "in the order in which they came"
    assert listed(state, "--client", "nobody") == []
    lines = run("archives", "list", "--state", state).stdout.splitlines()
    assert lines[0].split() == ["RECEIVED", "CLIENT", "NETWORK", "BYTES", "SHA-256", "NAME"]
    assert lines[-1].split()[1:3] + lines[-1].split()[4:] == ["default", "127.0.0.0/24", digests[2][:12], files[2].name]
    deleted = run("archives", "delete", digests[0][:12], digests[1], "--state", state, "--json")
    assert [each["sha256"] for each in document(deleted, "probe-archives-1")["archives"]] == digests[:2]
    assert listed(state)[-1] == digests[2]
    assert not set(digests[:2]) & set(listed(state))
    again = run("upload", files[0], "--server", server.server, "--key", server.key, "--json")
    assert document(again, "probe-upload-1")["archives"][0]["found_bytes"] == 0
    everything = run("archives", "delete", "--client", "default", "--all", "--state", state)
    assert f"deleted {digests[2]} of default ({files[2].name})" in everything.output.splitlines()
    assert listed(state) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "name archives by SHA-256, or a client by --client NAME --all"),
        (["--all"], "name archives by SHA-256, or a client by --client NAME --all"),
        (["0" * 11], "an archive must be named by at least 12 digits of its SHA-256, got 00000000000"),
        (["0" * 12], "no stored archive has the SHA-256 000000000000"),
    ],
)
def test_nothing_is_deleted_for_what_is_not_there(
    server: Serving, state: Path, tmp_path: Path, words: list[str], sentence: str
) -> None:
    (file,) = uploaded(server, tmp_path, 1)
    named = words if words in ([], ["--all"]) else [digest(file), *words]
    done = subprocess.run(
        [str(PEPSCOPE), "probe", "archives", "delete", "--state", str(state), *named],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].endswith(sentence)
    assert digest(file) in listed(state)


def test_a_directory_that_is_no_servers_is_refused(tmp_path: Path) -> None:
    done = run("archives", "list", "--state", tmp_path)
    assert "must be a probe server's" in str(done.exception)


@pytest.mark.parametrize("is_lean", [False, True])
def test_a_client_withdraws_by_file_and_by_digest(server: Serving, state: Path, tmp_path: Path, is_lean: bool) -> None:
    words = [str(PEPSCOPE)]
    if is_lean:
        write_single_file(tmp_path / "client.pyz")
        words = [sys.executable, "-I", "-S", str(tmp_path / "client.pyz")]
    first, second = uploaded(server, tmp_path, 2)
    common = ["--server", server.server, "--key", server.key]
    unknown = "f" * 64

    def withdrawn(*named: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*words, "probe", "withdraw", *named, *common], capture_output=True, text=True, check=False, timeout=600
        )

    done = withdrawn(str(first), digest(second), unknown, "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    jsonschema.validate(found, json.loads((SCHEMAS / "probe-withdraw-1.json").read_text()))
    assert [(each["archive"], each["withdrawn"]) for each in found["archives"]] == [
        (str(first), True), (digest(second), True), (unknown, False),
    ]  # fmt: skip
    assert not {digest(first), digest(second)} & set(listed(state))
    again = withdrawn(str(first))
    assert again.stdout == f"{first} was not deleted: the server has no such archive of this key\n"
    missing = withdrawn("nothing")
    assert missing.returncode == 2
    assert missing.stderr.splitlines()[-1].endswith(
        "nothing must be an archive, or a SHA-256 in 64 digits: No such file or directory"
    )
