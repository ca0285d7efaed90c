"""Sizes in bytes as people write them: `512MiB`, `1.5 GB`, `4k`."""

from __future__ import annotations

import re

from pepscope.errors import UsageError

_UNITS = {
    "": 1,
    "b": 1,
    "k": 1 << 10,
    "kib": 1 << 10,
    "kb": 10**3,
    "m": 1 << 20,
    "mib": 1 << 20,
    "mb": 10**6,
    "g": 1 << 30,
    "gib": 1 << 30,
    "gb": 10**9,
    "t": 1 << 40,
    "tib": 1 << 40,
    "tb": 10**12,
}


def parse_size(text: str) -> int:
    """Bytes; `KiB` counts 1024, `kB` 1000, a bare `k` 1024. Raises UsageError."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    factor = _UNITS.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise UsageError(f"a size must be bytes with a unit, such as 512MiB or 1GiB, got {text!r}")
    if (size := float(match[1]) * factor) >= 1 << 63:
        raise UsageError(f"a size must be less than 8388608TiB, got {text!r}")
    return int(size)


def format_size(count: int) -> str:
    """A size as `parse_size` reads it, exactly, in the largest unit of 1024 that divides it: `20GiB`, `1500B`."""
    exponent = 0 if count == 0 else min(4, ((count & -count).bit_length() - 1) // 10)
    return f"{count >> 10 * exponent}{('B', 'KiB', 'MiB', 'GiB', 'TiB')[exponent]}"


def format_count(value: float) -> str:
    """A count in at most five characters: `999`, `12.3k`, `4.56M` (decimal)."""
    if value < 999.5:
        return f"{value:.0f}"
    for unit in "kMG":
        value /= 1000
        if value < 999.5:
            return f"{value:.{_decimals(value)}f}{unit}"
    return f"{value / 1000:.{_decimals(value / 1000)}f}T"


def format_bytes(count: float) -> str:
    """Bytes with a decimal unit: `999 B`, `38.7 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.{_decimals(count) if unit != 'B' else 0}f} {unit}"
        count /= 1000
    return f"{count:.{_decimals(count)}f} TB"


def format_span(seconds: float) -> str:
    """A time as one plans it: `40 s`, `14 min`, `2 h 5 min`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _decimals(value: float) -> int:
    """Decimals that leave three digits."""
    return 2 if value < 9.995 else 1 if value < 99.95 else 0
