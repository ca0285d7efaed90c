"""Draw docs/figures/split-gain-*.svg from the tables of the campaigns `split-gain` and `split-gain-lines`.

Run by `make docs`; `python -m benchmarks.split_gain --write` makes the tables.
"""

from __future__ import annotations

import csv
from pathlib import Path

from pepscope.results.charts import Chart, Line
from reports.figures.svg_chart import chart_svg

DOCS = Path(__file__).parent
FIGURES = DOCS / "figures"
MODELS = DOCS / "models"

_CONTROLS = {"reno": "NewReno", "cubic": "CUBIC", "bbr": "BBR", "bbr3": "BBRv3"}
_PAIRS = (
    ("reno", "reno"), ("cubic", "cubic"), ("cubic", "bbr"), ("bbr", "bbr"), ("bbr", "cubic"), ("bbr3", "bbr3"),
    ("bbr3", "cubic"),
)  # fmt: skip
#: Of the lines that are drawn.
_SERVER_DELAY_S, _BUFFER_PACKETS = "0.025", "83"

Row = dict[str, str]


def rows(name: str) -> list[Row]:
    with (MODELS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def line(name: str, cells: list[Row], x: str) -> Line:
    """The quotient of the throughputs, split over end to end, with its interval."""
    quotients = [1.0 + float(cell["gain"]) for cell in cells]
    intervals = [(1.0 + float(cell["gain_low"]), 1.0 + float(cell["gain_high"])) for cell in cells]
    return Line(name, [float(cell[x]) for cell in cells], quotients, interval=intervals)


def losses() -> Chart:
    """By loss, on lines 50 ms from the server with a buffer of one bandwidth-delay product."""
    here = [
        row
        for row in rows("split_gain_lines.csv")
        if (row["server_delay_s"], row["buffer_packets"]) == (_SERVER_DELAY_S, _BUFFER_PACKETS)
        and float(row["loss_probability"]) > 0
    ]
    drawn = []
    for server, box in _PAIRS:
        cells = [row for row in here if (row["server_control"], row["box"]) == (server, box)]
        cells.sort(key=lambda row: float(row["loss_probability"]))
        drawn.append(line(f"{_CONTROLS[server]} \u2192 {_CONTROLS[box]}", cells, "loss_probability"))
    return Chart(
        "split-gain-losses",
        "Throughput of a split over that end to end, by loss",
        "share of packets lost on the access line",
        "throughput, split / end to end",
        tuple(drawn),
        is_x_logarithmic=True,
        is_y_logarithmic=True,
        x_ticks=(0.0001, 0.001, 0.01),
        x_label=lambda share: f"{100 * share:g} %",
    )


def objects() -> Chart:
    """By the size of the object, the box with the server's control."""
    drawn = []
    table = rows("split_gain.csv")
    for access, title in (("lte", "LTE"), ("satellite", "satellite"), ("wlan", "wireless LAN")):
        for control in ("cubic", "bbr", "bbr3"):
            cells = [
                row for row in table if (row["access"], row["server_control"], row["box"]) == (access, control, control)
            ]
            cells.sort(key=lambda row: float(row["size_bytes"]))
            drawn.append(line(f"{title}, {_CONTROLS[control]}", cells, "size_bytes"))
    return Chart(
        "split-gain-objects",
        "Throughput of a split over that end to end, by object",
        "object",
        "throughput, split / end to end",
        tuple(drawn),
        is_x_logarithmic=True,
        is_y_logarithmic=True,
        x_ticks=(1e4, 1e5, 1e6, 1e7, 1e8),
        x_label=lambda size: f"{size / 1e6:g} MB" if size >= 1e6 else f"{size / 1e3:g} kB",
    )


def main() -> None:
    """Draw both."""
    FIGURES.mkdir(exist_ok=True)
    for chart in (losses(), objects()):
        (FIGURES / f"{chart.name}.svg").write_text(chart_svg(chart) + "\n", encoding="utf-8")
        print(f"docs/figures/{chart.name}.svg")


if __name__ == "__main__":
    main()
