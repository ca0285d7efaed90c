"""tcptrace as an oracle: how many round trips it samples in each direction."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_HOSTS = re.compile(r"host \w+:\s+(\S+)\n\s+host \w+:\s+(\S+)")
_SAMPLES = re.compile(r"RTT samples:\s+(\d+)\s+RTT samples:\s+(\d+)")


def round_trip_samples(path: Path) -> dict[tuple[str, str], int]:
    """Samples by (sender, receiver) of the data; end points as `address:port`."""
    command = ["tcptrace", "-n", "-l", "-r", "-W", str(path)]
    output = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False).stdout
    found: dict[tuple[str, str], int] = {}
    for block in re.split(r"={20,}", output):
        hosts, samples = _HOSTS.search(block), _SAMPLES.search(block)
        if hosts is not None and samples is not None:
            first, second = hosts.groups()
            found[first, second], found[second, first] = (int(count) for count in samples.groups())
    return found
