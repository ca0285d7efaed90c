"""Groups from captures to JSON: runs of the corpus put together under one network of clients and one port."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import pepscope
from pepscope.results.schema import load_schema
from pepscope.results.verdicts import DetectionResult, GroupSide, Verdict
from reports.detection.contract import read_document
from tests.captures.containers import CaptureFile, read_capture, write_pcap
from tests.captures.merging import merged, moved, renamed
from tests.detector.corpus import CORPUS, RUNS

PORT = 443


def of_one_network(run_id: str, side: str, number: int, later_s: float = 0.0) -> CaptureFile:
    """A run whose client is host `number` of one network, and whose server is one host for all."""
    run = RUNS[run_id]
    client, server = next(flow[f"{side}_capture"].split(" > ") for flow in run["flows"])
    return renamed(
        moved(read_capture(CORPUS / run["files"][side]["name"]), later_s),
        {client.rpartition(":")[0]: f"10.9.8.{number}", server.rpartition(":")[0]: "203.0.113.80"},
        {int(server.rpartition(":")[2]): PORT},
    )


def detected(folder: Path, *run_ids: str) -> DetectionResult:
    paths = []
    for side in ("mobile", "server"):
        capture = merged([of_one_network(run_id, side, number + 1) for number, run_id in enumerate(run_ids)])
        paths.append(folder / f"{side}.pcap")
        paths[-1].write_bytes(write_pcap(capture.frames, capture.link_type))
    return pepscope.detect(*map(str, paths))


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        (("reg_dl_short10k", "reg_dl_reno_loss1"), Verdict.REGULAR),
        (("spl_ha_dl_short10k", "spl_ha_dl_small_umts"), Verdict.SPLIT_TCP),
    ],
)
def test_connections_of_one_kind_make_a_group_of_that_kind(tmp_path: Path, runs, verdict: Verdict) -> None:
    result = detected(tmp_path, *runs)
    (group,) = result.groups
    assert (group.side, group.network, group.port) == (GroupSide.BOTH, "10.9.8.0/24", PORT)
    assert group.hosts == ("203.0.113.80",)
    assert group.pairs == tuple(range(13))
    assert group.verdict is verdict
    assert (group.hidden_round_trip_s is not None) is (verdict is Verdict.SPLIT_TCP)


def test_a_relayed_client_among_others_is_identified(tmp_path: Path) -> None:
    result = detected(tmp_path, "reg_dl_short10k", "spl_ha_dl_small_umts")
    (group,) = result.groups
    assert group.verdict is Verdict.INCONCLUSIVE
    assert "12 end to end and one split, the split ones all from 10.9.8.2" in group.reason
    document = json.loads(result.to_json())
    jsonschema.validate(document, load_schema("detect-2"))
    assert read_document(document).groups == result.groups
    frame = result.groups_frame()
    assert list(frame["connections"]) == [13]
    assert frame["exchanges"].isna().all()


def test_what_one_capture_lacks_is_a_group_of_that_side() -> None:
    files = RUNS["prx_ngx_cache"]["files"]
    result = pepscope.detect(*(str(CORPUS / files[side]["name"]) for side in ("mobile", "server")))
    sides = {group.side: group for group in result.groups}
    assert set(sides) == {GroupSide.BOTH, GroupSide.CLIENT}
    assert sides[GroupSide.BOTH].network == "203.0.113.0/24"  # the proxy's, as the server saw it
    assert sides[GroupSide.CLIENT].network == "172.20.1.0/24"
    assert sides[GroupSide.CLIENT].exchanges == 1


def test_one_capture_alone_has_groups_of_its_side() -> None:
    (group,) = pepscope.detect(str(CORPUS / RUNS["reg_dl_short10k"]["files"]["mobile"]["name"])).groups
    assert (group.side, len(group.pairs), group.verdict) == (GroupSide.CLIENT, 12, Verdict.INCONCLUSIVE)
    assert group.near_round_trip_s == pytest.approx(0.2, abs=0.01)
    assert group.where is None


def test_ipv6_clients_of_one_site_are_one_network() -> None:
    files = RUNS["reg_dl_v6"]["files"]
    (group,) = pepscope.detect(*(str(CORPUS / files[side]["name"]) for side in ("mobile", "server"))).groups
    assert group.network == "2001:db8:fdc1::/48"
