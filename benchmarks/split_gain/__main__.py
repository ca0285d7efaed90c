"""What a split gains today: four campaigns, their tables, and a dozen cells between real kernels.

`python -m benchmarks.split_gain [--quick] [--live N] [--write]`. In full the campaigns take about five minutes of two
cores; `--quick` takes fewer seeds and values, less than a minute. `--live N` repeats every live cell N times (root,
Linux; about two minutes each). `--write` puts the tables, as CSV files and into docs/models/split_gain.md, and the
prober's cells where they belong; without it everything goes to `-o DIR`, and the tables to the terminal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.split_gain import tables
from benchmarks.split_gain.csv_files import read_rows, write_rows
from benchmarks.split_gain.gains import LineRow, ObjectRow, line_rows, object_rows
from benchmarks.split_gain.live import CELLS, LiveRow, live_rows
from benchmarks.split_gain.prober_cells import write_prober_cells
from benchmarks.validation.marked_sections import with_section
from pepscope.command_line.progress import Progress
from reference_sim.campaign import CampaignResult, run_campaign
from reference_sim.library import campaign_path
from reference_sim.sweep import Campaign

HERE = Path(__file__).parent
MODELS = HERE.parent.parent / "docs" / "models"
PAGE = MODELS / "split_gain.md"
OBJECTS, LINES, LIVE = "split_gain.csv", "split_gain_lines.csv", "split_gain_live.csv"

_LIVE_SEEDS = 20
_QUICK_REPEATS = 3
#: The campaigns of each table.
OBJECT_CAMPAIGNS = ("split-gain", "split-gain-bbr3")
LINE_CAMPAIGNS = ("split-gain-lines", "split-gain-bbr3-lines")
_QUICK_OBJECTS: Mapping[str, tuple[Any, ...]] = {"traffic[0].bytes": (10_000, 1_000_000, 10_000_000)}
_QUICK_LINES: Mapping[str, tuple[Any, ...]] = {"path[0].down.delay_s": (0.025,), "path[2].down.queue_packets": (83,)}
#: What `--quick` leaves of the campaigns' values.
_QUICK = {
    **dict.fromkeys(OBJECT_CAMPAIGNS, _QUICK_OBJECTS),
    **dict.fromkeys(LINE_CAMPAIGNS, _QUICK_LINES),
}


def campaign(name: str, *, is_quick: bool) -> Campaign:
    """The campaign, or its quick form."""
    whole = Campaign.from_toml(campaign_path(name))
    return replace(whole, repeats=_QUICK_REPEATS, grid={**whole.grid, **_QUICK[name]}) if is_quick else whole


def run(name: str, directory: Path, processes: int, *, is_quick: bool) -> CampaignResult:
    """Run what of a campaign is not in `directory` yet."""
    chosen = campaign(name, is_quick=is_quick)
    with Progress(f"simulating {name}") as progress:
        return run_campaign(chosen, directory / name, processes=processes, progress=progress)


def sections(directory: Path) -> dict[str, str]:
    """The page's tables by their names, from the CSV files."""
    objects = read_rows(directory / OBJECTS, ObjectRow)
    lines = read_rows(directory / LINES, LineRow)
    written = {
        "summary": tables.summary_table(objects, lines),
        "loses": tables.losing_table(objects, lines),
        "objects": tables.object_tables(objects),
        "first byte": tables.first_byte_table(objects),
        "delay": tables.delay_table(objects),
        "lines": tables.line_table(lines),
        "buffers": tables.buffer_table(lines),
        "slow start": tables.slow_start_table(objects),
    }
    if (directory / LIVE).is_file():
        written["live"] = tables.live_table(read_rows(directory / LIVE, LiveRow))
    return written


def filled(page: str, written: Mapping[str, str]) -> str:
    """The page with its marked tables replaced."""
    for name, table in written.items():
        page = with_section(page, name, table)
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer seeds and values: less than a minute")
    parser.add_argument("--live", type=int, default=0, metavar="N", help="repeat the live cells N times, at least 2")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="the documentation's tables and the prober's cells")
    parser.add_argument("-o", "--output", type=Path, help="by default build/split-gain, or build/split-gain-quick")
    chosen = parser.parse_args()
    if chosen.live == 1:
        parser.error("--live must be at least 2, since one run has no interval, got 1")
    if chosen.quick and chosen.write:
        parser.error("--write needs all values: leave --quick out")
    directory = chosen.output or Path("build", "split-gain-quick" if chosen.quick else "split-gain")
    directory.mkdir(parents=True, exist_ok=True)
    target = MODELS if chosen.write else directory
    objects: list[ObjectRow] = []
    for name in OBJECT_CAMPAIGNS:
        objects += object_rows(run(name, directory, chosen.processes, is_quick=chosen.quick).runs)
    write_rows(objects, target / OBJECTS)
    lines: list[LineRow] = []
    for name in LINE_CAMPAIGNS:
        lines += line_rows(run(name, directory, chosen.processes, is_quick=chosen.quick).runs)
    write_rows(lines, target / LINES)
    if chosen.live:
        measured = live_rows(chosen.live, _LIVE_SEEDS, CELLS, lambda text: print(text, file=sys.stderr))
        write_rows(measured, target / LIVE)
    written = sections(target)
    if chosen.write:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), written), encoding="utf-8")
        write_prober_cells(read_rows(target / OBJECTS, ObjectRow))
    else:
        for name, table in written.items():
            print(f"\n## {name}\n\n{table}")


if __name__ == "__main__":
    main()
