"""What is logged by Python's `logging`, without importing it: that takes longer than judging a small capture."""

from __future__ import annotations

import sys


def log_info(logger: str, message: str, *values: object) -> None:
    """Log a message of the caller's at level INFO, if anything has imported `logging`: a program whose logs are read
    has."""
    if (logging := sys.modules.get("logging")) is not None:
        logging.getLogger(logger).info(message, *values, stacklevel=2)
