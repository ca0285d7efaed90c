"""What the server refuses: one sentence for the client, and the status that HTTP has for it."""

from __future__ import annotations

from pepscope.errors import PepscopeError


class RefusedError(PepscopeError):
    """A request that is refused, with a status of RFC 9110."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
