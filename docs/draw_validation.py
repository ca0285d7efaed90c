"""Draw docs/figures/one-capture-found.svg from docs/validation/one_capture_found.csv. Run by `make docs`."""

from __future__ import annotations

import csv
from pathlib import Path

from detector.corpora.validation.intervals import wilson
from pepscope.results.charts import Chart, Line
from reports.figures.svg_chart import chart_svg

DOCS = Path(__file__).parent

#: Beside each other, not upon each other, within one row's unit of width.
_OFFSETS = {"simulated": -0.12, "kernels": 0.12}

Row = dict[str, str]


def rows() -> list[Row]:
    with (DOCS / "validation" / "one_capture_found.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def found(table: list[Row], captures: str) -> Line:
    """The shares of hidden legs that were found in one kind of captures, with Wilson intervals, by row."""
    here = [(int(row["row"]), int(row["found"]), int(row["legs"])) for row in table if row["captures"] == captures]
    return Line(
        "found, simulated networks" if captures == "simulated" else "found, between kernels",
        [number + _OFFSETS[captures] for number, _, _ in here],
        [100 * count / of for _, count, of in here],
        interval=[(100 * low, 100 * high) for low, high in (wilson(count, of) for _, count, of in here)],
        has_line=False,
    )


def chart() -> Chart:
    """What was found by what was judged, beside the goals."""
    table = rows()
    goals = {int(row["row"]): 100 * float(row["goal"]) for row in table}
    judged = {int(row["row"]): row["judged"] for row in table}
    goal = Line("goal", list(goals), list(goals.values()), is_published=True, has_line=False)
    return Chart(
        "one-capture-found",
        "Hidden legs that one capture finds",
        "what is judged, its exchanges, the hidden leg",
        "found, per cent",
        (found(table, "simulated"), found(table, "kernels"), goal),
        x_ticks=list(judged),
        x_label=lambda number: judged[round(number)].replace(", ", "\n"),
    )


def main() -> None:
    """Draw it."""
    drawn = chart()
    (DOCS / "figures" / f"{drawn.name}.svg").write_text(chart_svg(drawn) + "\n", encoding="utf-8")
    print(f"docs/figures/{drawn.name}.svg")


if __name__ == "__main__":
    main()
