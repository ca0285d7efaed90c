"""A watch: slices are taken, read and judged with the evidence of the window, and what changes is told."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

from detector.corpora.watch.evidence_pool import Evidence, EvidencePool
from detector.corpora.watch.metrics import Snapshot
from detector.corpora.watch.reader_process import ReaderProcess
from detector.corpora.watch.reading import LONGEST_NS, ReadOptions, SliceReading, SliceWork
from detector.corpora.watch.sources import Slice, Source
from detector.corpora.watch.standing import Change, Standing, StandingGroup
from detector.corpora.watch.state_file import write_state
from detector.corpora.watch.webhook import Webhook
from detector.one_capture.detection import vantage_groups
from detector.one_capture.networks import NetworkTable, read_networks
from detector.options import DECISION_PROBABILITY
from pepscope.captures.opening.filters import compile_filter
from pepscope.errors import PepscopeError
from pepscope.results.verdicts import GroupResult, GroupSide, Verdict

#: Between two looks at the clock and the user while nothing comes.
_BETWEEN_LOOKS_S = 0.5

#: Between two writes of the state.
_BETWEEN_STATES_S = 60.0

_LOG = logging.getLogger("pepscope.watch")


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """`window_s`: verdicts rest on connections that ended within it. `alert_on`: verdicts that the webhook is told of.

    `most_connections` bounds the evidence, `networks` is a table as in `detect`, `memory_bytes` what reading a slice
    may keep in memory. `state` is the file in which the next run finds what this one knew.
    """

    window_s: float = 3600.0
    least_probability: float = DECISION_PROBABILITY
    most_connections: int = 50_000
    taken_at: GroupSide | None = None
    networks: str | None = None
    filter_expression: str | None = None  # of captures that are read; an interface has its own
    memory_bytes: int | None = None
    alert_on: frozenset[Verdict] = frozenset({Verdict.SPLIT_TCP, Verdict.TCP_PROXY})
    state: Path | None = None


class Watch:
    """A watch of one source; `run` it once. `verdicts_seen` are those that groups had at any time."""

    def __init__(
        self,
        source: Source,
        options: WatchOptions,
        *,
        evidence: Evidence | None = None,
        webhook: Webhook | None = None,
        on_changes: Callable[[Sequence[Change]], object] = lambda _: None,
        on_tick: Callable[[], object] = lambda: None,
    ) -> None:
        """`evidence` is what an earlier run left, `on_changes` is called with what a slice changed, `on_tick` once or
        twice a second. Raises UsageError for a table of networks that cannot be read, FilterError.
        """
        if options.filter_expression is not None:
            compile_filter(options.filter_expression)
        self._source = source
        self._options = options
        self._webhook = webhook
        self._on_changes, self._on_tick = on_changes, on_tick
        self._table = NetworkTable() if options.networks is None else read_networks(options.networks)
        self._pool = EvidencePool(options.window_s, options.most_connections, self._table)
        self._standing = Standing()
        self._groups: Sequence[StandingGroup] = ()
        self._carried: dict[str, tuple[Path, float]] = {}  # of each series, with the time when it was made
        self._slices: Counter[str] = Counter({"judged": 0, "failed": 0})
        self._number = self._connections = self._changes = 0
        self._judging_s = 0.0
        self._state_written_s = time.monotonic()
        self.verdicts_seen: set[Verdict] = set()
        if evidence is not None and len(evidence):
            self._pool.add(evidence, int(evidence.vantage.columns["last_time_ns"].max()))
            self._judge()

    @property
    def groups(self) -> Sequence[StandingGroup]:
        """As they stand."""
        return self._groups

    def snapshot(self) -> Snapshot:
        """How the watch stands; for any thread."""
        source, webhook = self._source, self._webhook
        return Snapshot(
            groups=self._groups,
            packets=source.counts,
            connections=self._connections,
            evidence_connections=len(self._pool),
            changes=self._changes,
            slices={**self._slices, "lost": source.lost_slices},
            waiting_slices=source.waiting,
            judging_s=self._judging_s,
            judged_until_ns=self._pool.now_ns,
            alerts={} if webhook is None else {"posted": webhook.posted, "failed": webhook.failed},
        )

    def run(self, stopped: threading.Event, *, duration_s: float | None = None, once: bool = False) -> None:
        """Watch until `stopped` is set, `duration_s` have passed, the source ends, or with `once` nothing waits.

        What was captured until then is judged, and the state written. Raises UsageError where the state cannot be, and
        what ended the source.
        """
        ends_s = None if duration_s is None else time.monotonic() + duration_s
        reader = ReaderProcess()
        with TemporaryDirectory(prefix="pepscope-watch-") as scratch:
            try:
                is_ending = False
                while True:
                    if not is_ending and (stopped.is_set() or (ends_s is not None and time.monotonic() >= ends_s)):
                        self._source.finish()
                        is_ending = True
                    taken = self._source.take(0.0 if once else _BETWEEN_LOOKS_S)
                    self._on_tick()
                    if taken is not None:
                        self._take(reader, taken, Path(scratch), stopped)
                    elif is_ending or once or self._source.failure is not None:
                        break
                    self._flush(reader, max_age_s=LONGEST_NS / 1e9)
                self._flush(reader, max_age_s=0.0)
            finally:
                reader.close()
                self._source.finish()
        self._write_state()
        if self._source.failure is not None:
            raise self._source.failure

    def _take(self, reader: ReaderProcess, taken: Slice, scratch: Path, stopped: threading.Event) -> None:
        """Judge a slice behind what the one before handed on."""
        carried, _ = self._carried.get(taken.series, (None, 0.0))
        target = scratch / f"carried-{self._number}.pcap"
        work = self._work(taken.path, carried=carried, target=target, ended_ns=taken.ended_ns, after_ns=taken.after_ns)
        reading = self._read(reader, work, stopped if self._source.may_wait else None)
        if reading is None:
            return
        if carried is not None:
            del self._carried[taken.series]
            carried.unlink(missing_ok=True)
        if isinstance(reading, SliceReading):
            if reading.carried:
                self._carried[taken.series] = (target, time.monotonic())
            for warning in reading.warnings:
                _LOG.debug("%s: %s", taken.path, warning)
            self._source.judged(taken, reading.last_ns)
            self._slices["judged"] += 1
            self._count(reading, taken.ended_ns)
        else:
            self._slices["failed"] += 1
            _LOG.warning("%s", _sentence(taken.path, reading))
            self._source.judged(taken, None)
        if time.monotonic() - self._state_written_s > _BETWEEN_STATES_S:
            self._write_state()

    def _flush(self, reader: ReaderProcess, max_age_s: float) -> None:
        """Judge what was handed on, and for which no slice came for so long."""
        for series, (path, made_s) in list(self._carried.items()):
            if time.monotonic() - made_s >= max_age_s:
                reading = self._read(reader, self._work(path), None)
                if isinstance(reading, SliceReading):
                    self._count(reading, None)
                del self._carried[series]
                path.unlink(missing_ok=True)

    def _work(
        self,
        path: Path,
        *,
        carried: Path | None = None,
        target: Path | None = None,
        ended_ns: int | None = None,
        after_ns: int | None = None,
    ) -> SliceWork:
        options = self._options
        self._number += 1
        read = ReadOptions(
            options.most_connections, options.networks, options.filter_expression, options.memory_bytes
        )  # fmt: skip
        seed = crc32(f"{path} {self._number}".encode())
        return SliceWork(path, carried, target, read, seed, ended_ns, after_ns)

    def _read(
        self, reader: ReaderProcess, work: SliceWork, stopped: threading.Event | None
    ) -> SliceReading | Exception | None:
        """A reading, or why there is none; None where the user ended it."""

        def meanwhile() -> bool:
            self._on_tick()
            return stopped is not None and stopped.is_set()

        begun_s = time.monotonic()
        try:
            return reader.read(work, meanwhile)
        except Exception as error:  # one slice must not end a watch of days
            return error
        finally:
            self._judging_s = time.monotonic() - begun_s

    def _count(self, reading: SliceReading, ended_ns: int | None) -> None:
        """Judge the groups anew with what a slice adds."""
        begun_s = time.monotonic()
        self._connections += reading.connections
        self._pool.add(reading.evidence, max(ended_ns or 0, reading.last_ns or 0))
        changes = self._judge()
        self._judging_s += time.monotonic() - begun_s
        self._changes += len(changes)
        alerts = [each for each in changes if {each.before, each.after} & self._options.alert_on]
        if alerts and self._webhook is not None:
            self._webhook.post(alerts, self._source.name)
        if changes:
            self._on_changes(changes)

    def _judge(self) -> list[Change]:
        evidence, options = self._pool.evidence, self._options
        results: Sequence[GroupResult] = ()
        if evidence is not None and len(evidence):
            results = vantage_groups(
                evidence.vantage, taken_at=options.taken_at, networks=self._table,
                least_probability=options.least_probability,
            )  # fmt: skip
        changes = self._standing.update(results, self._pool.now_ns)
        self._groups = self._standing.groups
        self.verdicts_seen |= {group.result.verdict for group in self._groups}
        return changes

    def _write_state(self) -> None:
        if self._options.state is not None:
            write_state(self._options.state, self._source.name, self._source.state(), self._pool.evidence)
            self._state_written_s = time.monotonic()


def _sentence(path: Path, error: Exception) -> str:
    """Why a slice could not be judged."""
    if isinstance(error, PepscopeError | OSError):
        return str(error)
    return f"{path} could not be judged: {type(error).__name__}: {error}"
