"""Options that say where reports go, as every command that reports has them."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pepscope.command_line.reports import Destination
from pepscope.errors import UsageError

PEPSCOPE = str(Path(sys.executable).with_name("pepscope"))
SPLIT = Path(__file__).parents[3] / "examples/split"
SERVER, MOBILE = str(SPLIT / "server.pcap.gz"), str(SPLIT / "mobile.pcap.gz")


def run(*words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([PEPSCOPE, *words], capture_output=True, input=stdin, timeout=600)


def test_reports_go_to_files_and_one_to_standard_output(tmp_path: Path) -> None:
    paths = {name: tmp_path / f"v.{name}" for name in ("json", "jsonl", "parquet", "junit", "sarif", "html")}
    files = [word for name, path in paths.items() for word in (f"--{name}", str(path))]
    done = run("detect", SERVER, *files, MOBILE, "--csv", "-")
    assert done.returncode == 0
    (row,) = csv.DictReader(done.stdout.decode().splitlines())
    assert row["verdict"] == "split-tcp"
    assert json.loads(paths["json"].read_text())["pairs"][0]["verdict"] == "split-tcp"
    assert json.loads(paths["sarif"].read_text())["runs"][0]["results"]
    written = [line.removeprefix("wrote ") for line in done.stderr.decode().splitlines()]
    assert {str(path) for path in paths.values()} <= set(written)
    assert {Path(path) for path in written} == set(tmp_path.iterdir())


def test_the_table_stands_where_no_report_does(tmp_path: Path) -> None:
    table = run("detect", SERVER, MOBILE).stdout
    assert b"1 split-tcp" in table
    assert run("detect", SERVER, MOBILE, f"--json={tmp_path / 'verdicts'}").stdout == table
    assert run("detect", SERVER, MOBILE, "--html", "-").stdout.startswith(b"<!doctype html>")


@pytest.mark.parametrize("words", [("--json", SERVER, MOBILE), (SERVER, "--json", MOBILE), (SERVER, MOBILE, "--json")])
def test_an_option_alone_takes_no_capture_for_its_file(words: tuple[str, ...]) -> None:
    assert len(json.loads(run("detect", *words).stdout)["captures"]) == 2


def test_a_dash_is_both_streams_where_no_capture_is_given() -> None:
    content = Path(SERVER).read_bytes()
    for words in (("-", "--json"), ("--json", "-"), ("--json=-", "-")):
        assert json.loads(run("inspect", *words, stdin=content).stdout)["path"] == "-"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("detect", SERVER, MOBILE, "--json", "--csv"), "--json and --csv write to one standard output"),
        (("detect", SERVER, MOBILE, "--html", "-", "--json", "-"), "--json and --html write to one standard output"),
        (("inspect", SERVER, "--csv", "--parquet"), "--csv and --parquet write to one standard output"),
        (
            ("detect", SERVER, MOBILE, "--html", "/nowhere/page.html"),
            "/nowhere/page.html cannot be written: No such file or directory",
        ),
        (("inspect", SERVER, "--json=/"), "is a directory"),
        (("detect", SERVER, MOBILE, "-q", "-v"), "--quiet and --verbose exclude each other"),
    ],
)
def test_what_cannot_be_written_is_refused_first(words: tuple[str, ...], sentence: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert sentence in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_no_report_takes_the_place_of_what_is_read_or_of_another(tmp_path: Path) -> None:
    capture, link, page = tmp_path / "a.pcap.gz", tmp_path / "link", tmp_path / "page"
    capture.write_bytes(Path(SERVER).read_bytes())
    link.symlink_to(capture)
    page.write_text("older")
    for words, sentence in (
        (
            ("detect", str(capture), MOBILE, "--html", str(link)),
            f"--html must name another file than what is read, got {link}",
        ),
        (("inspect", str(link), f"--csv={capture}"), f"--csv must name another file than what is read, got {capture}"),
        (
            ("detect", str(capture), MOBILE, f"--csv={page}", "--html", f"{tmp_path}/./page"),
            f"--csv and --html must name different files, got {tmp_path}/./page for both",
        ),
        (
            ("annotate", str(capture), "-o", str(tmp_path / "copies"), f"--json={capture}"),
            "--json must name another file than what is read",
        ),
        (("inspect", str(capture), "--json", "-o", str(link)), "--output must name another file than what is read"),
        (("trace", str(capture), "--from", "capture", "-o", str(link)), "--output must name another file than what"),
        (("host-times", MOBILE, str(capture), "-o", str(link)), "--output must name another file than what is read"),
    ):
        done = run(*words)
        assert (done.returncode, done.stdout) == (2, b"")
        assert sentence in done.stderr.decode()
    assert capture.read_bytes() == Path(SERVER).read_bytes()
    assert page.read_text() == "older"


def test_a_place_where_no_file_can_be_made_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK or not Path(path).is_dir())
    there = tmp_path / "there"
    there.write_text("older")
    for path in (there, tmp_path / "new"):
        with pytest.raises(UsageError, match=f"^{path} cannot be written: no file can be made in {tmp_path}.$"):
            Destination().convert(str(path), None, None)
    assert Destination().convert("/dev/null", None, None) == "/dev/null"


def test_a_third_name_may_be_meant_for_the_report() -> None:
    assert (
        b"add --one-vantage if all were taken at one, or --json=FILE"
        in run("detect", SERVER, MOBILE, "--json", "out").stderr
    )
    assert b"=FILE" not in run("detect", SERVER, MOBILE, MOBILE).stderr


def test_a_device_gets_the_table_and_nothing_stands_beside_it(tmp_path: Path) -> None:
    device = tmp_path / "device"
    os.mkfifo(device)
    for option in ("--csv", "--parquet"):
        with subprocess.Popen(["cat", str(device)], stdout=subprocess.PIPE) as reader:
            done = run("detect", SERVER, MOBILE, f"{option}={device}")
            assert reader.communicate(timeout=600)[0]
        assert done.stderr.decode() == f"wrote {device}\n"
    assert list(tmp_path.iterdir()) == [device]


def test_one_report_a_file_in_inspect(tmp_path: Path) -> None:
    done = run("inspect", SERVER, "--json", str(tmp_path / "a.json"), "--csv", str(tmp_path / "a.csv"))
    assert done.stdout == b""
    assert (tmp_path / "a.json").read_bytes() == run("inspect", SERVER, "--json").stdout
    assert (tmp_path / "a.csv").read_bytes() == run("inspect", SERVER, "--csv").stdout


@pytest.mark.parametrize(
    "words",
    [
        ("model", "throughput", "--loss", "0.01", "--round-trip", "0.1"),
        ("simulate", "--list"),
        ("doctor",),
        ("annotate", SERVER, MOBILE, "-o", "copies", "--force"),
    ],
)
def test_commands_of_one_document_write_it_to_a_file(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run(*words, "--json")
    done = run(*words, "--json", "report.json")
    assert (done.returncode, done.stdout) == (shown.returncode, b"")
    assert json.loads((tmp_path / "report.json").read_text()) == json.loads(shown.stdout)
    assert b"wrote report.json" in done.stderr


def test_a_command_that_fails_leaves_an_older_report(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text("older")
    assert run("model", "throughput", "--loss", "2", "--round-trip", "0.1", "--json", str(report)).returncode == 2
    assert run("detect", SERVER, str(tmp_path / "missing.pcap"), "--json", str(report)).returncode == 2
    assert report.read_text() == "older"


def test_quiet_leaves_the_exit_status_and_verbose_says_the_steps() -> None:
    quiet = run("detect", SERVER, MOBILE, "--quiet", "--fail-on", "split")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (1, b"", b"")
    assert (run("inspect", SERVER, "-q").stdout, run("inspect", SERVER, "-q", "--json").stdout[:1]) == (b"", b"{")
    steps = run("detect", SERVER, MOBILE, "--verbose").stderr.decode().splitlines()
    assert [line.split("info: ")[1].split()[0] for line in steps] == ["read", "read", "paired;", "judged;"]
