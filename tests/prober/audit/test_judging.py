"""Archives judged offline: captures of the corpus stand for what a run would have taken."""

from __future__ import annotations

import gzip
import struct
from dataclasses import replace
from functools import cache
from io import StringIO

import jsonschema
import pytest

from pepscope.captures.packets import Direction
from pepscope.results.audits import AuditResult
from pepscope.results.schema import load_schema
from pepscope.results.verdicts import Verdict
from prober.archive.archive_file import open_archive
from prober.audit.captured_flows import CapturedTask, judge_captures
from prober.audit.judging import judge_run
from prober.client.transfer import Flow
from prober.experiments.transfers import Transfers, TransfersFinding
from prober.measurement.task import Measurement, Observation, Status, Task
from prober.protocol.application import Application
from reports.audit.table import write_audit_table
from tests.detector.corpus import CORPUS
from tests.prober.corpus_archives import STARTED_UNIX_NS, archive, failed, observation

DOWN, UP = Direction.DOWN, Direction.UP


@cache
def one_of_each():
    return (
        observation("reg_dl_cubic_lte", Application.TCP),
        observation("spl_ha_dl_large_umts", Application.FTP),
        observation("spl_ha_dl_short10k", Application.FTP),
        observation("prx_ngx_2M_umts", Application.HTTP_IMAGE),
        observation("act_ha_ul_T2", Application.FTP, UP),
        observation("reg_ul_cubic_lte", Application.TCP, UP),
        failed(Application.HTTPS, DOWN, "the server closed the connection"),
    )


def judged(tmp_path, observations, **options):
    with open_archive(archive(tmp_path / "run.pepscope.zip", observations, **options)) as opened:
        return judge_run(opened, "run.pepscope.zip")


def verdict(run, application: Application, direction: Direction = DOWN):
    return run.cell(application.value, direction).verdict


def test_the_matrix_is_what_the_corpus_is(tmp_path):
    run = judged(tmp_path, one_of_each())
    assert verdict(run, Application.TCP) is Verdict.REGULAR
    assert verdict(run, Application.TCP, UP) is Verdict.REGULAR
    assert verdict(run, Application.FTP) is Verdict.SPLIT_TCP
    assert verdict(run, Application.FTP, UP) in (Verdict.SPLIT_TCP, Verdict.TCP_PROXY)
    assert verdict(run, Application.HTTP_IMAGE) is Verdict.TCP_PROXY
    assert verdict(run, Application.HTTPS) is Verdict.INCONCLUSIVE
    assert run.cell("https", DOWN).reason == "The server closed the connection."
    assert run.cell("http-data", DOWN) is None
    jsonschema.validate(AuditResult((run,)).to_dict(), load_schema("audit-1"))


def test_what_was_not_measured_is_listed_with_its_reason(tmp_path):
    reason = "ACKs cannot be held back without root"
    tasks = [failed(Application.TCP, UP, reason, Status.IMPOSSIBLE), failed(Application.HTTPS, DOWN, "it broke")]
    run = judged(tmp_path, tasks, complete=False)
    reported = {(item.application, item.status, item.reason, item.tasks) for item in run.not_measured}
    assert reported == {("tcp", "impossible", reason, 1), ("https", "failed", "it broke", 1)}
    assert any("the server went away" in text for text in run.warnings)


def test_captures_are_named_as_in_the_archive(tmp_path):
    run = judged(tmp_path, [observation("reg_dl_cubic_lte")])
    names = {vantage.capture for item in run.cells[0].connections for vantage in item.pair.vantages}
    assert names == {
        "captures/transfers--http-data--down--run=reg_dl_cubic_lte--001.mobile.pcap",
        "captures/transfers--http-data--down--run=reg_dl_cubic_lte--001.server.pcap",
    }


def test_warnings_name_captures_as_in_the_archive(tmp_path):
    seen = observation("reg_dl_cubic_lte")
    mobile, copy = tmp_path / "mobile.pcap", tmp_path / "copy.pcap"
    recorded = gzip.decompress((CORPUS / "reg_dl_cubic_lte.mob.pcap.gz").read_bytes())
    mobile.write_bytes(recorded)
    # The same packets 1 ms later, by the header of every record: two captures of one place.
    later, at = bytearray(recorded), 24
    while at < len(later):
        seconds, nanoseconds, held = struct.unpack_from("<III", later, at)
        carried, nanoseconds = divmod(nanoseconds + 1_000_000, 1_000_000_000)
        struct.pack_into("<II", later, at, seconds + carried, nanoseconds)
        at += 16 + held
    copy.write_bytes(later)
    judged_task = judge_captures(CapturedTask(seen, mobile, copy), series=False)
    (warning,) = (text for text in judged_task.warnings if "one place" in text)
    assert seen.mobile_capture in warning
    assert seen.server_capture in warning
    assert str(tmp_path) not in warning


@pytest.mark.parametrize("end", ["mobile", "server"])
def test_one_capture_gives_what_one_vantage_can(tmp_path, end):
    run = judged(tmp_path, [observation("spl_ha_dl_v6", ends=(end,))])
    (cell,) = run.cells
    assert len(cell.connections) == 1
    assert cell.verdict is Verdict.INCONCLUSIVE
    if end == "server":
        assert cell.reason.startswith("There are no captures at the mobile without root.")


def test_no_capture_at_all_is_no_error(tmp_path):
    run = judged(tmp_path, [observation("spl_ha_dl_v6", ends=())])
    assert run.cells[0].verdict is Verdict.INCONCLUSIVE
    assert run.cells[0].reason == "There are no captures at the mobile without root."


def test_connections_that_the_task_did_not_make_do_not_count(tmp_path):
    seen = observation("reg_dl_par20")
    first = seen.measurement.flows[0]
    others = tuple(Flow(flow.mobile_port, flow.server_port, "control") for flow in seen.measurement.flows[1:3])
    run = judged(tmp_path, [replace(seen, measurement=Measurement(flows=(first, *others)))])
    (cell,) = run.cells
    assert [item.role for item in cell.connections] == ["data", "control", "control"]
    assert [bool(item.set_aside) for item in cell.connections] == [False, True, True]
    assert cell.verdict is Verdict.REGULAR


def test_a_flow_in_no_capture_is_reported(tmp_path):
    seen = replace(observation("reg_dl_cubic_lte"), measurement=Measurement(flows=(Flow(1, 2),)))
    run = judged(tmp_path, [seen])
    assert run.cells[0].connections == ()
    assert any("port 1 is not in the captures" in text for text in run.warnings)


def test_a_nat_that_changed_the_port_is_no_hindrance_to_the_servers_capture_alone(tmp_path):
    seen = observation("reg_dl_nat", ends=("server",))
    assert judged(tmp_path, [seen]).cells[0].connections != ()


def test_a_useless_capture_leaves_the_other_one(tmp_path):
    seen = observation("reg_dl_cubic_lte")
    path = archive(tmp_path / "run.zip", [seen])
    with open_archive(path) as opened:
        mobile = opened.captures[seen.mobile_capture]
        mobile.write_bytes(mobile.read_bytes()[:24])
        run = judge_run(opened, "run.zip")
    assert len(run.cells[0].connections) == 1
    assert any("holds no" in text for text in run.warnings), run.warnings


def test_series_are_computed_only_for_pages(tmp_path):
    with open_archive(archive(tmp_path / "run.zip", [observation("reg_dl_cubic_lte")])) as opened:
        assert judge_run(opened, "a").cells[0].connections[0].pair.series == ()
        assert judge_run(opened, "a", series=True).cells[0].connections[0].pair.series != ()


def test_invalid_measurements_are_reported_and_left_out(tmp_path, monkeypatch):
    made_up = replace(
        observation("reg_dl_cubic_lte"),
        measurement=Measurement({"total_s": "soon", "certificate_is_the_servers": 7}, flows=()),
    )
    run = judged(tmp_path, [made_up])
    assert any(text.startswith("transfers: ") for text in run.warnings), run.warnings

    def stumble(self, seen):
        raise KeyError("nothing")

    monkeypatch.setattr("prober.experiments.transfers.Transfers.examine", stumble)
    run = judged(tmp_path, [made_up])
    assert any("makes no sense to this version (KeyError" in text for text in run.warnings)
    monkeypatch.setenv("PEPSCOPE_DEBUG", "1")
    with pytest.raises(KeyError):
        judged(tmp_path, [made_up])


def test_an_experiment_of_another_version_is_reported(tmp_path):
    task = Task("Of\x1b[2JTomorrow", 1, Application.TCP, DOWN)
    tomorrow = Observation(task, Status.FAILED, "it \x1b[2Jbroke", STARTED_UNIX_NS, 1.0)
    run = judged(tmp_path, [observation("reg_dl_short10k", Application.TCP), tomorrow])
    assert any("is an experiment that is not installed here" in text for text in run.warnings)
    result = AuditResult((run,))
    jsonschema.validate(result.to_dict(), load_schema("audit-1"))
    stream = StringIO()
    write_audit_table(result, stream, colour=False)
    assert "\x1b" not in stream.getvalue()
    assert "broke" in stream.getvalue()


def test_an_archive_of_another_version_of_an_experiment_is_refused_or_judged_by_its_own_rule(tmp_path, monkeypatch):
    measured = observation("reg_dl_cubic_lte")
    later = replace(measured, experiment_version=7)
    run = judged(tmp_path, [later])
    assert run.cells[0].evidence == ()
    said = "transfers was measured by version 7 of that experiment, and this pepscope judges 1"
    assert f"{said}; its measurements are left out" in run.warnings

    class Earlier(Transfers):
        def examine(self, seen):
            return (TransfersFinding.ANOTHER_CERTIFICATE.evidence("transfers", 1.0, "By the rule of version 7."),)

    monkeypatch.setattr(Transfers, "earlier", {7: Earlier()})
    (evidence,) = judged(tmp_path, [later]).cells[0].evidence
    assert evidence.summary == "By the rule of version 7."


def test_it_is_known_which_capture_is_whose(tmp_path):
    run = judged(tmp_path, [observation("spl_ha_dl_small_umts")])
    assert run.cells[0].connections
    for item in run.cells[0].connections:
        assert [vantage.capture.rsplit(".", 2)[1] for vantage in item.pair.vantages] == ["mobile", "server"]
