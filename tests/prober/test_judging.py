"""Archives judged offline: captures of the corpus stand for what a run would have taken."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from io import StringIO

import jsonschema
import pytest

from pepscope.audit_results import AuditResult
from pepscope.packets import Direction
from pepscope.results import Kind
from pepscope.schema import load_schema
from prober.archive import open_archive
from prober.experiment import Application, Flow, Measurement, Observation, Status, Task
from prober.judging import judge_run
from reports.audit_table import write_audit_table
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
    assert verdict(run, Application.TCP) is Kind.REGULAR
    assert verdict(run, Application.TCP, UP) is Kind.REGULAR
    assert verdict(run, Application.FTP) is Kind.SPLIT_TCP
    assert verdict(run, Application.FTP, UP) in (Kind.SPLIT_TCP, Kind.TCP_PROXY)
    assert verdict(run, Application.HTTP_IMAGE) is Kind.TCP_PROXY
    assert verdict(run, Application.HTTPS) is Kind.INCONCLUSIVE
    assert run.cell("https", DOWN).reason == "The server closed the connection."
    assert run.cell("http-data", DOWN) is None
    jsonschema.validate(AuditResult((run,)).to_dict(), load_schema("audit-1"))


def test_what_was_not_measured_is_listed_with_its_reason(tmp_path):
    reason = "ACKs cannot be held back without root"
    tasks = [failed(Application.TCP, UP, reason, Status.IMPOSSIBLE), failed(Application.HTTPS, DOWN, "it broke")]
    run = judged(tmp_path, tasks, complete=False)
    told = {(item.application, item.status, item.reason, item.tasks) for item in run.not_measured}
    assert told == {("tcp", "impossible", reason, 1), ("https", "failed", "it broke", 1)}
    assert any("the server went away" in text for text in run.warnings)


def test_captures_are_named_as_in_the_archive(tmp_path):
    run = judged(tmp_path, [observation("reg_dl_cubic_lte")])
    names = {vantage.capture for item in run.cells[0].connections for vantage in item.pair.vantages}
    assert names == {
        "captures/transfers--http-data--down--run=reg_dl_cubic_lte--001.mobile.pcap",
        "captures/transfers--http-data--down--run=reg_dl_cubic_lte--001.server.pcap",
    }


@pytest.mark.parametrize("end", ["mobile", "server"])
def test_one_capture_gives_what_one_vantage_can(tmp_path, end):
    run = judged(tmp_path, [observation("spl_ha_dl_v6", ends=(end,))])
    (cell,) = run.cells
    assert len(cell.connections) == 1
    assert cell.verdict is Kind.INCONCLUSIVE
    if end == "server":
        assert cell.reason.startswith("There are no captures at the mobile without root.")


def test_no_capture_at_all_is_no_error(tmp_path):
    run = judged(tmp_path, [observation("spl_ha_dl_v6", ends=())])
    assert run.cells[0].verdict is Kind.INCONCLUSIVE
    assert run.cells[0].reason == "There are no captures at the mobile without root."


def test_connections_that_the_task_did_not_make_do_not_count(tmp_path):
    seen = observation("reg_dl_par20")
    first = seen.measurement.flows[0]
    others = tuple(Flow(flow.mobile_port, flow.server_port, "control") for flow in seen.measurement.flows[1:3])
    run = judged(tmp_path, [replace(seen, measurement=Measurement(flows=(first, *others)))])
    (cell,) = run.cells
    assert [item.role for item in cell.connections] == ["data", "control", "control"]
    assert [bool(item.set_aside) for item in cell.connections] == [False, True, True]
    assert cell.verdict is Kind.REGULAR


def test_a_flow_that_is_in_no_capture_is_told(tmp_path):
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


def test_series_are_there_only_where_a_page_wants_them(tmp_path):
    with open_archive(archive(tmp_path / "run.zip", [observation("reg_dl_cubic_lte")])) as opened:
        assert judge_run(opened, "a").cells[0].connections[0].pair.series == ()
        assert judge_run(opened, "a", series=True).cells[0].connections[0].pair.series != ()


def test_measurements_that_make_no_sense_are_told_and_left_out(tmp_path, monkeypatch):
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


def test_an_experiment_of_another_version_is_told(tmp_path):
    task = Task("Of\x1b[2JTomorrow", 1, Application.TCP, DOWN)
    tomorrow = Observation(task, Status.FAILED, "it \x1b[2Jbroke", STARTED_UNIX_NS, 1.0)
    run = judged(tmp_path, [observation("reg_dl_short10k", Application.TCP), tomorrow])
    assert any("this version does not know" in text for text in run.warnings)
    result = AuditResult((run,))
    jsonschema.validate(result.to_dict(), load_schema("audit-1"))
    stream = StringIO()
    write_audit_table(result, stream, colour=False)
    assert "\x1b" not in stream.getvalue()
    assert "broke" in stream.getvalue()


def test_it_is_known_which_capture_is_whose(tmp_path):
    run = judged(tmp_path, [observation("spl_ha_dl_small_umts")])
    for item in run.cells[0].connections:
        assert [vantage.capture.rsplit(".", 2)[1] for vantage in item.pair.vantages] == ["mobile", "server"]
