"""Running a plan: against the real server on loopback, with experiments that behave, and ones that do not."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import prober.client.capabilities
import prober.experiments.registry
import prober.host.network_devices
import prober.plan
import prober.run.runner
from pepscope.errors import UsageError
from pepscope.results.verdicts import Evidence
from pepscope.strict_reading import Table
from prober.archive.archive_file import SUFFIX, Archive, open_archive
from prober.client.capabilities import Capability
from prober.client.mobile_end import MobileEnd
from prober.errors import ControlError, ImpossibleError, MeasurementError, PlanError, UnreachableError
from prober.measurement.experiment import Experiment, ObservedTask, Scope
from prober.measurement.measured import Measured
from prober.measurement.task import Measurement, Status, Task
from prober.plan import Plan
from prober.protocol.control_messages import Clock
from prober.run.run_progress import RunProgress
from prober.run.runner import RunEndedError, RunOutcome, planned_tasks, run_plan
from prober.run.server_address import with_server
from tests.prober.runs_made_by_hand import captured_ports, plan
from tests.prober.serving import Serving, serving

SMALL = {"transfers": {"sizes_bytes": [5_000], "repeats": 1}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("state")) as running:
        yield running


def planned(server: Serving, **tables: Any) -> Plan:
    tables = {"experiments": SMALL, "limits": {"patience_s": 2, "task_s": 20}, **tables}
    return with_server(plan(**tables), server.server, server.key)


def read(outcome: RunOutcome) -> Archive:
    assert outcome.archive is not None
    with open_archive(outcome.archive) as archive:
        return archive


class ScriptedOptions(Table, frozen=True):
    """None."""


class ScriptedMeasured(Measured, frozen=True, kw_only=True):
    """Whatever the steps keep."""


class Scripted(Experiment[ScriptedOptions, ScriptedMeasured]):
    """Does what a test says, a task at a time."""

    name = "scripted"
    summary = "For tests."
    title = "scripted"
    options = ScriptedOptions
    measured = ScriptedMeasured

    def __init__(self, *steps: Callable[[MobileEnd], Measurement], **fields: Any) -> None:
        self.steps = steps
        self.fields = fields
        self.calls: list[int] = []

    def tasks(self, options: ScriptedOptions, scope: Scope) -> Iterable[Task]:
        for repeat in range(1, len(self.steps) + 1):
            yield Task(self.name, repeat, None, None, **{"captured": False, **self.fields})

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        self.calls.append(task.repeat)
        return self.steps[task.repeat - 1](end)

    def examine(self, seen: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        return ()


def fine(_end: MobileEnd) -> Measurement:
    return Measurement({"value": 1})


def raising(*errors: Exception) -> Callable[[MobileEnd], Measurement]:
    """Raise each in turn, then measure."""
    left = list(errors)

    def measure(_end: MobileEnd) -> Measurement:
        if left:
            raise left.pop(0)
        return Measurement({"value": 2})

    return measure


@pytest.fixture
def script(server: Serving, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Plan, Scripted]]:
    def make(*steps: Callable[[MobileEnd], Measurement], **fields: Any) -> tuple[Plan, Scripted]:
        experiment = Scripted(*steps, **fields)
        for room in (prober.run.runner, prober.plan, prober.experiments.registry):
            monkeypatch.setattr(room, "experiments", lambda: (experiment,))
        return planned(server, experiments={"scripted": {}}), experiment

    return make


# ---- what a run leaves


def test_a_run_ends_in_one_archive_with_everything(server: Serving, tmp_path: Path) -> None:
    outcome = run_plan(planned(server), tmp_path, notes={"operator": "CDMA-I"})
    assert outcome.is_whole
    assert [item.name for item in tmp_path.iterdir()] == [f"{outcome.run_id}{SUFFIX}"]
    assert outcome.archive is not None
    with open_archive(outcome.archive) as archive:
        assert len(archive.observations) == outcome.counts[Status.DONE] == 10
        assert archive.metadata["notes"] == {"operator": "CDMA-I"}
        assert abs(archive.metadata["clock"][0]["offset_s"]) < 0.1
        assert archive.metadata["mobile"]["device"]["name"] == "lo"
        for item in archive.observations:
            assert item.measurement.values["intact"], item.task.key
            for name in (item.mobile_capture, item.server_capture):
                ports = {flow.mobile_port for flow in item.measurement.flows}
                assert ports <= captured_ports(archive.captures[name]), item.task.key


def test_the_key_is_not_printed_and_not_stored(server: Serving, tmp_path: Path) -> None:
    plan = planned(server)
    outcome = run_plan(plan, tmp_path)
    token = server.key.split(".")[1]
    assert token not in repr(plan)
    assert token not in repr(read(outcome))
    assert outcome.archive is not None
    assert token.encode() not in outcome.archive.read_bytes()


def test_a_missing_key_or_server_is_reported_first(server: Serving, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no key"):
        run_plan(with_server(plan(experiments=SMALL), server.server, None), tmp_path)
    with pytest.raises(PlanError, match="no server"):
        run_plan(plan(experiments=SMALL, server={}), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_key_of_another_server_is_refused(server: Serving, tmp_path: Path) -> None:
    foreign = server.key[:-1] + ("0" if server.key[-1] != "0" else "1")
    with pytest.raises(ControlError, match="certificate"):
        run_plan(with_server(planned(server), None, foreign), tmp_path)
    assert not list(tmp_path.iterdir())


def test_plans_that_would_move_too_much_are_refused(server: Serving, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="total_bytes"):
        run_plan(planned(server, limits={"total_bytes": 10_000}), tmp_path)
    with pytest.raises(PlanError, match="must have at least one experiment"):
        planned_tasks(plan(experiments={}))


def test_an_unanswered_connection_leaves_no_file(tmp_path: Path, server: Serving) -> None:
    gone = with_server(planned(server, limits={"patience_s": 0}), "127.0.0.1:1", None)
    with pytest.raises(UnreachableError, match="did not answer"):
        run_plan(gone, tmp_path)
    assert not list(tmp_path.iterdir())


# ---- how tasks end


def test_a_failed_task_is_tried_again_and_then_reported(script: Callable[..., Any], tmp_path: Path) -> None:
    plan, experiment = script(
        raising(MeasurementError("broke off once")),
        raising(MeasurementError("first"), OSError(errno.ECONNRESET, "Connection reset by peer")),
        raising(ImpossibleError("no such filter"), ImpossibleError("never asked again")),
        fine,
    )
    outcome = run_plan(plan, tmp_path)
    assert experiment.calls == [1, 1, 2, 2, 3, 4]
    ended = {item.task.repeat: (item.status, item.reason) for item in read(outcome).observations}
    assert ended == {
        1: (Status.DONE, ""),
        2: (Status.FAILED, "Connection reset by peer"),
        3: (Status.IMPOSSIBLE, "no such filter"),
        4: (Status.DONE, ""),
    }
    assert not outcome.is_whole
    assert outcome.reason == ""
    assert outcome.failures == ("Connection reset by peer",)
    assert read(outcome).manifest.complete


def test_missing_capabilities_make_a_task_impossible(
    script: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        prober.client.capabilities,
        "lacking_at_mobile",
        lambda *_: {Capability.MOBILE_HOLD: "no iptables", Capability.ERROR_QUEUE: "x"},
    )
    plan, experiment = script(fine, requires=frozenset({Capability.MOBILE_HOLD}))
    outcome = run_plan(plan, tmp_path)
    (item,) = read(outcome).observations
    assert (item.status, item.reason) == (Status.IMPOSSIBLE, "mobile-hold: no iptables")
    assert experiment.calls == []
    assert outcome.is_whole


def test_captures_that_cannot_be_had_are_noted_and_the_task_is_measured(
    script: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = {Capability.MOBILE_CAPTURE: "no root", Capability.SERVER_CAPTURE: "at the server: no root"}
    monkeypatch.setattr(prober.client.capabilities, "lacking_at_mobile", lambda *_: both)
    plan, _ = script(fine, captured=True)
    (item,) = read(run_plan(plan, tmp_path)).observations
    assert item.status is Status.DONE
    assert item.capture_note == "mobile-capture: no root; server-capture: at the server: no root"
    assert (item.mobile_capture, item.server_capture) == ("", "")


def test_a_failed_try_leaves_no_capture(script: Callable[..., Any], tmp_path: Path) -> None:
    failure = MeasurementError("broke off")
    plan, _ = script(raising(failure, failure), raising(failure), captured=True)
    failed, done = read(run_plan(plan, tmp_path)).observations
    assert (failed.status, failed.mobile_capture, failed.server_capture) == (Status.FAILED, "", "")
    assert done.status is Status.DONE
    assert done.mobile_capture
    assert done.server_capture


def test_words_of_others_cannot_steer_the_terminal(script: Callable[..., Any], tmp_path: Path) -> None:
    error = MeasurementError("530 \x1b[2J\nlost\x07")
    plan, _ = script(raising(error, error))
    (item,) = read(run_plan(plan, tmp_path)).observations
    assert item.reason == "530 ?[2J lost?"


def test_an_unreachable_server_ends_the_run_with_what_it_has(script: Callable[..., Any], tmp_path: Path) -> None:
    plan, experiment = script(fine, raising(UnreachableError("the server did not answer for 2 s")), fine)
    outcome = run_plan(plan, tmp_path)
    assert outcome.reason == "the server did not answer for 2 s"
    assert (outcome.counts[Status.DONE], outcome.missing) == (1, 2)
    manifest = read(outcome).manifest
    assert (manifest.complete, manifest.reason) == (False, outcome.reason)
    again = run_plan(plan, tmp_path)
    assert again.is_whole
    assert again.run_id == outcome.run_id
    assert experiment.calls == [1, 2, 2, 3]
    assert [item.name for item in tmp_path.iterdir()] == [f"{again.run_id}{SUFFIX}"]


def test_a_full_disk_ends_the_run_with_what_it_has(script: Callable[..., Any], tmp_path: Path) -> None:
    plan, experiment = script(fine, raising(OSError(errno.ENOSPC, "No space left on device")), fine)
    outcome = run_plan(plan, tmp_path)
    assert "No space left on device" in outcome.reason
    assert experiment.calls == [1, 2]
    assert run_plan(plan, tmp_path).is_whole


def test_an_archive_that_cannot_be_written_is_written_next_time(
    script: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    plan, experiment = script(fine, fine)
    with monkeypatch.context() as patched:
        patched.setattr("prober.run.run_directory.write_archive", full)
        outcome = run_plan(plan, tmp_path)
    assert outcome.archive is None
    assert "No space left" in outcome.reason
    assert run_plan(plan, tmp_path).is_whole
    assert experiment.calls == [1, 2]


def test_an_error_of_an_experiment_costs_only_its_task(
    script: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PEPSCOPE_DEBUG", raising=False)
    plan, experiment = script(raising(TypeError("of ours")), raising(UsageError("no such object")), fine)
    outcome = run_plan(plan, tmp_path / "a")
    assert experiment.calls == [1, 2, 2, 3]
    assert outcome.failures == ("internal error, TypeError: of ours",)
    assert not outcome.is_whole
    monkeypatch.setenv("PEPSCOPE_DEBUG", "1")
    plan, _ = script(raising(TypeError("of ours")))
    with pytest.raises(TypeError, match="of ours"):
        run_plan(plan, tmp_path / "b")


def test_clocks_that_cannot_be_asked_cost_no_run(
    script: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanish(end: MobileEnd) -> Measurement:
        def gone() -> Clock:
            raise UnreachableError("away")

        monkeypatch.setattr(end.control, "clock", gone)
        return Measurement({"value": 1})

    plan, _ = script(fine, vanish)
    assert run_plan(plan, tmp_path).is_whole, "all was measured before"


def test_a_way_that_changes_ends_the_run_and_another_network_does_not_go_on(
    script: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def roam(_end: MobileEnd) -> Measurement:
        monkeypatch.setattr(prober.host.network_devices, "device_of", lambda _address: "wlan0")
        return Measurement({"value": 9})

    plan, experiment = script(fine, roam, fine)
    outcome = run_plan(plan, tmp_path)
    assert outcome.reason == "the route to the server changed: it used lo, and now uses wlan0"
    assert (outcome.counts[Status.DONE], outcome.missing) == (1, 2)
    with pytest.raises(UsageError, match="begun over lo"):
        run_plan(plan, tmp_path)
    monkeypatch.undo()
    plan, experiment = script(fine, fine, fine)
    assert run_plan(plan, tmp_path).is_whole
    assert experiment.calls == [2, 3]


def test_no_way_at_all_is_no_other_way(
    script: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(_end: MobileEnd) -> Measurement:
        monkeypatch.setattr(prober.host.network_devices, "device_of", lambda _address: None)
        return Measurement({"value": 9})

    plan, _ = script(lose, fine)
    assert run_plan(plan, tmp_path).is_whole


def test_a_value_that_json_cannot_hold_ends_the_run(script: Callable[..., Any], tmp_path: Path) -> None:
    plan, _ = script(lambda _end: Measurement({"rate": float("inf")}))
    with pytest.raises(RunEndedError, match="JSON"):
        run_plan(plan, tmp_path)


def test_interrupted_it_goes_on_where_it_was(script: Callable[..., Any], tmp_path: Path) -> None:
    left = [KeyboardInterrupt()]

    def interrupted(_end: MobileEnd) -> Measurement:
        if left:
            raise left.pop()
        return Measurement({"value": 3})

    plan, experiment = script(fine, interrupted, fine)
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, tmp_path)
    assert not list(tmp_path.glob(f"*{SUFFIX}"))
    outcome = run_plan(plan, tmp_path)
    assert experiment.calls == [1, 2, 2, 3]
    assert [item.measurement.values["value"] for item in read(outcome).observations] == [1, 3, 1]


def test_a_resumed_run_tries_again_what_failed_and_what_could_not_run(
    script: Callable[..., Any], tmp_path: Path
) -> None:
    failure = MeasurementError("broke off")
    plan, experiment = script(
        raising(failure, failure),
        raising(ImpossibleError("no root")),
        raising(UnreachableError("away")),
    )
    assert run_plan(plan, tmp_path).missing == 1
    assert run_plan(plan, tmp_path).is_whole
    assert experiment.calls == [1, 1, 2, 3, 1, 2, 3]


# ---- what is told meanwhile


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_terminals(script: Callable[..., Any], tmp_path: Path) -> None:
    plan, _ = script(fine, raising(*[MeasurementError("broke off")] * 2))
    terminal, pipe = Terminal(), StringIO()
    run_plan(plan, tmp_path / "a", progress=RunProgress(terminal))
    assert "[1/2, about 0:02 left] scripted" in terminal.getvalue()
    assert "[2/2, about 0:01 left] scripted, try 2" in terminal.getvalue()
    assert "scripted failed: broke off\n" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    run_plan(plan, tmp_path / "b", progress=RunProgress(pipe))
    assert pipe.getvalue() == ""
