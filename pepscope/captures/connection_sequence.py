"""The connections of a capture as a sequence of objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from pepscope.captures.connections import CLOSES, MISSING_PACKETS, Connection, FlowSummary

if TYPE_CHECKING:
    from pepscope import _core


class ConnectionSequence(Sequence[Connection]):
    """Connections of a capture, each made when it is asked for."""

    def __init__(self, core: _core.Capture) -> None:
        self._core = core

    def __len__(self) -> int:
        return self._core.connection_count

    @overload
    def __getitem__(self, index: int) -> Connection: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Connection]: ...
    def __getitem__(self, index: int | slice) -> Connection | Sequence[Connection]:
        if isinstance(index, slice):
            return [self._at(position) for position in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"connection {index} of {len(self)}")
        return self._at(position)

    def _at(self, position: int) -> Connection:
        fields, up, down = self._core.connection(position, CLOSES, MISSING_PACKETS)
        return Connection._make((*fields, FlowSummary._make(up), FlowSummary._make(down)))
