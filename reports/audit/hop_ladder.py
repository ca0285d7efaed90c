"""How far packets came on the way to each host, by their hop limit, as SVG that stands alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

_WIDTH, _ROW, _TOP, _BOTTOM = 720, 30, 34, 44
_LEFT, _RIGHT = 170, 20
#: What a mark says, by its class: the fewest hops with which data were acknowledged, and so on.
_MARKS = (
    ("acknowledged", "acknowledged_hops", "data acknowledged"),
    ("lost", "lost_hops", "data lost"),
    ("handshake", "handshake_hops", "handshake answered"),
)
_STYLE = (
    ".ladder{font:12px system-ui,sans-serif;max-width:100%;height:auto}.ladder text{fill:#1c2430}"
    ".ladder .rule{stroke:#8884}.ladder .way{stroke:#5b6472;stroke-width:3}"
    ".ladder .acknowledged{fill:#c7321f}.ladder .lost{stroke:#0072b2;stroke-width:2.2}"
    ".ladder .handshake{fill:none;stroke:#b48a00;stroke-width:2}"
    "@media (prefers-color-scheme:dark){.ladder text{fill:#e6e9ee}.ladder .way{stroke:#aab3c0}"
    ".ladder .acknowledged{fill:#ff8a4c}.ladder .lost{stroke:#56b4e9}.ladder .handshake{stroke:#f0d050}}"
)


def hop_ladder(places: Sequence[Mapping[str, Any]], title: str) -> str:
    """A row a host: a line as far as datagrams are known not to have arrived, and where data and handshakes ended.

    `places` are those of the contract `pepscope-check-1`. A mark on the line left of its end is a middlebox's doing.
    """
    most = max(max(_hops(place)) for place in places) + 1
    height = _TOP + _ROW * len(places) + _BOTTOM
    label = f"how far packets to each host of {title} came, by hop limit"
    body = "".join((*_legend(), *_axis(most, height), *_rows(places, most)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'class="ladder" role="img" aria-label="{escape(label)}"><style>{_STYLE}</style>{body}</svg>'
    )


def _hops(place: Mapping[str, Any]) -> list[int]:
    known = (place["beyond_hops"], *(place[name] for _, name, _ in _MARKS))
    return [int(each) for each in known if each is not None]


def _x(hops: float, most: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * hops / most


def _legend() -> Iterator[str]:
    x = float(_LEFT)
    for kind, _, words in _MARKS:
        yield _mark(kind, x + 6, 12)
        yield f'<text x="{x + 18:.0f}" y="16">{words}</text>'
        x += 30 + 7 * len(words)
    yield f'<line class="way" x1="{x:.0f}" x2="{x + 22:.0f}" y1="12" y2="12"/>'
    yield f'<text x="{x + 28:.0f}" y="16">the host is beyond</text>'


def _axis(most: int, height: int) -> Iterator[str]:
    step = 1 if most <= 16 else 2 if most <= 32 else 5
    for hops in range(0, most + 1, step):
        x = _x(hops, most)
        yield f'<line class="rule" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 6}" y2="{height - _BOTTOM}"/>'
        yield f'<text x="{x:.1f}" y="{height - _BOTTOM + 16}" text-anchor="middle">{hops}</text>'
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield f'<text x="{middle:.0f}" y="{height - 8}" text-anchor="middle">hop limit of the packets</text>'


def _rows(places: Sequence[Mapping[str, Any]], most: int) -> Iterator[str]:
    for row, place in enumerate(places):
        y = _TOP + _ROW * row + _ROW / 2
        name = str(place["host"])
        shown = name if len(name) <= 24 else f"{name[:23]}…"
        yield f'<text x="{_LEFT - 10}" y="{y + 4:.0f}" text-anchor="end">{escape(shown)}</text>'
        end = _x(place["beyond_hops"], most)
        yield f'<line class="way" x1="{_LEFT}" x2="{end:.1f}" y1="{y:.0f}" y2="{y:.0f}"/>'
        for kind, field, words in _MARKS:
            if place[field] is not None:
                at = _mark(kind, _x(place[field], most), y)
                yield f"<g><title>{words} with a hop limit of {place[field]}</title>{at}</g>"


def _mark(kind: str, x: float, y: float) -> str:
    if kind == "lost":
        return f'<path class="lost" d="M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10"/>'
    radius = 5 if kind == "acknowledged" else 7.5
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>'
