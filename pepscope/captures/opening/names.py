"""How captures are called."""

from __future__ import annotations

from pathlib import PurePath

_ENDINGS = (".pcap", ".pcapng", ".cap", ".ntar", ".snoop")


def is_called_a_capture(name: str) -> bool:
    """Whether a file's name holds an ending of captures; tools that rotate or compress them write more behind it."""
    return any(ending in PurePath(name).name.lower() for ending in _ENDINGS)
