"""Captures in object stores and on web servers, real ones on loopback, and what goes wrong there."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]
import pandas as pd
import pytest

from detector.corpora.audit import CorpusSummary, audit_captures
from detector.corpora.remote import shown
from tests.detector.corpora.remote_servers import KEY, SECRET, cutting_relay, plain_server, range_server, s3_server
from tests.detector.one_capture.real_networks import named

CAPTURE = named("umts-nat.server").path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("store")
    (root / "bucket" / "day").mkdir(parents=True)
    shutil.copy(CAPTURE, root / "bucket" / "day" / "one.pcap.gz")
    (root / "bucket" / "read.me").write_text("text")
    return root


@pytest.fixture(scope="module")
def s3_port(store: Path) -> Iterator[int]:
    with s3_server(store) as port:
        yield port


@pytest.fixture
def s3(s3_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    use_s3(monkeypatch, s3_port)


def use_s3(monkeypatch: pytest.MonkeyPatch, port: int, secret: str = SECRET) -> None:
    """As a user sets it; s3fs keeps what it connected to before."""
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    for name, value in (
        ("ACCESS_KEY_ID", KEY), ("SECRET_ACCESS_KEY", secret), ("ENDPOINT_URL", f"http://127.0.0.1:{port}"),
        ("MAX_ATTEMPTS", "1"), ("EC2_METADATA_DISABLED", "true"),
    ):  # fmt: skip
        monkeypatch.setenv(f"AWS_{name}", value)


def only_error(summary: CorpusSummary, output: Path) -> str:
    """The sentence of the one row of errors."""
    (row,) = pd.read_parquet(output / "errors.parquet").to_dict("records")
    assert [(each.name, each.reason) for each in summary.errors] == [(row["name"], row["reason"])]
    assert "\n" not in row["reason"]
    return str(row["reason"])


def broken_beside_good(address: str, output: Path) -> str:
    """What is said of an address that cannot be read, while a file beside it is judged."""
    summary = audit_captures([address, str(CAPTURE)], output, processes=1)
    assert (summary.captures, summary.units) == (1, 1)
    return only_error(summary, output)


@pytest.mark.usefixtures("s3")
def test_captures_in_a_bucket_are_judged(tmp_path: Path) -> None:
    for number, address in enumerate(["s3://bucket", "s3://bucket/*/*.gz", "s3://bucket/day/one.pcap.gz"]):
        summary = audit_captures([address], tmp_path / str(number), processes=1)
        assert (summary.captures, summary.errors) == (1, ())
        assert list(pd.read_parquet(tmp_path / str(number) / "captures.parquet")["capture"]) == [
            "s3://bucket/day/one.pcap.gz"
        ]
    plain = audit_captures([str(CAPTURE)], tmp_path / "plain", processes=1)
    assert summary.verdicts == plain.verdicts


@pytest.mark.usefixtures("s3")
def test_a_bucket_or_an_object_that_does_not_exist_is_a_row(tmp_path: Path) -> None:
    assert "s3://nowhere does not exist" in broken_beside_good("s3://nowhere", tmp_path / "bucket")
    assert "s3://bucket/none.pcap does not exist" in broken_beside_good("s3://bucket/none.pcap", tmp_path / "object")


def test_wrong_credentials_are_a_row(s3_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_s3(monkeypatch, s3_port, secret="wrong")
    said = broken_beside_good("s3://bucket/day", tmp_path)
    assert said.startswith("s3://bucket/day cannot be read")
    assert "signature" in said


def test_an_object_whose_connection_is_cut_is_a_row(
    s3_port: int, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = store / "cut"
    folder.mkdir()
    shutil.copy(CAPTURE, folder / "whole.pcap.gz")
    # Begins like a capture; random, so that no part of it is another's.
    (folder / "long.pcap").write_bytes(bytes.fromhex("d4c3b2a1") + random.Random(1).randbytes(1 << 20))
    with cutting_relay(s3_port, 1 << 19) as port:
        use_s3(monkeypatch, port)
        summary = audit_captures(["s3://cut"], tmp_path, processes=1)
    assert summary.captures == 1
    assert only_error(summary, tmp_path).startswith("s3://cut/long.pcap cannot be read")
    assert not list(tmp_path.rglob(".*.partial"))


@pytest.mark.usefixtures("s3")
def test_an_object_that_changes_while_it_is_read_is_a_row(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = store / "changing"
    folder.mkdir()
    changing = folder / "one.pcap.gz"
    shutil.copy(CAPTURE, changing)
    copy = shutil.copyfileobj

    def change_and_copy(*given: Any) -> None:
        changing.write_bytes(CAPTURE.read_bytes()[:-10])
        os.utime(changing, (0, 0))
        copy(*given)

    monkeypatch.setattr(shutil, "copyfileobj", change_and_copy)
    summary = audit_captures(["s3://changing"], tmp_path, processes=1)
    assert summary.captures == 0
    assert only_error(summary, tmp_path).startswith("s3://changing/one.pcap.gz cannot be read")


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no ranges"])
def test_captures_on_a_web_server_are_judged(ranges: bool, store: Path, tmp_path: Path) -> None:
    work = tmp_path / "nginx"
    work.mkdir()
    server = range_server(store, work) if ranges else plain_server(store)
    with server as port:
        place = f"http://127.0.0.1:{port}/bucket/day/one.pcap.gz"
        for number, address in enumerate([place, f"{place}?signature=secret", f"http://127.0.0.1:{port}/bucket/day/"]):
            output = tmp_path / str(number)
            summary = audit_captures([address], output, processes=1)
            assert (summary.captures, summary.errors) == (1, ())
            assert list(pd.read_parquet(output / "captures.parquet")["capture"]) == [place]
        missing = broken_beside_good(f"http://127.0.0.1:{port}/none.pcap?signature=secret", tmp_path / "none")
        assert missing == f"http://127.0.0.1:{port}/none.pcap does not exist, or nothing is there"
    assert not ranges or "HTTP/1.1 206 bytes=" in (work / "access.log").read_text()


def test_a_web_server_that_cuts_is_a_row(store: Path, tmp_path: Path) -> None:
    with plain_server(store, cut_at_bytes=70_000) as port:
        (store / "long.pcap").write_bytes(bytes.fromhex("d4c3b2a1") + bytes(1 << 20))
        said = broken_beside_good(f"http://127.0.0.1:{port}/long.pcap", tmp_path)
    assert said.startswith(f"http://127.0.0.1:{port}/long.pcap cannot be read")


def test_addresses_are_shown_without_what_is_secret() -> None:
    assert shown("https://me:word@host:8443/a/b.pcap?X-Amz-Signature=1#x") == "https://host:8443/a/b.pcap"
    assert shown("s3://bucket/what?.pcap") == "s3://bucket/what?.pcap"
