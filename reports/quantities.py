"""Numbers for readers: a few digits and a unit."""

from __future__ import annotations

import math

import numpy as np

#: Words of names in `Evidence.numbers` that stand for a share of a whole.
_SHARE_NAMES = ("fraction", "share", "ratio", "matched", "overlap", "confidence", "agreement")


#: What names of numbers mean that would otherwise be read as the same thing.
_LABELS = {
    "exact slack": "slack if no point is left out",
    "method1 margin": "Method 1, least margin",
    "method2 margin": "Method 2, least margin",
    "method1 share": "Method 1, too early",
    "method2 share": "Method 2, too early",
}


def format_moment(unix_ns: int) -> str:
    """Write a Unix time to the millisecond, in UTC: `2026-01-02 03:04:05.678 UTC`."""
    return f"{np.datetime64(unix_ns // 1_000_000, 'ms')} UTC".replace("T", " ", 1)


def format_seconds(seconds: float) -> str:
    """Write a duration with a unit that leaves one to three digits before the point: `12.3 ms`, `4.2 s`, `3 min`."""
    if abs(seconds) < 1e-9:  # finer than any capture's clock
        seconds = 0.0
    size = abs(seconds)
    if not math.isfinite(seconds):
        return "unlimited"
    if size >= 600:
        return f"{_digits(seconds / 60)} min"
    if size >= 1 or size == 0:
        return f"{_digits(seconds)} s"
    if size >= 1e-3:
        return f"{_digits(seconds * 1e3)} ms"
    return f"{_digits(seconds * 1e6)} us"


def format_bytes(count: float) -> str:
    """Write a number of bytes in decimal units: `812 B`, `2.1 MB`."""
    return _scaled(count, ("B", "kB", "MB", "GB", "TB"))


def format_bit_rate(bit_s: float) -> str:
    """Write a rate in decimal units: `1.2 Mbit/s`."""
    return _scaled(bit_s, ("bit/s", "kbit/s", "Mbit/s", "Gbit/s"))


def format_percent(share: float) -> str:
    """Write a share in [0, 1] as a percentage that is 0 % or 100 % only where it is exact."""
    percent = 100 * share
    if 0 < percent < 1:
        return "<1 %"
    if 99 < percent < 100:
        return ">99 %"
    return f"{percent:.0f} %"


def format_count(count: int) -> str:
    """Write a whole number with thousands separated by commas."""
    return f"{count:,}"


def describe_number(name: str, value: float | int | str | bool | None) -> tuple[str, str]:
    """Turn one entry of `Evidence.numbers` into a label and a value with its unit, both plain text.

    The unit is read off the end of the name (`_s`, `_ms`, `_ns`, `_bytes`, `_bit_s`, `_ppm`); shares are recognised by
    name and written as percentages.
    """
    if value is None:
        return _label(name), "not known"
    if isinstance(value, bool):
        return _label(name), "yes" if value else "no"
    if isinstance(value, str):
        return _label(name), value
    for ending, scale in (("_bit_s", None), ("_ms", 1e-3), ("_us", 1e-6), ("_ns", 1e-9), ("_s", 1.0)):
        if name.endswith(ending):
            label = _label(name.removesuffix(ending))
            return label, format_bit_rate(value) if scale is None else format_seconds(value * scale)
    if name.endswith("_bytes") or name == "bytes":
        return _label(name.removesuffix("_bytes")), format_bytes(value)
    if name.endswith("_ppm"):
        return _label(name.removesuffix("_ppm")), f"{_digits(value)} ppm"
    if isinstance(value, float) and 0 <= value <= 1 and not set(name.split("_")).isdisjoint(_SHARE_NAMES):
        return _label(name), format_percent(value)
    return _label(name), format_count(value) if isinstance(value, int) else _digits(value)


def _label(name: str) -> str:
    words = name.replace("_", " ")
    return _LABELS.get(words, words)


def _scaled(value: float, units: tuple[str, ...]) -> str:
    if not math.isfinite(value):
        return "unlimited"
    index = 0
    while abs(value) >= 999.5 and index < len(units) - 1:
        value /= 1000
        index += 1
    return f"{_digits(value)} {units[index]}"


def _digits(value: float) -> str:
    """Three significant digits, no exponent for everyday sizes."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = math.floor(math.log10(abs(value)))
    if size >= 6 or size < -4:
        return f"{value:.3g}"
    decimals = max(0, 2 - size)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text
