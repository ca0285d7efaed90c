"""Runs a plan: measures every task between captures at both ends, stores it at once, and archives all at the end."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pepscope.errors import PepscopeError, UsageError
from prober.archive.archive_file import SUFFIX
from prober.client import capabilities
from prober.client.capabilities import Capability
from prober.client.control_client import ControlClient
from prober.client.mobile_end import MobileEnd
from prober.client.task_captures import TaskCaptures, mobile_filter
from prober.errors import ControlError, ImpossibleError, PlanError, UnreachableError
from prober.experiments.registry import experiments
from prober.host import network_devices
from prober.measurement.cost_estimate import fetched_capture_bytes
from prober.measurement.experiment import Experiment
from prober.measurement.task import Measurement, Observation, Status, Task
from prober.plan import Plan
from prober.run import run_metadata
from prober.run.run_directory import RunDirectory
from prober.run.run_progress import RunProgress
from prober.run.server_address import connect, plan_key, reach

#: An archive has up to three members a task, and readers take 20,000 of them.
MOST_TASKS = 5_000
#: Between two samples of the clocks.
_CLOCK_SAMPLE_S = 60.0
#: Errors that a disk makes, and never a connection.
_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO})


class RunEndedError(PepscopeError):
    """Why no more tasks can be measured in this run; the finished ones are kept."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended."""

    run_id: str
    #: Where the archive is; `None` where not even that could be written.
    archive: Path | None
    #: How many tasks ended in which way; those that the run never came to are `missing`.
    counts: Mapping[Status, int]
    missing: int
    #: Why the run did not come to its end; empty where it did.
    reason: str
    #: Why the tasks that failed did, equal sentences once.
    failures: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether every task was measured, or has a reason why it cannot be."""
        return not self.reason and not self.counts[Status.FAILED]


def planned_tasks(plan: Plan) -> list[tuple[Experiment[Any, Any], Task]]:
    """All tasks of a plan in order. Raises PlanError, also for a plan that would move more than it allows."""
    wanted = (
        (experiment, task)
        for experiment in experiments()
        if experiment.name in plan.experiments
        for task in experiment.tasks(plan.experiments[experiment.name], plan)
    )
    found = list(islice(wanted, MOST_TASKS + 1))
    if len(found) > MOST_TASKS:
        raise PlanError(f"the plan must have at most {MOST_TASKS} tasks: use fewer repeats, or several plans")
    if not found:
        raise PlanError("the plan must have at least one experiment")
    keys = [task.key for _, task in found]
    if len(set(keys)) < len(keys):
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise PlanError(f"the plan must have each task once, got {twice} twice")
    total_bytes = sum(_moved_bytes(plan, task) for _, task in found)
    if total_bytes > plan.limits.total_bytes:
        raise PlanError(
            f"the plan must move at most limits.total_bytes, {plan.limits.total_bytes} bytes, got about {total_bytes}"
        )
    return found


def _moved_bytes(plan: Plan, task: Task) -> int:
    """Both ways together, with the server's capture."""
    measured_bytes = task.bytes_up + task.bytes_down
    return measured_bytes + (fetched_capture_bytes(measured_bytes, plan.capture.snap_bytes) if task.captured else 0)


def required_capabilities(tasks: list[tuple[Experiment[Any, Any], Task]]) -> set[Capability]:
    """What any of these tasks needs, or makes use of."""
    wanted = {want for _, task in tasks for want in task.requires}
    if any(task.captured for _, task in tasks):
        wanted |= {Capability.MOBILE_CAPTURE, Capability.SERVER_CAPTURE}
    return wanted


def run_plan(
    plan: Plan,
    output: str | Path,
    *,
    notes: Mapping[str, str] | None = None,
    restart: bool = False,
    progress: RunProgress | None = None,
) -> RunOutcome:
    """Run a plan, or go on with a run of it that was interrupted, and write its archive into `output`.

    Raises PepscopeError where nothing was measured, OSError where `output` cannot be used; KeyboardInterrupt and the
    like leave everything that was measured for the next run of the same plan. A run that ends early is archived all the
    same, with the reason.
    """
    tasks = planned_tasks(plan)
    output = Path(output)
    with RunDirectory(output, plan, restart=restart) as directory:
        run = _Run(plan, tasks, directory, progress or RunProgress())
        try:
            reason = run.measure()
            return run.archive(output, notes or {}, reason)
        finally:
            run.progress.end()
            if not directory.observations:
                directory.remove()


class _Run:
    """One run while it lasts."""

    def __init__(
        self, plan: Plan, tasks: list[tuple[Experiment[Any, Any], Task]], directory: RunDirectory, progress: RunProgress
    ) -> None:
        self.progress = progress
        self._plan = plan
        self._tasks = tasks
        self._directory = directory
        self._device: str | None = None
        self._clocks = directory.clocks()
        self._sampled_s = 0.0

    def measure(self) -> str:
        """Do what is still to be done; why it ended early, empty where it did not."""
        ahead = [(experiment, task) for experiment, task in self._tasks if not self._is_done(task)]
        self.progress.begin(len(self._tasks), [task for _, task in ahead])
        if not ahead:
            return ""
        try:
            with self._prepared() as end:
                for experiment, task in ahead:
                    self._observe(experiment, task, end)
                with contextlib.suppress(UnreachableError):  # nothing more is needed of the server
                    self._sample_clocks(end.control, is_due=True)
        except (UnreachableError, RunEndedError) as error:
            if not self._directory.observations:
                raise
            return str(error)
        return ""

    def archive(self, output: Path, notes: Mapping[str, str], reason: str) -> RunOutcome:
        """Write what there is; a run that came to its end is then nowhere but in its archive."""
        keys = [task.key for _, task in self._tasks]
        kept = [item for key, item in self._directory.observations.items() if key in set(keys)]
        counts = {status: sum(item.status is status for item in kept) for status in Status}
        path: Path | None = output / f"{self._directory.run_id}{SUFFIX}"
        document = run_metadata.metadata_document(self._directory.metadata(), self._clocks, notes)
        try:
            assert path is not None
            self._directory.write_archive(path, document, complete=not reason, reason=reason, keys=keys)
        except OSError as error:
            path, reason = None, reason or f"the archive cannot be written: {error.strerror or error}"
        if path is not None and not reason:
            self._directory.remove()
        failures = dict.fromkeys(item.reason for item in kept if item.status is Status.FAILED)
        return RunOutcome(self._directory.run_id, path, counts, len(keys) - len(kept), reason, tuple(failures))

    def _is_done(self, task: Task) -> bool:
        observation = self._directory.observations.get(task.key)
        return observation is not None and observation.status is Status.DONE

    @contextlib.contextmanager
    def _prepared(self) -> Iterator[MobileEnd]:
        """The mobile's end, ready to measure, with all that is lacking known."""
        plan = self._plan
        key = plan_key(plan)
        address = reach(plan.server.host, plan.server.control_port, plan.limits.patience_s)
        with connect(plan, address) as control:
            about = control.about()
            self._device = _device_towards(address)
            self._refuse_another_way()
            lacking = capabilities.lacking_at_server(about)
            lacking |= capabilities.lacking_at_mobile(self._device, address, required_capabilities(self._tasks))
            end = MobileEnd(
                control,
                about,
                host=plan.server.host,
                address=address,
                task_limit_s=plan.limits.task_s,
                expected_round_trip_s=plan.rates.round_trip_time_s,
                certificate_sha256=key.fingerprint,
                lacking=lacking,
            )
            with self._disk():
                self._directory.keep_metadata(run_metadata.describe_ends(self._device, about))
            self._sample_clocks(control, is_due=True)
            yield end

    def _refuse_another_way(self) -> None:
        """A run is over one network: one that was begun over another device does not go on over this one."""
        begun = self._directory.metadata().get("mobile", {}).get("device", {}).get("name")
        if self._directory.observations and self._device is not None and begun not in (None, self._device):
            raise UsageError(
                f"the run in {self._directory.path} was begun over {begun}, and the server is now reached over "
                f"{self._device}; --restart begins anew"
            )

    def _end_if_path_changed(self, address: str) -> None:
        """A phone that finds a WLAN leaves the measured network without notice."""
        device = _device_towards(address)
        if self._device is not None and device not in (None, self._device):
            raise RunEndedError(f"the route to the server changed: it used {self._device}, and now uses {device}")

    def _observe(self, experiment: Experiment[Any, Any], task: Task, end: MobileEnd) -> None:
        """Try a task as often as the plan allows, and keep how it ended. Raises RunEndedError, UnreachableError."""
        started_unix_ns, started_s = time.time_ns(), time.monotonic()
        status, reason, note, measurement = Status.IMPOSSIBLE, capabilities.unmet(task.requires, end.lacking), "", None
        try:
            for attempt in range(1, 1 if reason else self._plan.limits.tries + 1):
                self.progress.task(task, attempt)
                started_unix_ns, started_s = time.time_ns(), time.monotonic()
                try:
                    measurement, note = self._measure(experiment, task, end)
                    status, reason = Status.DONE, ""
                    break
                except ImpossibleError as error:
                    status, reason = Status.IMPOSSIBLE, str(error)
                    break
                except UnreachableError:
                    raise
                except RunEndedError:
                    raise
                except (PepscopeError, OSError) as error:
                    self._end_if_disk_failed(error)
                    status, reason = Status.FAILED, _sentence(error)
                    self._renew_session(end.control)
                except Exception as error:
                    # An error of an experiment must not cost an unattended run all others.
                    if os.environ.get("PEPSCOPE_DEBUG"):
                        raise
                    status, reason = Status.FAILED, f"internal error, {type(error).__name__}: {_sentence(error)}"
                    break
            if measurement is None:
                self._directory.drop(task.key)
            observation = Observation(
                task=task,
                status=status,
                reason=reason,
                started_unix_ns=started_unix_ns,
                duration_s=time.monotonic() - started_s,
                measurement=measurement or Measurement(),
                capture_note=note,
                experiment_version=experiment.version,
            )
            self._keep(observation)
        except BaseException:
            self._directory.drop(task.key)
            raise
        self.progress.observed(observation)
        self._sample_clocks(end.control)

    def _measure(self, experiment: Experiment[Any, Any], task: Task, end: MobileEnd) -> tuple[Measurement, str]:
        with self._disk():
            self._directory.begin(task.key)
        if not task.captured:
            with end.task():
                measurement = experiment.measure(task, end)
            self._end_if_path_changed(end.address)
            return measurement, ""
        captures = TaskCaptures(
            end.control,
            label=task.key,
            device=self._device,
            mobile_filter=mobile_filter(
                end.address, self._plan.server.control_port, everything=self._plan.capture.everything
            ),
            snap_bytes=self._plan.capture.snap_bytes,
            mobile_path=self._directory.capture_path(task.key, "mobile"),
            server_path=self._directory.capture_path(task.key, "server"),
            lacking=end.lacking,
            round_trip_time_s=min(
                (2 * sample.uncertainty_s for sample in self._clocks), default=self._plan.rates.round_trip_time_s
            ),
        )
        with captures:
            with end.task():
                measurement = experiment.measure(task, end)
            self._end_if_path_changed(end.address)
            return measurement, captures.finish()

    def _renew_session(self, control: ControlClient) -> None:
        """Detect a restarted server: it refuses requests with our session."""
        try:
            control.last_served_number()
        except UnreachableError:
            raise
        except ControlError:
            return  # the next task opens another session

    def _keep(self, observation: Observation) -> None:
        try:
            with self._disk():
                self._directory.commit(observation)
        except (ValueError, TypeError) as error:
            raise RunEndedError(
                f"{observation.task.experiment} measured a value that JSON cannot hold, an error of pepscope: {error}"
            ) from error

    def _sample_clocks(self, control: ControlClient, *, is_due: bool = False) -> None:
        if not is_due and time.monotonic() - self._sampled_s < _CLOCK_SAMPLE_S:
            return
        try:
            self._clocks.append(run_metadata.sample_clocks(control))
        except UnreachableError:
            raise
        except ControlError:
            return  # a fact less; what matters is asked again by the next task
        self._sampled_s = time.monotonic()
        with self._disk():
            self._directory.keep_clocks(self._clocks)

    @contextlib.contextmanager
    def _disk(self) -> Iterator[None]:
        """Whatever goes wrong here is the disk's fault, and ends the run."""
        try:
            yield
        except OSError as error:
            raise RunEndedError(f"{self._directory.path} cannot be written: {error.strerror or error}") from error

    def _end_if_disk_failed(self, error: Exception) -> None:
        """A capture that could not be written fails with other errors than the disk's, so the disk is checked, too."""
        if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
            raise RunEndedError(f"{self._directory.path} cannot be written: {error.strerror}") from error
        with self._disk():
            self._directory.try_writing()


def _device_towards(address: str) -> str | None:
    """The device that leads to an address; `None` where there is no route at the moment, or it cannot be found."""
    try:
        return network_devices.device_of(network_devices.local_address_towards(address))
    except OSError:
        return None


def _sentence(error: Exception) -> str:
    """One line that cannot steer a terminal: what stood in between may have written a part of it."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
