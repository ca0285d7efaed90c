"""Answers that were given: a request that is asked again, because its answer was lost, does nothing twice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future

_MOST = 500
#: How long a second asking waits for the first to be done.
_WAIT_S = 60.0

Answer = tuple[int, bytes]


class Answers:
    """The last answers by the names of their requests."""

    def __init__(self) -> None:
        self._given: OrderedDict[str, Future[Answer]] = OrderedDict()
        self._lock = threading.Lock()

    def once(self, name: str, do: Callable[[], Answer]) -> Answer:
        """What `do` answers; what it answered before, where the name was asked before."""
        with self._lock:
            future = self._given.get(name)
            is_first = future is None
            if future is None:
                future = self._given[name] = Future()
                while len(self._given) > _MOST:
                    self._given.popitem(last=False)
        if is_first:
            try:
                future.set_result(do())
            except BaseException as error:
                future.set_exception(error)
                raise
        return future.result(_WAIT_S)
