"""Draw how long answers take beyond the transport, for docs/methods/exchange_timing.md and rival_explanations.md.

Run by `make docs`.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pepscope.results.charts import Chart, Line
from reports.figures.svg_chart import chart_svg

FIGURES = Path(__file__).parent / "figures"

Shares = NDArray[np.float64]

#: Round trip of the hidden legs that are drawn (ms), as an example.
EXAMPLE_LEG_MS = 40.0

#: What is drawn of the excess (ms).
_FROM_MS, _TO_MS = 0.5, 1000.0

_KIND = "handshake"
#: Lateness of hosts (ms), from and to, in shapes that the page of rivals names, as examples.
_LATE_MS = {"a program, 40 to 50 ms": (40.0, 50.0), "a busy host, 25 to 100 ms": (25.0, 100.0)}
_PERSON_MS = (100.0, 100_000.0)
_TIMER_MS = 100.0
_NATURES = ("steady as a wire", "varies like a wireless LAN", "varies like a cell", "with stalls or queues")


def chart(side: str) -> Chart:
    """The share of TLS handshake flights of one side that took no longer than so much beyond the transport's round
    trip, end to end and behind a hidden leg of each nature."""
    tables = _tables()
    learned = tables["sides"][side]
    # The last table end to end is that of all paths together.
    drawn = [("end to end", learned["end"][_KIND][-1], 0.0)]
    for name, table in zip(_NATURES, learned["hidden"][_KIND], strict=True):
        drawn.append((f"hidden leg of {EXAMPLE_LEG_MS:.0f} ms, {name}", table, EXAMPLE_LEG_MS))
    return _chart(
        f"excess-{side}",
        f"Excess of TLS handshake flights at the {side}s",
        [(name, _behind(tables, table, leg_ms)) for name, table, leg_ms in drawn],
    )


def late_answers() -> Chart:
    """The share of answers at the servers that took no longer than so much: behind a steady leg, and of what else makes
    all answers late."""
    tables = _tables()
    steady = tables["sides"]["server"]["hidden"][_KIND][0]
    at_ms = _at_ms()
    drawn = [(f"hidden leg of {EXAMPLE_LEG_MS:.0f} ms, {_NATURES[0]}", _behind(tables, steady, EXAMPLE_LEG_MS))]
    for name, (low, high) in _LATE_MS.items():
        drawn.append((name, np.clip((at_ms - low) / (high - low), 0.0, 1.0)))
    low, high = _PERSON_MS
    drawn.append(("a person, 0.1 to 100 s", np.clip(np.log(at_ms / low) / np.log(high / low), 0.0, 1.0)))
    drawn.append((f"a timer of {_TIMER_MS:.0f} ms", np.clip((at_ms - _TIMER_MS) / (0.02 * _TIMER_MS), 0.0, 1.0)))
    return _chart("late-answers", "Answers that are all late", drawn)


def _tables() -> Any:
    return json.loads(files("detector.one_capture.likelihoods").joinpath("timing_tables.json").read_text("ascii"))


def _at_ms() -> Shares:
    return np.geomspace(_FROM_MS, _TO_MS, 200)


def _behind(tables: Any, table: list[float], leg_ms: float) -> Shares:
    """The shares of a learned density of what is left of the excess above a leg."""
    below = np.concatenate([[0.0], np.cumsum(table)])
    edges_ms = np.asarray(tables["excess_edges_s"]) * 1e3
    shares: Shares = np.interp(_at_ms() - leg_ms, edges_ms, below / below[-1])
    return shares


def _chart(name: str, title: str, drawn: list[tuple[str, Shares]]) -> Chart:
    at_ms = _at_ms().tolist()
    return Chart(
        name,
        title,
        "excess over the transport's round trip (ms)",
        "share of exchanges",
        tuple(Line(line, at_ms, share.tolist(), is_dense=True) for line, share in drawn),
        is_x_logarithmic=True,
        x_ticks=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
    )


def main() -> None:
    """Draw them."""
    FIGURES.mkdir(exist_ok=True)
    for drawn in (chart("client"), chart("server"), late_answers()):
        (FIGURES / f"{drawn.name}.svg").write_text(chart_svg(drawn) + "\n", encoding="utf-8")
        print(f"docs/figures/{drawn.name}.svg")


if __name__ == "__main__":
    main()
