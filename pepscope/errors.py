"""Errors that a user can act on: each message is one sentence.

What Python has an exception for is that exception as well: a capture that does not exist is a FileNotFoundError, an
option outside its range a ValueError.
"""

from __future__ import annotations


class PepscopeError(Exception):
    """Root of all errors of ours; the command line prints the message and exits with `exit_status`."""

    exit_status = 2


class CaptureError(PepscopeError):
    """A capture cannot be opened, is of no known kind, or holds nothing to analyse."""


class MissingCaptureError(CaptureError, FileNotFoundError):
    """No file has the name of the capture."""


class UnreadableCaptureError(CaptureError, OSError):
    """The system does not let the capture be read."""


class MalformedCaptureError(CaptureError, ValueError):
    """The file can be read, but is no capture or holds nothing to analyse."""


class FilterError(PepscopeError, ValueError):
    """A capture filter does not compile."""


class MissingPackageError(PepscopeError, ModuleNotFoundError):
    """A package of an extra is not installed; the message has the command that installs it."""


class UsageError(PepscopeError, ValueError):
    """Options that do not fit together or lie outside their range."""


class ScenarioError(PepscopeError, ValueError):
    """A scenario that cannot be run: the message names the field, its value and what is allowed."""


class SimulationError(PepscopeError):
    """A run that could not be brought to its end."""


class LivePathError(PepscopeError):
    """A path between network namespaces that cannot be set up, or did not last."""
