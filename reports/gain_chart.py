"""What a split gains at each size, as SVG that stands alone: medians with their intervals about the line of no gain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from reports.quantities import format_bytes, format_count, format_percent, format_seconds

WIDTH, HEIGHT = 720, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 88, 20, 16, 50


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


def read_gains(facts: Mapping[str, Any]) -> list[Gain]:
    """The rows of the experiment `gain`, smallest size first; rows that make no sense are passed over."""
    rows = facts.get("gain")
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
            )
        )
    return sorted(found, key=lambda item: item.size_bytes)


def gain_chart(gains: Sequence[Gain], title: str) -> str:
    """The chart as one SVG element with its style inside; sizes on a logarithmic axis."""
    body = "".join(_body(gains))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'class="gain" role="img" aria-label="{escape(title)}"><style>{_STYLE}</style>{body}</svg>'
    )


def gain_table(gains: Sequence[Gain]) -> str:
    """The same in numbers."""
    rows = "".join(
        f'<tr><td data-label="size" class="number">{format_bytes(item.size_bytes)}</td>'
        f'<td data-label="pairs" class="number">{format_count(item.pairs)}</td>'
        f'<td data-label="usual port" class="number">{_time(item.usual_s)}</td>'
        f'<td data-label="free port" class="number">{_time(item.free_s)}</td>'
        f'<td data-label="gain" class="number">{_signed(item.gain)}</td>'
        f'<td data-label="reading">{escape(item.reading)}</td></tr>'
        for item in gains
    )
    heads = "".join(
        f'<th scope="col"{" class=number" if place < 5 else ""}>{name}</th>'
        for place, name in enumerate(("size", "pairs", "usual port", "free port", "gain", "reading"))
    )
    return f'<table class="rows"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'


_STYLE = (
    ".gain{font:12px system-ui,sans-serif;height:auto}.gain text{fill:#1c2430}"
    ".gain .rule{stroke:#8884}.gain .zero{stroke:#5b6472;stroke-dasharray:5 4}"
    ".gain .bar{stroke:#0072b2;stroke-width:2;fill:none}.gain .point{fill:#0072b2}.gain .open{fill:none;stroke:#0072b2}"
    "@media (prefers-color-scheme:dark){.gain text{fill:#e6e9ee}.gain .bar,.gain .open{stroke:#56b4e9}"
    ".gain .point{fill:#56b4e9}.gain .zero{stroke:#aab3c0}}"
    "@media print{.gain text{fill:#000}.gain .bar,.gain .open{stroke:#0072b2}.gain .point{fill:#0072b2}}"
)


def _body(gains: Sequence[Gain]) -> Iterator[str]:
    values = [0.0, *(bound for item in gains for bound in (item.gain, item.low, item.high) if bound is not None)]
    step = _step(max(values) - min(values))
    low, high = math.floor(min(values) / step), max(math.ceil(max(values) / step), math.floor(min(values) / step) + 1)
    first, last = math.log10(gains[0].size_bytes), math.log10(gains[-1].size_bytes)

    def across(size_bytes: float) -> float:
        share = 0.5 if last == first else (math.log10(size_bytes) - first) / (last - first)
        return _LEFT + 30 + share * (WIDTH - _LEFT - _RIGHT - 60)

    def up(gain: float) -> float:
        return HEIGHT - _BOTTOM - (gain / step - low) / (high - low) * (HEIGHT - _BOTTOM - _TOP)

    for tick in range(low, high + 1):
        look = "zero" if tick == 0 else "rule"
        y = up(tick * step)
        yield f'<path class="{look}" d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_signed(tick * step)}</text>'
    previous = -math.inf
    for item in gains:
        x = across(item.size_bytes)
        if x - previous >= 44:  # room for a label
            yield f'<text x="{x:.1f}" y="{HEIGHT - _BOTTOM + 18}" text-anchor="middle">'
            yield f"{format_bytes(item.size_bytes)}</text>"
            previous = x
        if item.low is not None and item.high is not None:
            yield f'<path class="bar" d="M{x:.1f} {up(item.low):.1f}V{up(item.high):.1f}'
            yield f'M{x - 5:.1f} {up(item.low):.1f}h10M{x - 5:.1f} {up(item.high):.1f}h10"/>'
        look = "open" if item.low is None else "point"
        yield f'<circle class="{look}" cx="{x:.1f}" cy="{up(item.gain):.1f}" r="4"/>'
    yield f'<text x="{(WIDTH + _LEFT) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">object</text>'
    yield (
        f'<text transform="translate(14 {(HEIGHT - _BOTTOM + _TOP) / 2:.0f}) rotate(-90)" text-anchor="middle">'
        "throughput gained</text>"
    )


def _step(spread: float) -> float:
    """A round distance between ticks that makes about five of them."""
    if spread <= 0:
        return 0.1
    power = 10.0 ** math.floor(math.log10(spread / 5))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= spread / 5 * (1 - 1e-9))


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
