"""Draw what docs/methods/exchange_timing.md shows of the learned tables: how long answers take beyond the transport.

Run by `make docs`.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import numpy as np

from pepscope.results.charts import Chart, Line
from reports.figures.svg_chart import chart_svg

FIGURES = Path(__file__).parent / "figures"

#: Round trip of the hidden legs that are drawn (ms), as an example.
EXAMPLE_LEG_MS = 40.0

#: What is drawn of the excess (ms).
_FROM_MS, _TO_MS = 0.5, 1000.0

_KIND = "handshake"
_NATURES = ("steady as a wire", "varies like a wireless LAN", "varies like a cell", "with stalls or queues")


def chart(side: str) -> Chart:
    """The share of TLS handshake flights of one side that took no longer than so much beyond the transport's round
    trip, end to end and behind a hidden leg of each nature."""
    tables = json.loads(
        files("detector.one_capture.likelihoods").joinpath("timing_tables.json").read_text("ascii")
    )  # fmt: skip
    edges_ms = np.asarray(tables["excess_edges_s"]) * 1e3
    learned = tables["sides"][side]
    at_ms = np.geomspace(_FROM_MS, _TO_MS, 200)
    # The last table end to end is that of all paths together.
    drawn = [("end to end", learned["end"][_KIND][-1], 0.0)]
    for name, table in zip(_NATURES, learned["hidden"][_KIND], strict=True):
        drawn.append((f"hidden leg of {EXAMPLE_LEG_MS:.0f} ms, {name}", table, EXAMPLE_LEG_MS))
    lines = []
    for name, table, leg_ms in drawn:
        below = np.concatenate([[0.0], np.cumsum(table)])
        share = np.interp(at_ms - leg_ms, edges_ms, below / below[-1])
        lines.append(Line(name, at_ms.tolist(), share.tolist(), is_dense=True))
    return Chart(
        f"excess-{side}",
        f"Excess of TLS handshake flights at the {side}s",
        "excess over the transport's round trip (ms)",
        "share of exchanges",
        tuple(lines),
        is_x_logarithmic=True,
        x_ticks=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
    )


def main() -> None:
    """Draw both sides."""
    FIGURES.mkdir(exist_ok=True)
    for side in ("client", "server"):
        drawn = chart(side)
        (FIGURES / f"{drawn.name}.svg").write_text(chart_svg(drawn) + "\n", encoding="utf-8")
        print(f"docs/figures/{drawn.name}.svg")


if __name__ == "__main__":
    main()
