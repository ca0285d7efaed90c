"""Logs of commands that run until they are ended: on standard error, one line an event, as text or as JSON."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, message and the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")
        line = {"time": time, "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line | getattr(record, "fields", {}), default=str)


class TextFormatter(logging.Formatter):
    """The message with the fields of the event behind it."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, unless there is a trace."""
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        fields = "".join(f" {name}={value}" for name, value in getattr(record, "fields", {}).items())
        trace = "\n" + self.formatException(record.exc_info) if record.exc_info else ""
        return f"{time} {record.levelname.lower()}: {record.getMessage()}{fields}{trace}"


def configure(name: str, log_format: str, level: str) -> None:
    """Send the log called `name` to standard error; `log_format` is `text` or `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logger = logging.getLogger(name)
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
