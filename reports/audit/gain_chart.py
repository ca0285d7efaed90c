"""What a split gains at each size: medians with their intervals about the line of no gain, drawn and in numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from pepscope.results.charts import Chart, Line
from reports.quantities import format_bytes, format_count, format_percent, format_seconds

#: Share of the axis that a size's label takes.
LABEL_SHARE = 0.08


@dataclass(frozen=True, slots=True)
class Gain:
    """One size: the gain as a share, its interval where there is one, and the medians behind it."""

    size_bytes: float
    gain: float
    low: float | None
    high: float | None
    pairs: int
    usual_s: float | None
    free_s: float | None
    reading: str
    #: The nearest simulated cell in a sentence, if one is near.
    simulated: str = ""


def read_gains(metrics: Mapping[str, Any]) -> list[Gain]:
    """The rows of the experiment `gain`, smallest size first; rows that make no sense are passed over."""
    rows = metrics.get("gain")
    found = []
    for row in rows if isinstance(rows, list | tuple) else ():
        if not isinstance(row, Mapping):
            continue
        size, gain = _number(row.get("size_bytes")), _number(row.get("gain"))
        if size is None or size <= 0 or gain is None:
            continue
        low, high = _number(row.get("gain_low")), _number(row.get("gain_high"))
        has_interval = low is not None and high is not None and low <= high
        found.append(
            Gain(
                size_bytes=size,
                gain=gain,
                low=low if has_interval else None,
                high=high if has_interval else None,
                pairs=int(_number(row.get("pairs")) or 0),
                usual_s=_number(row.get("usual_median_s")),
                free_s=_number(row.get("free_median_s")),
                reading=str(row.get("reading", "")),
                simulated=_reading_of(row.get("simulated")),
            )
        )
    return sorted(found, key=lambda item: item.size_bytes)


def gain_chart(gains: Sequence[Gain], title: str) -> Chart:
    """The gains over sizes on a logarithmic axis; medians without an interval are hollow."""
    sizes = [item.size_bytes for item in gains]
    firm = [item for item in gains if item.low is not None and item.high is not None]
    loose = [item for item in gains if item.low is None or item.high is None]
    lines = [
        Line(
            "median and its interval", [item.size_bytes for item in firm], [item.gain for item in firm],
            has_line=False, interval=[(item.low or 0.0, item.high or 0.0) for item in firm],
        ),
        Line(
            "too few pairs for an interval", [item.size_bytes for item in loose], [item.gain for item in loose],
            is_published=True, has_line=False,
        ),
        Line("no gain", [sizes[0], sizes[-1]], [0.0, 0.0], is_dense=True),
    ]  # fmt: skip
    return Chart(
        "gain", title, "object", "throughput gained", tuple(line for line in lines if line.x),
        is_x_logarithmic=True, x_ticks=_apart(sizes), x_label=format_bytes, y_label=_signed,
    )  # fmt: skip


def _apart(sizes: Sequence[float]) -> list[float]:
    """The sizes that leave room for each other's labels on the axis."""
    spread = math.log(sizes[-1] / sizes[0]) or 1.0
    kept: list[float] = []
    for size in sizes:
        if not kept or math.log(size / kept[-1]) >= LABEL_SHARE * spread:
            kept.append(size)
    return kept


def gain_table(gains: Sequence[Gain]) -> str:
    """The same in numbers."""
    rows = "".join(
        f'<tr><td data-label="size" class="number">{format_bytes(item.size_bytes)}</td>'
        f'<td data-label="pairs" class="number">{format_count(item.pairs)}</td>'
        f'<td data-label="usual port" class="number">{_time(item.usual_s)}</td>'
        f'<td data-label="free port" class="number">{_time(item.free_s)}</td>'
        f'<td data-label="gain" class="number">{_signed(item.gain)}</td>'
        f'<td data-label="reading">{escape(_sentences(item))}</td></tr>'
        for item in gains
    )
    heads = "".join(
        f'<th scope="col"{" class=number" if place < 5 else ""}>{name}</th>'
        for place, name in enumerate(("size", "pairs", "usual port", "free port", "gain", "reading"))
    )
    return f'<table class="rows"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'


def _reading_of(simulated: object) -> str:
    return str(simulated.get("reading", "")) if isinstance(simulated, Mapping) else ""


def _sentences(item: Gain) -> str:
    return f"{item.reading}. {item.simulated}" if item.reading and item.simulated else item.reading or item.simulated


def _signed(share: float) -> str:
    if abs(share) < 1e-12:
        return "0 %"
    sign = "+" if share > 0 else "\u2212"
    if abs(share) < 0.01:
        return f"{sign}{100 * abs(share):.1f} %"
    return f"{sign}{format_percent(abs(share))}"


def _time(seconds: float | None) -> str:
    return "–" if seconds is None else format_seconds(seconds)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
