"""When Python looks for garbage: not while modules are imported, whose objects stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Look for no garbage while modules are imported, and afterwards as before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def freeze_imports() -> None:
    """Let garbage be looked for from now on. What is imported stays: it need not be gone through again, neither while
    the command runs nor at its end."""
    gc.freeze()
    gc.enable()
