"""Draw docs/figures/page-load.svg: when the objects of a page have come, by HTTP version, with and without a split.

Run by `make docs`.
"""

from __future__ import annotations

from pathlib import Path

from pepscope.results.charts import Chart, Line
from reference_sim.library import load_scenario
from reference_sim.simulation import simulate
from reports.figures.svg_chart import chart_svg

FIGURES = Path(__file__).parent / "figures"

_BOX = {"kind": "split-proxy", "name": "box"}


def line(name: str, version: str, is_split: bool) -> Line:
    """Objects that had come by each time, in seconds since the first SYN."""
    scenario = load_scenario("web-page").with_values({"traffic[0].http_version": version, "traffic[0].pages": 1})
    if is_split:
        internet, cell = scenario.path
        scenario = scenario.with_values({"path": [internet, _BOX, cell]})
    flows = simulate(scenario, captures=False).truth["flows"]
    times = sorted(
        message["read_s"] for flow in flows for message in flow["messages"] if message["name"].startswith("200 ")
    )
    return Line(name, times, [float(number) for number in range(1, len(times) + 1)])


def page_load() -> Chart:
    """The scenario `web-page`, one page of it."""
    return Chart(
        "page-load",
        "Objects of a page that have come",
        "s since the first SYN",
        "objects",
        (
            line("HTTP/1.1", "1.1", is_split=False),
            line("HTTP/1.1, split", "1.1", is_split=True),
            line("HTTP/2", "2", is_split=False),
            line("HTTP/2, split", "2", is_split=True),
        ),
    )


def main() -> None:
    """Draw it."""
    FIGURES.mkdir(exist_ok=True)
    chart = page_load()
    (FIGURES / f"{chart.name}.svg").write_text(chart_svg(chart) + "\n", encoding="utf-8")
    print(f"docs/figures/{chart.name}.svg")


if __name__ == "__main__":
    main()
