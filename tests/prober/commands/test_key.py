"""`pepscope probe key` as its user meets it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from prober.commands.probe import probe
from prober.protocol.control_messages import Key
from prober.server.identity import StateDirectory
from prober.server.keys.key_file import KeyFile
from prober.server.keys.key_ring import KeyRing
from tests.prober.serving import PEPSCOPE

SCHEMAS = Path(__file__).parents[3] / "pepscope" / "schemas"


def run(*words: str) -> Result:
    return CliRunner().invoke(probe, ["key", *words])


def added(state: Path, name: str, *options: str) -> Key:
    result = run("add", name, "--state", str(state), *options)
    assert result.exit_code == 0, result.output
    return Key.parse(result.stdout.removeprefix("KEY "))


def listed(state: Path) -> dict[str, Any]:
    document = json.loads(run("list", "--json", "--state", str(state)).stdout)
    jsonschema.validate(document, json.loads((SCHEMAS / "probe-keys-1.json").read_text()))
    return {entry["name"]: entry for entry in document["keys"]}


def test_keys_are_made_before_the_first_start_listed_and_revoked(tmp_path: Path) -> None:
    key = added(
        tmp_path, "alice", "--sessions", "2", "--connections", "9", "--day-bytes", "2GiB", "--capture-bytes", "1GiB",
        "--archive-bytes", "3GiB",
    )  # fmt: skip
    state = StateDirectory(tmp_path)
    try:
        own = state.identity().key
        assert key.fingerprint == own.fingerprint
        assert KeyRing(KeyFile(tmp_path), own.token).find(key.token).name == "alice"
        assert list(listed(tmp_path)) == ["default", "alice"]
        assert listed(tmp_path)["alice"]["quotas"] == {
            "sessions": 2, "connections": 9, "day_bytes": 2 << 30, "capture_bytes": 1 << 30,
            "archive_bytes": 3 << 30,
        }  # fmt: skip
        reader = added(tmp_path, "reader", "--reads-all")
        assert KeyRing(KeyFile(tmp_path), own.token).find(reader.token).reads_all
        assert [entry["reads_all"] for entry in listed(tmp_path).values()] == [False, False, True]
        assert run("revoke", "reader", "--state", str(tmp_path)).exit_code == 0
        assert run("revoke", "alice", "--state", str(tmp_path)).output == "revoked alice\n"
        assert listed(tmp_path)["alice"]["revoked"]
        table = run("list", "--state", str(tmp_path)).stdout
        assert [line.split()[0] for line in table.splitlines()] == ["NAME", "default", "reader", "alice"]
        assert table.splitlines()[-1].split()[2:7] == ["2", "9", "2GiB", "1GiB", "3GiB"]
        assert key.token not in table
    finally:
        state.close()


def test_the_next_start_replaces_the_servers_own_key_once_it_is_revoked(tmp_path: Path) -> None:
    def own() -> Key:
        state = StateDirectory(tmp_path)
        state.close()
        return state.identity().key

    first = own()
    assert own() == first
    assert run("revoke", "default", "--state", str(tmp_path)).exit_code == 0
    assert listed(tmp_path)["default"]["revoked"]
    second = own()
    assert second.fingerprint == first.fingerprint
    assert second.token != first.token
    assert own() == second


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("list",), "the state directory must be a probe server's, got"),
        (("revoke", "x"), "the state directory must be a probe server's, got"),
        (("add", "a b"), "the name of a key must be at most 40 letters, digits"),
        (("add", "default"), "a key must have another name than the server's own, default"),
        (("add", "a", "--sessions", "0"), "0 is not in the range"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    done = subprocess.run(
        [PEPSCOPE, "probe", "key", *words, "--state", str(tmp_path)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("pepscope: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_directory_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("x")
    assert run("add", "alice", "--state", str(tmp_path)).exit_code != 0
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
