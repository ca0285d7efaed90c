"""Utilisation of a link of variable rate in ns-2, ns-3 and here: seed 003's Figs 8 and 11.

`python -m benchmarks.simulation.variable_rate [--seeds N] [-o DIRECTORY]` writes `variable_rate.csv` and
`variable-rate.png` there (default: docs/models and docs/figures) and prints the table of docs/models/variable_rate.md.
Needs Debian's `ns2`, `libns3-dev`, `g++`, and for the figure `chromium-headless-shell`.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import which

from benchmarks.simulation.variable_rate_run import (
    Setup,
    build_ns3,
    ns2_command,
    utilisation_of_ours,
    utilisation_of_peer,
)
from reference_sim.intervals import Interval, mean_interval

PERIODS_S = (0.02, 0.04, 0.06, 0.08, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0)
DELAYS_S = (0.02, 0.1)
SIMULATORS = ("ns-2", "ns-3", "pepscope", "pepscope, SACK", "pepscope, exact")
DOCS = Path(__file__).parents[2] / "docs"

Means = dict[tuple[float, bool, float], dict[str, Interval]]


def measure(setup: Setup, ns3: Path, directory: Path) -> dict[str, float]:
    """All simulators over the same rates."""
    setup.words(directory)
    return {
        "ns-2": utilisation_of_peer(ns2_command(), setup, directory),
        "ns-3": utilisation_of_peer([str(ns3)], setup, directory),
        "pepscope": utilisation_of_ours(setup, "frozen"),
        "pepscope, SACK": utilisation_of_ours(setup, "frozen", "sack"),
        "pepscope, exact": utilisation_of_ours(setup, "exact"),
    }


def all_means(seeds: int) -> Means:
    setups = [
        Setup(period_s, delay_s, is_split, seed)
        for delay_s, is_split, period_s, seed in itertools.product(
            DELAYS_S, (False, True), PERIODS_S, range(1, seeds + 1)
        )
    ]
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(os.cpu_count()) as pool:
        directory = Path(work)
        ns3 = build_ns3(directory)
        measured = list(pool.map(lambda setup: measure(setup, ns3, directory), setups))
    values: dict[tuple[float, bool, float], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for setup, outcome in zip(setups, measured, strict=True):
        for name, value in outcome.items():
            values[setup.delay_s, setup.is_split, setup.period_s][name].append(value)
    return {key: {name: mean_interval(seen) for name, seen in by.items()} for key, by in values.items()}


def distance(by: dict[str, Interval], ours: str) -> float:
    """How far a mean of ours is above (or, negative, below) the range between ns-2's and ns-3's."""
    low, high = sorted((by["ns-2"].mean, by["ns-3"].mean))
    return min(0.0, by[ours].mean - low) + max(0.0, by[ours].mean - high)


def table(means: Means) -> str:
    lines = []
    for (delay_s, is_split), group in itertools.groupby(means.items(), key=lambda entry: entry[0][:2]):
        what = "Split TCP" if is_split else "NewReno, end to end"
        lines += [
            f"\n**{what}, {delay_s * 1e3:g} ms over the cell**\n",
            "| period s | " + " | ".join(SIMULATORS) + " | beyond ns-2 and ns-3 |",
            "|" + "---|" * (len(SIMULATORS) + 2),
        ]
        for (_, _, period_s), by in group:
            cells = [f"{by[name].mean:.3f} ± {by[name].half_width or 0:.3f}" for name in SIMULATORS]
            beyond = distance(by, "pepscope")
            verdict = "" if beyond == 0 else f"{beyond:+.3f}"
            lines.append(f"| {period_s:g} | " + " | ".join(cells) + f" | {verdict} |")
    distances = [distance(by, "pepscope") for by in means.values()]
    inside = sum(value == 0 for value in distances)
    lines.append(f"\n{inside} of {len(distances)} means lie between those of ns-2 and ns-3;")
    lines.append(f"the others are beyond by {min(distances):+.3f} to {max(distances):+.3f},")
    covered = sum(abs(distance(by, "pepscope")) <= (by["pepscope"].half_width or 0) for by in means.values())
    lines.append(f"{len(distances) - covered} of them by more than the half width of their own interval.")
    return "\n".join(lines)


def write_csv(means: Means, path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["delay_s", "is_split", "period_s", "simulator", "utilisation", "half_width", "runs"])
        for key, by in means.items():
            for name in SIMULATORS:
                interval = by[name]
                width = "" if interval.half_width is None else f"{interval.half_width:.5f}"
                writer.writerow([*key, name, f"{interval.mean:.5f}", width, interval.count])


def draw(means: Means, path: Path) -> None:
    """Four panels, periods on a logarithmic scale, intervals as bars."""
    from playwright.sync_api import sync_playwright
    from plotly import graph_objects
    from plotly.subplots import make_subplots

    panels = list(itertools.product(DELAYS_S, (False, True)))
    titles = [f"{'split TCP' if is_split else 'NewReno'}, {delay_s * 1e3:g} ms" for delay_s, is_split in panels]
    figure = make_subplots(
        rows=2, cols=2, subplot_titles=titles, shared_xaxes=True, shared_yaxes=True, vertical_spacing=0.1
    )
    styles = {
        "ns-2": ("#888888", "dot"),
        "ns-3": ("#888888", "dash"),
        "pepscope": ("#0b6bcb", "solid"),
        "pepscope, SACK": ("#d1495b", "solid"),
        "pepscope, exact": ("#2e8b57", "solid"),
    }
    for number, (delay_s, is_split) in enumerate(panels):
        for name, (colour, dash) in styles.items():
            intervals = [means[delay_s, is_split, period_s][name] for period_s in PERIODS_S]
            figure.add_trace(
                graph_objects.Scatter(
                    x=PERIODS_S,
                    y=[interval.mean for interval in intervals],
                    error_y={"array": [interval.half_width or 0 for interval in intervals], "thickness": 1, "width": 2},
                    name=name,
                    line={"color": colour, "dash": dash, "width": 1.5},
                    showlegend=number == 0,
                ),
                row=number // 2 + 1,
                col=number % 2 + 1,
            )
    figure.update_xaxes(type="log")
    figure.update_xaxes(title_text="seconds between changes of rate", row=2)
    figure.update_yaxes(title_text="utilisation", col=1)
    figure.update_layout(
        width=1000,
        height=700,
        template="plotly_white",
        legend={"orientation": "h", "y": 1.12},
        margin={"t": 80, "b": 60, "l": 60, "r": 20},
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_path = Path(folder) / "figure.html"
        figure.write_html(page_path)
        program = which("chromium-headless-shell") or which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1020, "height": 720})
        page.goto(page_path.as_uri())
        page.locator(".main-svg").first.wait_for(timeout=30_000)
        page.screenshot(path=path)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path, help="directory of both files")
    chosen = parser.parse_args()
    means = all_means(chosen.seeds)
    write_csv(means, (chosen.output or DOCS / "models") / "variable_rate.csv")
    print(table(means), flush=True)
    draw(means, (chosen.output or DOCS / "figures") / "variable-rate.png")


if __name__ == "__main__":
    main()
