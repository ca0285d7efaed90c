"""Work over the workers of a Dask scheduler, any of which may go away and come back."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from pepscope.errors import UsageError
from pepscope.extras import missing_package
from pepscope.processes.workers.errors import ClusterLostError, WorkerDiedError

if TYPE_CHECKING:
    import distributed

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

#: How long a scheduler or workers that went away are waited for.
PATIENCE_S = 60.0

#: A scheduler that is there answers within this time.
_ANSWER_S = 10.0

#: A scheduler that goes away so often, and nothing is done in between, is of no use.
_MOST_LOSSES = 5

#: Pieces of work that a scheduler holds for each thread of its workers: none waits for the next one.
_PER_THREAD = 4

#: A cluster that says nothing is asked so often whether it still has workers.
_LOOK_S = 2.0

#: Packages that must be of one version everywhere: results depend on the first, the protocol on the others.
_SAME_VERSION: tuple[str, ...] = ("pepscope", "distributed", "dask")

#: What a client logs, with tracebacks, about a scheduler that went away: errors here say it.
_LOGGERS = ("distributed.client", "distributed.core", "distributed.batched", "distributed.utils", "distributed.comm")


class _LostError(Exception):
    """The scheduler does not answer any more."""


def over_cluster(
    work: Callable[[Item], Outcome], items: Sequence[Item], scheduler: str, shared: Path | None, patience_s: float
) -> Generator[tuple[int, Outcome | Exception], None, None]:
    """The place and the outcome of each item, in the order in which they end. Raises as `over_workers` does.

    Items that were running when the scheduler went away are submitted again; those that lost their workers too often
    are done last and alone.
    """
    left, losses = _ItemsLeft(len(items)), 0
    with _quiet():
        while left.any():
            client = _connected(scheduler, patience_s if losses else None)
            try:
                with _closing(client):
                    _check(client, scheduler, shared, patience_s)
                    rounds = (_outcomes(client, work, items, places, scheduler, patience_s) for places in left.rounds())
                    for place, outcome in chain.from_iterable(rounds):
                        losses = min(losses, 1)
                        died = _is_death(outcome)
                        if left.settle(place, died=died):
                            yield place, WorkerDiedError.of_one() if died else outcome
            except _LostError:
                losses += 1
                if losses > _MOST_LOSSES:
                    raise ClusterLostError(f"the Dask scheduler at {scheduler} goes away again and again") from None


class _ItemsLeft:
    """Places of items without an outcome. An item whose workers died is a suspect: it gets one more try, alone, so that
    it takes no other item's workers with it."""

    def __init__(self, count: int) -> None:
        self._waiting = dict.fromkeys(range(count))
        self._suspects: dict[int, None] = {}

    def any(self) -> bool:
        """Whether an item has no outcome yet."""
        return bool(self._waiting or self._suspects)

    def rounds(self) -> Iterator[list[int]]:
        """The items to submit next, until none is left: all that wait, or else one suspect. Settle the items of a round
        before the next one."""
        while self.any():
            yield list(self._waiting) or [next(iter(self._suspects))]

    def settle(self, place: int, *, died: bool) -> bool:
        """Note that an item ended or that its workers `died`; False if it is to be tried once more."""
        if died and place in self._waiting:
            self._suspects[place] = self._waiting.pop(place)
            return False
        self._waiting.pop(place, None)
        self._suspects.pop(place, None)
        return True


def _connected(scheduler: str, patience_s: float | None) -> distributed.Client:
    """A client; with patience of a scheduler that was there before."""
    try:
        import distributed
    except ImportError:
        raise UsageError(missing_package("distributed")) from None
    try:
        timeout = _ANSWER_S if patience_s is None else max(patience_s, 0.1)
        with warnings.catch_warnings():
            # `_check_versions` says in a sentence what matters of it.
            warnings.simplefilter("ignore", distributed.versions.VersionMismatchWarning)
            return distributed.Client(scheduler, timeout=timeout, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError) as error:
        if patience_s is None:
            raise UsageError(f"no Dask scheduler answers at {scheduler}: {error}") from None
        raise ClusterLostError(
            f"the Dask scheduler at {scheduler} went away and did not come back within {patience_s:g} s"
        ) from None


@contextmanager
def _closing(client: Any) -> Generator[None, None, None]:
    """Closes a client behind the block.

    One that looks for its scheduler again at that moment closes, and then says that its connections are closed.
    """
    try:
        yield
    finally:
        with suppress(RuntimeError):
            client.close()


def _check(client: Any, scheduler: str, shared: Path | None, patience_s: float) -> None:
    """Raises UsageError where the cluster cannot do the work, ClusterLostError where it has no workers."""
    with _answers():
        try:
            client.wait_for_workers(1, timeout=max(patience_s, 0.1))
        except TimeoutError:
            raise ClusterLostError(_without_workers(scheduler, patience_s)) from None
        _check_versions(client, scheduler)
        if shared is not None:
            _check_shared(client, shared.resolve())


def _check_versions(client: Any, scheduler: str) -> None:
    found = client.get_versions(packages=list(_SAME_VERSION))
    mine = found["client"]["packages"]
    others = {f"the scheduler at {scheduler}": (found["scheduler"], _SAME_VERSION[1:])}
    others |= {f"the worker at {name}": (versions, _SAME_VERSION) for name, versions in found["workers"].items()}
    for name, (versions, packages) in others.items():
        for package in packages:
            theirs = versions["packages"].get(package)
            if theirs != mine[package]:
                has = f"{package} {theirs}" if theirs else f"no {package}"
                raise UsageError(f"{name} has {has}, here it is {mine[package]}: install one version everywhere")


def _check_shared(client: Any, shared: Path) -> None:
    blind = sorted(worker for worker, sees in client.run(os.path.isfile, str(shared)).items() if not sees)
    if blind:
        raise UsageError(
            f"{len(blind)} workers of the cluster ({blind[0]} for one) do not see {shared.parent}: give a directory "
            "that all share"
        )


def _outcomes(
    client: Any,
    work: Callable[[Item], Outcome],
    items: Sequence[Item],
    places: Iterable[int],
    scheduler: str,
    patience_s: float,
) -> Iterator[tuple[int, Outcome | Exception]]:
    """Outcomes as they end. Raises _LostError where the scheduler goes away, ClusterLostError where all workers do and
    none comes back."""
    queue, running, done = iter(places), dict[str, tuple[int, Any]](), SimpleQueue[Any]()

    def submit(threads: int) -> None:
        for place in islice(queue, max(_PER_THREAD * threads - len(running), 0)):
            future = client.submit(work, items[place], pure=False, retries=0)
            running[future.key] = place, future
            future.add_done_callback(done.put)

    with _answers():
        threads, had_workers = _threads(client), time.monotonic()
        submit(max(threads, 1))
        while running:
            try:
                future = done.get(timeout=_LOOK_S)
            except Empty:
                threads = _threads(client)
                had_workers = time.monotonic() if threads else had_workers
                if time.monotonic() - had_workers > patience_s:
                    raise ClusterLostError(_without_workers(scheduler, patience_s)) from None
            else:
                place, _ = running.pop(future.key)
                had_workers = time.monotonic()
                yield place, _outcome(future)
                del future
            submit(threads)


def _outcome(future: Any) -> Any:
    if future.status == "error":
        return future.exception()
    if future.status == "finished":
        return future.result(timeout=_ANSWER_S)
    raise _LostError


def _threads(client: Any) -> int:
    return sum(client.nthreads().values())


def _is_death(outcome: object) -> bool:
    from distributed import KilledWorker

    return isinstance(outcome, KilledWorker)


def _without_workers(scheduler: str, patience_s: float) -> str:
    return f"the Dask scheduler at {scheduler} has had no workers for {patience_s:g} s"


@contextmanager
def _answers() -> Iterator[None]:
    """Whatever a client raises about its connection is a loss."""
    try:
        yield
    except (OSError, TimeoutError, CancelledError) as error:
        raise _LostError from error


@contextmanager
def _quiet() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
