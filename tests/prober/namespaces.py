"""Calls made inside network namespaces, by a thread that lives in one."""

from __future__ import annotations

import contextlib
import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Result = TypeVar("Result")


class Inside:
    """A thread in a namespace; sockets, processes and threads that it makes stay there."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self._executor = executor

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function inside and wait for it."""
        return self._executor.submit(function, *arguments).result()


@contextlib.contextmanager
def inside(namespace: str) -> Iterator[Inside]:
    """A thread in a namespace that `ip netns` knows by this name."""
    with ThreadPoolExecutor(1, thread_name_prefix=namespace, initializer=_enter, initargs=(namespace,)) as executor:
        yield Inside(executor)


def _enter(namespace: str) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if library.setns(descriptor, 0) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
    finally:
        os.close(descriptor)
