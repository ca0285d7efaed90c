"""The command as users and scripts meet it: real processes, output, exit status, no traceback."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import io
import json
import os
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import jsonschema
import pandas as pd
import pytest

from pepscope.results.schema import load_schema

CORPUS = Path(__file__).parents[1] / "corpus"
MANY = CORPUS / "reg_dl_par20.srv.pcap.gz"
ONE = CORPUS / "reg_dl_nat.srv.pcap.gz"
DAMAGED = CORPUS / "reg_dl_v6__cut.mob.pcap.gz"
PEPSCOPE = Path(sys.executable).with_name("pepscope")


def pepscope(*arguments: object, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([PEPSCOPE, *map(str, arguments)], input=stdin, capture_output=True, timeout=600, check=False)


def assert_one_sentence(done: subprocess.CompletedProcess[bytes], *words: str) -> None:
    message = done.stderr.decode()
    assert done.returncode == 2, message
    assert message.startswith("pepscope: ")
    assert message.count("\n") == 1, message
    assert done.stdout == b""
    for word in words:
        assert word in message


def test_table_fits_80_columns() -> None:
    done = pepscope("inspect", MANY)
    assert done.returncode == 0
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 23
    assert all(len(line) <= 80 for line in lines[1:])
    assert b"\x1b" not in done.stdout, "colours only on a terminal"


def test_the_head_of_a_table_counts_packets_as_detect_does() -> None:
    capture = Path(__file__).parents[2] / "examples" / "split" / "server.pcap.gz"
    head = pepscope("inspect", capture).stdout.decode().splitlines()[0]
    assert head == f"{capture}: 2,811 packets, 1 TCP connection"


def test_table_of_ipv6_and_damage() -> None:
    done = pepscope("inspect", DAMAGED)
    text = done.stdout.decode()
    assert done.returncode == 0
    assert "warning: " in text
    assert "damaged at byte" in text
    assert "\n      [2001:db8:" in text


def test_json_follows_its_schema() -> None:
    done = pepscope("inspect", "--json", "--digest", MANY)
    document = json.loads(done.stdout)
    jsonschema.validate(document, load_schema("inspect-1"))
    assert json.loads(pepscope("inspect", "--json", MANY).stdout) == document | {"sha256": None}
    assert len(document["connections"]) == 20
    assert document["packets"] == sum(one["packets"] for one in document["connections"])
    assert document["sha256"] == hashlib.sha256(MANY.read_bytes()).hexdigest()
    assert document["started"] < document["ended"]
    assert document["tool"]["options"] == {"filter": None}


def test_damage_is_in_the_json_and_on_standard_error() -> None:
    done = pepscope("inspect", "--json", DAMAGED)
    document = json.loads(done.stdout)
    jsonschema.validate(document, load_schema("inspect-1"))
    assert "damaged" in document["warnings"][0]
    assert b"damaged" in done.stderr
    assert document["connections"][0]["client"].startswith("[")


def test_csv_and_parquet_hold_the_same(tmp_path: Path) -> None:
    comma = pd.read_csv(io.BytesIO(pepscope("inspect", "--csv", MANY).stdout))
    target = tmp_path / "connections.parquet"
    assert pepscope("inspect", "--parquet", "-o", target, MANY).returncode == 0
    parquet = pd.read_parquet(target)
    assert list(comma.columns) == list(parquet.columns)
    assert list(comma["down_stream_bytes"]) == list(parquet["down_stream_bytes"])
    assert list(comma["client_address"]) == list(parquet["client_address"])


def test_standard_input_plain_and_compressed() -> None:
    compressed = MANY.read_bytes()
    expected = json.loads(pepscope("inspect", "--json", MANY).stdout)["connections"]
    for content in (compressed, gzip.decompress(compressed)):
        document = json.loads(pepscope("inspect", "--json", "-", stdin=content).stdout)
        assert document["connections"] == expected


def test_memory_changes_nothing() -> None:
    assert pepscope("inspect", "--json", "--memory", "1MiB", MANY).stdout == pepscope("inspect", "--json", MANY).stdout


def test_a_filter_leaves_other_packets_out() -> None:
    document = json.loads(pepscope("inspect", "--json", "--filter", "src port 5001", ONE).stdout)
    assert document["connections"][0]["up"]["packets"] == 0
    assert document["connections"][0]["down"]["packets"] == document["packets"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("inspect", "/nonexistent/x.pcap"), ("/nonexistent/x.pcap", "no such file")),
        (("inspect", "/"), ("directory",)),
        (("inspect", "/dev/null"), ("/dev/null", "empty")),
        (("inspect", __file__), ("neither pcap nor pcapng",)),
        (("inspect", "--filter", "tcp prt 80", ONE), ("tcp prt 80", "syntax error")),
        (("inspect", "--filter", "udp", ONE), ("removed by the filter",)),
        (("inspect", "--memory", "lots", ONE), ("lots",)),
        (("inspect", "--memory", "10", ONE), ("1MiB",)),
        (("inspect", "-o", "/nonexistent/out.json", "--json", ONE), ("/nonexistent/out.json",)),
        (("inspect",), ("FILE",)),
        (("inspect", "--nonsense", ONE), ("--nonsense",)),
        (("inspect", ""), ("must have a name",)),
        (("inspect", "https://example.org/x.pcap"), ("URLs are not fetched", "pepscope detect -")),
        (("nonsense",), ("nonsense",)),
        (("detct", ONE), ("no such command 'detct': perhaps 'detect'; see",)),
        (("",), ("no such command ''; see",)),
        (("a capture.pcap",), ("`pepscope detect 'a capture.pcap'` judges a capture",)),
        (("https://example.org/capture",), ("`pepscope detect https://example.org/capture`",)),
        ((ONE,), ("no such command", f"`pepscope detect {ONE}` judges a capture")),
        (("detect", ONE, "--html", ""), ("--html must name a file, got ''",)),
        (("proxy", "nonsense"), ("invalid value for MODE: 'nonsense'",)),
    ],
    ids=lambda value: value[-1].rsplit("/", 1)[-1] if isinstance(value, tuple) and isinstance(value[-1], str) else "",
)
def test_bad_input_is_one_sentence(arguments: tuple[object, ...], words: tuple[str, ...]) -> None:
    assert_one_sentence(pepscope(*arguments), *words)


def test_empty_standard_input() -> None:
    assert_one_sentence(pepscope("inspect", "-", stdin=b""), "empty")


def test_random_bytes_never_end_in_a_traceback() -> None:
    content = gzip.decompress(ONE.read_bytes())
    for position in range(0, 2000, 97):
        damaged = content[:position] + bytes([255 - content[position]]) * 9 + content[position + 9 : 40_000]
        done = pepscope("inspect", "--json", "-", stdin=damaged)
        assert done.returncode in (0, 2), done.stderr
        assert b"Traceback" not in done.stderr
        assert b"internal" not in done.stderr


def test_closed_pipe_prints_nothing() -> None:
    with subprocess.Popen(
        [PEPSCOPE, "inspect", "--json", MANY], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def await_read(pipe: int) -> None:
    """Wait until the other end of a pipe has taken all that was written."""
    deadline = time.monotonic() + 60
    while struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]:
        assert time.monotonic() < deadline, "nothing was read"
        time.sleep(0.01)


def test_interrupt_while_waiting_for_input_prints_nothing() -> None:
    with subprocess.Popen(
        [PEPSCOPE, "inspect", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(gzip.decompress(ONE.read_bytes())[:2000])
        process.stdin.flush()
        await_read(process.stdin.fileno())
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=600) == 130
        assert process.stderr.read().strip() == b"pepscope: interrupted"


@pytest.mark.parametrize("command", ["inspect", "detect"])
def test_interrupt_during_a_long_read_is_one_sentence(command: str) -> None:
    content = gzip.decompress(ONE.read_bytes())
    with subprocess.Popen(
        [PEPSCOPE, command, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(content)
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            process.stdin.write(content[24:])
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(BrokenPipeError):
            for _ in range(20):  # what a pipe still holds, and then some
                process.stdin.write(content[24:])
        assert process.wait(timeout=600) == 130
        assert process.stderr.read().strip() == b"pepscope: interrupted"
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


@pytest.mark.parametrize(
    "arguments",
    [("inspect", "--json"), ("inspect", "--csv"), ("inspect",), ("detect", "--json"), ("detect", "--csv"), ("detect",)],
)
def test_a_full_disk_is_one_sentence(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([PEPSCOPE, *arguments, ONE], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr == b"pepscope: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("arguments", [("inspect", "--csv=/dev/full"), ("detect", "--json=/dev/full")])
def test_a_full_disk_is_named_by_the_file_on_it(arguments: tuple[str, ...]) -> None:
    done = pepscope(*arguments, ONE)
    assert done.returncode == 2
    assert done.stderr == b"pepscope: /dev/full: No space left on device\n"


def closed(streams: str, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    """The command, started by a shell that closed some of its standard streams."""
    words = shlex.join(map(str, (PEPSCOPE, *arguments)))
    return subprocess.run(["bash", "-c", f"{words} {streams}"], capture_output=True, check=False, timeout=600)


@pytest.mark.parametrize("arguments", [("--help",), ("inspect", ONE), ("detect", ONE), ("detect", "--csv", ONE)])
def test_a_closed_standard_output_is_one_sentence(arguments: tuple[object, ...]) -> None:
    done = closed(">&-", *arguments)
    assert done.returncode == 2
    assert done.stderr == b"pepscope: standard output cannot be written: Bad file descriptor\n"


def test_closed_streams_that_nothing_is_asked_of_do_no_harm(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = closed("<&- >&- 2>&-", "detect", "--quiet", f"--json={report}", ONE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert json.loads(report.read_text())["schema"] == 2
    assert closed("2>&-", "detect", ONE).stdout == pepscope("detect", ONE).stdout


def test_no_capture_is_taken_for_a_closed_standard_input() -> None:
    done = closed("<&-", "detect", ONE, "-")
    assert done.returncode == 2
    assert done.stderr == b"pepscope: standard input is empty: it has not even a file header\n"


def test_endless_garbage_is_refused_at_once() -> None:
    for source in ("/dev/zero", "/dev/urandom"):
        with Path(source).open("rb") as endless:
            done = subprocess.run(
                [PEPSCOPE, "inspect", "-"], stdin=endless, capture_output=True, check=False, timeout=600
            )
        assert done.returncode == 2
        assert done.stderr.startswith(b"pepscope: standard input is neither pcap nor pcapng")
        assert done.stderr.count(b"\n") == 1


def test_one_packet_and_names_beyond_ascii(tmp_path: Path) -> None:
    content = gzip.decompress(ONE.read_bytes())
    (length,) = struct.unpack_from("<I", content, 32)
    single = tmp_path / "ein Paket \u540d.pcap"
    single.write_bytes(content[: 40 + length])
    for command in ("inspect", "detect"):
        done = pepscope(command, single, "--json")
        assert done.returncode == 0
        assert "\u540d" in json.dumps(json.loads(done.stdout), ensure_ascii=False)


def test_progress_is_drawn_on_a_terminal_only(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pepscope.command_line.progress import Progress\n"
        "times = iter(range(100))\n"
        "with Progress(clock=lambda: float(next(times))) as progress:\n"
        "    for done in range(6): progress(done, 10)"
    )
    piped = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert piped.stderr == b""
    master, slave = os.openpty()
    subprocess.run([sys.executable, "-c", script], stderr=slave, check=True)
    os.close(slave)
    drawn = os.read(master, 1 << 16).decode()
    os.close(master)
    assert "reading [" in drawn
    assert "\n" not in drawn
    assert drawn.endswith("\r\x1b[K")


def test_help_names_every_command_and_imports_none() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", PEPSCOPE, "--help"], capture_output=True, text=True, check=True
    )
    for command in ("detect", "explain", "inspect"):
        assert f"\n  {command} " in done.stdout
    for module in ("numpy", "pandas", "plotly", "detector", "reports"):
        assert f"| {module}\n" not in done.stderr.replace(" ", "").replace("|", "| ")


def test_the_version_is_told_by_the_command() -> None:
    assert pepscope("--version").stdout.decode().startswith("pepscope, version 0.")


@pytest.mark.parametrize("arguments", [("--version",), ("inspect", "--json", "-"), ("inspect", "-")])
def test_what_needs_no_tables_loads_none(arguments: tuple[str, ...]) -> None:
    content = gzip.decompress(ONE.read_bytes())[:1000]
    command = [sys.executable, "-X", "importtime", str(PEPSCOPE), *arguments]
    done = subprocess.run(command, input=content, capture_output=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert loaded.isdisjoint({"pandas", "plotly", "scipy", "detector", "prober", "reference_sim", "reports"})


def test_colours_and_progress_need_a_terminal() -> None:
    environment = {**os.environ, "TERM": "xterm"}
    done = subprocess.run([PEPSCOPE, "inspect", ONE], capture_output=True, env=environment, check=True)
    assert b"\x1b" not in done.stdout + done.stderr
