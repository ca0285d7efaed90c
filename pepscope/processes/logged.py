"""What is logged by Python's `logging`, without importing it: that takes longer than judging a small capture."""

from __future__ import annotations

import sys


def log_info(logger: str, message: str, *values: object) -> None:
    """Log a message at level INFO, unless nothing has imported `logging`: whoever wants to read logs has. It is the
    caller's."""
    if (logging := sys.modules.get("logging")) is not None:
        logging.getLogger(logger).info(message, *values, stacklevel=2)
