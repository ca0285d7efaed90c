"""Context managers that open in steps, and close all that is open in the reverse order, also where a step fails."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import Self


class OpenedInSteps(ABC):
    """A context manager whose `_open_steps` puts on `_closing` how each step is undone."""

    def __init__(self) -> None:
        self._closing = contextlib.ExitStack()

    def __enter__(self) -> Self:
        try:
            self._open_steps()
        except BaseException:
            self._closing.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    @abstractmethod
    def _open_steps(self) -> None:
        """Open everything."""
