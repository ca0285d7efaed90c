"""Archives of real captures, anonymised: the same verdicts, and nothing of who took part."""

from __future__ import annotations

import json
import re
import socket
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction
from pepscope.errors import PepscopeError, UsageError
from pepscope.results.audits import AuditRun
from prober.anonymise import sharing
from prober.anonymise.http_heads import FIELD_NAMES
from prober.archive.archive_file import open_archive, write_archive
from prober.audit.judging import judge_run
from prober.commands.anonymise import anonymise
from prober.errors import ArchiveError
from prober.plan import Plan, ServerTable
from prober.protocol.application import Application
from tests.captures.containers import read_capture
from tests.detector.corpus import RUNS
from tests.prober.anonymise.groups import GROUPS
from tests.prober.corpus_archives import archive, failed, observation

SECRET = b"a secret of thirty-two bytes...."


def of_corpus(run_ids: tuple[str, ...]):
    """Each run in a cell of its own, as far as there are cells."""
    cells = [(application, direction) for direction in (Direction.DOWN, Direction.UP) for application in Application]
    return [observation(run_id, *cell) for run_id, cell in zip(run_ids, cells, strict=False)]


def judged(path: Path) -> AuditRun:
    with open_archive(path) as opened:
        return judge_run(opened, "run")


def findings(run: AuditRun):
    return [
        (cell.application, cell.direction, cell.verdict, item.pair.verdict, [e.finding for e in item.pair.evidence])
        for cell in run.cells
        for item in cell.connections
    ]


@pytest.mark.parametrize("run_ids", GROUPS, ids=lambda run_ids: run_ids[0])
def test_verdicts_and_findings_stay_and_no_host_is_named(run_ids: tuple[str, ...], tmp_path: Path):
    before = archive(tmp_path / "before.zip", of_corpus(run_ids))
    after = tmp_path / "after.zip"
    shared = sharing.anonymise_archive(before, after, secret=SECRET)
    assert shared.counts.left_out == 0
    assert findings(judged(after)) == findings(judged(before))
    for run_id in run_ids:
        _nothing_is_left(run_id, before, after)


def _nothing_is_left(run_id: str, before: Path, after: Path) -> None:
    named = [address for address in RUNS[run_id]["addresses"].values() if address]
    packed = [socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address) for address in named]
    with open_archive(before) as old, open_archive(after) as new:
        for name, path in old.captures.items():
            if f"run={run_id}--" not in name:
                continue
            data = new.captures[name].read_bytes()
            headers = b"".join(frame.data[:60] for frame in read_capture(new.captures[name]).frames)
            assert not [address for address in packed if address in headers]
            assert not [address for address in named if address.encode() in data]
            kept, made = open_capture(str(path)), open_capture(str(new.captures[name]))
            assert [each.packets for each in made.connections] == [each.packets for each in kept.connections]
            assert made.tcp_packet_count == kept.tcp_packet_count
            runs = payload_runs(path)
            assert runs
            assert not runs & payload_runs(new.captures[name])


def payload_runs(path: Path) -> set[bytes]:
    """Every run of eight captured payload bytes but those that are the words of HTTP itself."""
    found: set[bytes] = set()
    capture = read_capture(path)
    for frame in capture.frames:
        payload = _payload(frame.data, capture.link_type)
        head, _, body = payload.partition(b"\r\n\r\n")
        if re.match(rb"[A-Z]{3,7} \S* ?HTTP|HTTP/1", payload) is None:
            head, body = b"", payload
        texts = [body]
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            texts += (
                [value] if name.lower() in FIELD_NAMES else [part for part in line.split(b" ") if b"HTTP/" not in part]
            )
        for text in texts:
            found |= {text[at : at + 8] for at in range(len(text) - 7)}
    return found


def _payload(frame: bytes, link_type: int) -> bytes:
    packet = frame[{1: 14, 101: 0, 113: 16, 276: 20}[link_type] :]
    header = 40 if packet[0] >> 4 == 6 else 4 * (packet[0] & 0xF)
    return packet[header + 4 * (packet[header + 12] >> 4) :]


def test_manifest_observations_and_metadata_name_no_host(tmp_path: Path):
    seen = observation("reg_dl_cubic_lte", values={"router": "198.51.100.7", "host": "probe.operator.example"})
    plan = Plan(server=ServerTable(host="probe.operator.example", key="pepscope1.secret.00"))
    facts = {"mobile": {"address": "198.51.100.8", "kernel": "6.1.0"}, "notes": {"operator": "Somebody"}}
    reason = "the server probe.operator.example (198.51.100.9) did not answer"
    before = archive(
        tmp_path / "before.zip",
        [seen, failed(Application.FTP, Direction.UP, reason)],
        plan=plan,
        facts=facts,
        run_id="20260101T000000Z-abcdef",
    )
    after = tmp_path / "after.zip"
    sharing.anonymise_archive(before, after)
    with zipfile.ZipFile(after) as archived:
        texts = {name: archived.read(name).decode() for name in archived.namelist() if name.endswith(".json")}
    everything = "\n".join(texts.values())
    assert not re.findall(r"198\.51\.100|operator|Somebody|secret|abcdef", everything)
    assert json.loads(texts["facts.json"])["mobile"]["kernel"] == "6.1.0"
    with open_archive(after) as opened:
        assert opened.manifest.plan.server.host.endswith(".invalid")
        assert opened.manifest.plan.server.host in "".join(item.reason for item in opened.observations)


def test_equal_keys_make_equal_archives_and_drawn_ones_others(tmp_path: Path):
    before = archive(tmp_path / "before.zip", [observation("reg_dl_short10k")])
    for name, secret in (("a", SECRET), ("b", SECRET), ("c", None), ("d", None)):
        sharing.anonymise_archive(before, tmp_path / name, secret=secret)
    made = {name: (tmp_path / name).read_bytes() for name in "abcd"}
    assert made["a"] == made["b"]
    assert len(set(made.values())) == 3


def test_an_archive_whose_verdicts_would_change_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    before = archive(tmp_path / "before.zip", [observation("spl_ha_dl_small_umts")])
    tried = []

    def blank(archive_, target, key):
        tried.append(key)
        counts = rewrite(archive_, target, key)
        for path in archive_.captures.values():
            # As if rewriting had lost everything but the handshake.
            path.write_bytes(path.read_bytes()[:400])
        return replace_captures(archive_, target) or counts

    def replace_captures(archive_, target):
        write_archive(
            target, archive_.manifest, archive_.observations, dict(archive_.metadata), dict(archive_.captures)
        )

    rewrite = sharing._rewrite
    monkeypatch.setattr(sharing, "_rewrite", blank)
    with pytest.raises(ArchiveError, match="http-data down would become inconclusive instead of split-tcp"):
        sharing.anonymise_archive(before, tmp_path / "after.zip")
    assert len(tried) == sharing.KEYS_TRIED
    assert [path.name for path in tmp_path.iterdir()] == ["before.zip"]


def test_the_command_writes_the_archive_and_reports_its_counts(tmp_path: Path):
    before = archive(tmp_path / "before.zip", [observation("reg_dl_short10k")])
    key = tmp_path / "key"
    key.write_bytes(SECRET)
    after = tmp_path / "after.zip"
    ended = CliRunner().invoke(anonymise, [str(before), "-o", str(after), "--key-file", str(key)])
    assert ended.exit_code == 0, ended.output
    assert "the same verdicts in 1 cell," in ended.stderr
    assert [cell.verdict for cell in judged(after).cells] == [cell.verdict for cell in judged(before).cells]
    for arguments, said in (
        ([str(before), "-o", str(before)], "another --output"),
        ([str(key), "-o", "x"], "must be an archive"),
    ):
        ended = CliRunner().invoke(anonymise, arguments)
        assert isinstance(ended.exception, PepscopeError)
        assert said in str(ended.exception)
    key.write_bytes(b"short")
    ended = CliRunner().invoke(anonymise, [str(before), "-o", str(after), "--key-file", str(key)])
    assert isinstance(ended.exception, UsageError)


def test_observations_of_one_task_keep_their_captures(tmp_path: Path):
    seen = observation("reg_dl_short10k")
    named = replace(seen, task=replace(seen.task, parameters={**seen.task.parameters, "router": "192.0.2.1"}))
    keyed = replace(
        named,
        mobile_capture=f"captures/{named.task.key}.mobile.pcap",
        server_capture=f"captures/{named.task.key}.server.pcap",
    )
    after = tmp_path / "after.zip"
    sharing.anonymise_archive(archive(tmp_path / "before.zip", [keyed]), after)
    with open_archive(after) as opened:
        assert not [name for name in opened.captures if "192.0.2.1" in name]
        assert opened.observations[0].mobile_capture in opened.captures


def test_without_cryptography_the_command_names_the_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    before = archive(tmp_path / "before.zip", [observation("reg_dl_short10k")])
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.delitem(sys.modules, "prober.anonymise.keys")
    ended = CliRunner().invoke(anonymise, [str(before), "-o", str(tmp_path / "after.zip")])
    assert isinstance(ended.exception, UsageError)
    assert "pip install" in str(ended.exception)
