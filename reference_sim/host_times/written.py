"""Measured times as a file that scenarios include, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reference_sim.host_times.measured import Measured

SCHEMA = 1
#: What a number is beside what it rests on.
_RESTS_ON_CAPTURES = ("machine_spread",)


def as_toml(measured: Measured) -> str:
    """A file for `times = { file = "..." }` of a scenario's `[server]` or `[mobile]`."""
    table = measured.table()
    made = f"# Times of a machine, measured by pepscope host-times in {_count(measured.captures, 'capture')}."
    lines = [
        f'{made} In a scenario: times = {{ file = "this file" }}.',
        *(f"# {line}" for line in _missing(measured)),
    ]
    for name, value in sorted(table.items(), key=lambda pair: isinstance(pair[1], dict)):
        rests_on = measured.samples.get(name)
        comment = f"  # {_basis(name, rests_on)}" if rests_on else ""
        if isinstance(value, dict):
            inner = ", ".join(f"{key} = {number!r}" for key, number in value.items())
            lines.append(f"{name} = {{ {inner} }}{comment}")
        else:
            lines.append(f"{name} = {value!r}{comment}")
    return "\n".join(lines) + "\n"


def as_document(measured: Measured, places: list[str], ends: list[str]) -> dict[str, Any]:
    """For `--json`."""
    return {
        "schema": SCHEMA,
        "captures": [{"path": place, "end": end} for place, end in zip(places, ends, strict=True)],
        "times": measured.table(),
        "samples": dict(measured.samples),
        "not_measured": list(measured.not_measured()),
    }


def as_text(measured: Measured) -> str:
    """For a terminal."""
    return "\n".join([*_rows(measured), *_missing(measured)])


def _rows(measured: Measured) -> Iterator[str]:
    for name, value in measured.table().items():
        basis = _basis(name, measured.samples[name]) if name in measured.samples else ""
        if isinstance(value, dict):
            least_us, median_us = 1e6 * value["least_s"], 1e6 * value["median_s"]
            shown = f"least {least_us:.3g} us, median {median_us:.3g} us, spread {value['spread']:.2f}"
        else:
            shown = f"{value:.3g}"
        yield f"{name:17} {shown:52} {basis}".rstrip()


def _missing(measured: Measured) -> list[str]:
    """Why defaults hold."""
    missing = [f"{name} ({measured.samples[name]})" for name in measured.not_measured()]
    if not missing:
        return []
    return [f"Too few samples, or pauses too much alike, so that a scenario's defaults hold: {', '.join(missing)}."]


def _basis(name: str, count: int) -> str:
    return _count(count, "capture" if name in _RESTS_ON_CAPTURES else "act")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
