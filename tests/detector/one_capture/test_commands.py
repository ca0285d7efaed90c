"""`pepscope detect` with one vantage point as a user meets it: options, formats and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from detector.commands.detect import detect as command
from detector.detection import detect
from detector.one_capture import connections
from pepscope.errors import PepscopeError, UsageError
from pepscope.results.schema import load_schema
from tests.detector.one_capture.real_networks import CAPTURES, named

SPLIT = str(named("lte-relay.server").path)
WHOLE = str(named("lte-regular.server").path)
OTHER = str(named("umts-nat.server").path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, [*arguments])


def groups(*arguments: str) -> list[dict[str, object]]:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    jsonschema.validate(document, load_schema("detect-2"))
    found: list[dict[str, object]] = document["groups"]
    return found


def refused(*arguments: str) -> str:
    """The one sentence of a refusal with exit status 2: an error of ours, which the command prints."""
    error = run(*arguments).exception
    assert isinstance(error, PepscopeError), error
    assert error.exit_status == 2
    assert "\n" not in str(error)
    return str(error)


def test_three_captures_of_one_vantage_point_are_one_result() -> None:
    found = groups("--one-vantage", SPLIT, WHOLE, OTHER)
    assert {group["side"] for group in found} == {"server"}
    networks = {truth.network for name in (SPLIT, WHOLE, OTHER) for truth in _of(name)}
    assert {group["network"] for group in found} == networks


def test_the_table_is_written_without_what_only_reports_state(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(SPLIT)
    assert expected.exit_code == 0

    def refuse(*_: object) -> None:
        raise AssertionError("evidence on connections is asked for")

    monkeypatch.setattr(connections, "exchange_evidence_columns", refuse)
    assert run(SPLIT).stdout == expected.stdout
    with pytest.raises(AssertionError, match="evidence on connections"):
        detect(SPLIT).to_json()


def _of(path: str):
    return next(captured.truths for captured in CAPTURES if str(captured.path) == path)


def test_order_of_the_files_does_not_matter() -> None:
    def told(*paths: str) -> list[tuple[object, ...]]:
        return [(g["network"], g["port"], g["verdict"], g["exchanges"]) for g in groups("--one-vantage", *paths)]

    assert told(SPLIT, WHOLE) == told(WHOLE, SPLIT)


def test_one_capture_needs_no_word_about_its_vantage_point() -> None:
    assert groups(OTHER) == groups("--one-vantage", OTHER)


def test_several_captures_need_it() -> None:
    assert "--one-vantage" in refused(SPLIT, WHOLE, OTHER)


def test_one_capture_is_given_once() -> None:
    assert SPLIT in refused("--one-vantage", SPLIT, WHOLE, SPLIT)


def test_a_missing_file_among_several_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pcap")
    assert missing in refused("--one-vantage", SPLIT, missing)


def test_standard_input_is_one_file() -> None:
    assert "standard input" in refused("--one-vantage", "-", "-")


@pytest.mark.parametrize("side", ["client", "server"])
def test_the_user_says_where_it_was_taken(side: str) -> None:
    assert {group["side"] for group in groups("--taken-at", side, OTHER)} == {side}
    assert {group["side"] for group in groups("--one-vantage", "--taken-at", side, OTHER, WHOLE)} == {side}


def test_nowhere_else_is_a_capture_taken() -> None:
    assert "--taken-at" in run("--taken-at", "router", OTHER).output


def test_a_table_names_networks(tmp_path: Path) -> None:
    table = tmp_path / "networks.csv"
    table.write_text("10.130.0.0/16,Mobile\n10.130.18.0/24,Lab\n100.64.0.0/10,Carrier\n")
    found = groups("--one-vantage", "--networks", str(table), WHOLE, OTHER)
    assert {group["network"] for group in found} == {"Mobile", "Lab", "Carrier"}
    table.write_text("0.0.0.0/0,All\n")
    together = groups("--one-vantage", "--networks", str(table), WHOLE, OTHER)
    assert [(group["network"], group["port"]) for group in together] == [("All", p) for p in (80, 443, 2525, 8443)]
    hosts = {row["host"] for group in together for row in group["by_host"]}  # type: ignore[attr-defined]
    assert len(hosts) == 3


@pytest.mark.parametrize(
    "content", [b"10.0.0.0/33,Lab\n", b"hello\n", bytes(range(256)), b"10.0.0.0/8,A\n10.0.0.0/8,B\n"]
)
def test_a_table_that_is_none_is_one_sentence(content: bytes, tmp_path: Path) -> None:
    table = tmp_path / "networks.csv"
    table.write_bytes(content)
    assert str(table) in refused("--networks", str(table), OTHER)
    assert str(table) in refused("--networks", str(table), "--one-vantage", OTHER, WHOLE)


def test_a_table_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.csv"):
        assert str(path) in refused("--networks", str(path), OTHER)


def test_an_empty_table_leaves_prefixes(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_bytes(b"")
    assert groups("--networks", str(tmp_path / "empty.csv"), OTHER) == groups(OTHER)


def test_two_ends_have_no_table_of_networks(tmp_path: Path) -> None:
    (tmp_path / "networks.csv").write_text("10.0.0.0/8,Lab\n")
    assert "one vantage point" in refused("--networks", str(tmp_path / "networks.csv"), SPLIT, WHOLE)


@pytest.mark.parametrize(
    "option", [("--clocks", "offset"), ("--same-transfers",), ("--drift-limit", "100"), ("--least-pairing", "0.5")]
)
def test_one_vantage_point_has_no_options_of_two_ends(option: tuple[str, ...]) -> None:
    """An interface is refused before anything is captured: this one does not even exist."""
    sentence = f"{option[0]} is for the captures of two ends, got "
    for captures in ((OTHER,), ("-i", "nowhere0")):
        assert refused(*captures, *option) == f"{sentence}one capture"
    for vantage in ((OTHER,), (OTHER, WHOLE)):
        assert refused("--one-vantage", *vantage, *option) == f"{sentence}--one-vantage"


@pytest.mark.parametrize(
    "option",
    [{"clocks": "offset"}, {"same_transfers": True}, {"drift_limit_ppm": 100}, {"least_pairing_confidence": 0.5}],
    ids=lambda option: next(iter(option)),
)
def test_the_library_refuses_them_too(option: dict[str, Any]) -> None:
    sentence = f"{next(iter(option))} is for the captures of two ends, got one capture"
    with pytest.raises(UsageError, match=f"^{sentence}$"):
        detect("no such file", **option)


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"memory_bytes": -1}, "memory_bytes must be 0 or above, got -1"),
        ({"ack_delay_s": float("inf")}, "the ACK delay must be a time greater than 0 s, got inf"),
    ],
)
def test_numbers_of_a_program_are_checked(option: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{sentence}$"):
        detect("no such file", **option)


def test_delayed_acknowledgements_are_looked_for_in_one_capture() -> None:
    pairs = json.loads(run(OTHER, "--ack-delay", "1s", "--json").stdout)["pairs"]
    assert "delayed_ack" in {piece["method"] for pair in pairs for piece in pair["evidence"]}


@pytest.mark.parametrize("option", [("--one-vantage",), ("--taken-at", "server"), ("--networks", "networks.csv")])
def test_archives_say_themselves_where_they_were_taken(option: tuple[str, ...], tmp_path: Path) -> None:
    archive = tmp_path / "run.zip"
    archive.write_bytes(b"PK\x03\x04" + bytes(26))
    assert option[0] in refused(*option, str(archive))


def test_fail_on_hears_groups() -> None:
    assert run("--fail-on", "split", SPLIT).exit_code == 1
    assert run("--fail-on", "split", OTHER).exit_code == 0
    assert run("--fail-on", "regular", OTHER).exit_code == 1


@pytest.mark.parametrize("output", ["--jsonl", "--csv"])
def test_lines_have_one_a_connection(output: str) -> None:
    done = run(output, OTHER)
    assert done.exit_code == 0
    assert done.stdout.count("\n") >= 8


def test_the_table_shows_groups_before_connections() -> None:
    done = run(SPLIT)
    assert done.exit_code == 0
    assert "10.45.0.0/24" in done.stdout
    assert done.stdout.index("10.45.0.0/24") < done.stdout.index("10.45.0.2:")


def test_every_output_is_written(tmp_path: Path) -> None:
    files = {name: tmp_path / f"out.{name}" for name in ("html", "parquet", "junit")}
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    assert run(OTHER, *options).exit_code == 0
    assert run("--one-vantage", OTHER, WHOLE, *options).exit_code == 0
    assert all(path.stat().st_size > 100 for path in files.values())


def test_errors_of_the_library_are_of_ours() -> None:
    from detector.detection import detect_vantage

    with pytest.raises(UsageError, match="once"):
        detect_vantage([SPLIT, SPLIT])
    with pytest.raises(UsageError, match="probability"):
        detect_vantage([SPLIT], least_probability=0.2)
