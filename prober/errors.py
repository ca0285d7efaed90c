"""What can go wrong with a measurement; each message is one sentence."""

from __future__ import annotations

from pepscope.errors import PepscopeError


class PlanError(PepscopeError, ValueError):
    """A plan that cannot be used: the message names the field, its value and what is allowed."""


class ServerError(PepscopeError):
    """The measuring server cannot start, or not with these settings."""


class ControlError(PepscopeError):
    """The server's control channel refused something, or answered what cannot be understood."""


class MalformedMessageError(ControlError):
    """A message of the other end that cannot be understood; the sentence names the field and what is allowed."""


class UnreachableError(ControlError):
    """The server did not answer for as long as the plan waits."""


class MeasurementError(PepscopeError):
    """A task that could not be brought to its end; it may be tried again."""


class ImpossibleError(PepscopeError):
    """A task that cannot run here (no root, no such packet filter): trying again would not help."""


class ArchiveError(PepscopeError):
    """An archive that cannot be written, or that is refused: damaged, of another schema, or made to do harm."""
