"""What can go wrong with a proxy; each message is one sentence."""

from __future__ import annotations

from pepscope.errors import PepscopeError


class ConfigurationError(PepscopeError, ValueError):
    """A configuration that cannot be used: the message names the field, its value and what is allowed."""


class ProxyError(PepscopeError):
    """The proxy cannot start or install its rules."""


class RefusedError(Exception):
    """A connection that is not served; `reason` is a word for truth and metrics, the message has the details."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class MalformedError(RefusedError):
    """What the peer sent is not the protocol that was expected."""

    def __init__(self, message: str) -> None:
        super().__init__("malformed", message)
