"""What timer, recovery and buffers of the proxy's leg do, in the cell and over links that its profiles drive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from papers.ren_lin.experiments import ADAPTED, LARGER_BUFFER
from papers.ren_lin.links import ADAPTATIONS, SCHEDULERS, TERMINALS
from papers.ren_lin.model_rows import of_scheduler
from papers.results import Table
from papers.statements.comparing import written
from papers.statements.grouping import Row, chosen, mean_of, ratio_gain
from reference_sim.intervals import Interval

if TYPE_CHECKING:
    from collections.abc import Mapping


def driven_gains(profiles: Sequence[Row]) -> Mapping[str, Mapping[str, Interval]]:
    """Gain in percent of the proxy over TCP, all four terminals together, by scheduler and variant."""
    measures = {"as chosen": "adaptation_kbit_s", **{name: f"{name}_kbit_s" for name in ADAPTATIONS}}
    return {
        label: {name: _gain(of_scheduler(profiles, label), measure) for name, measure in measures.items()}
        for label in SCHEDULERS.values()
    }


def _gain(runs: Sequence[Row], measure: str) -> Interval:
    carried, by_tcp = (
        [sum(float(row[f"{terminal}.{name}"]) for terminal in TERMINALS if _has(row, terminal)) for row in runs]
        for name in (measure, "tcp_kbit_s")
    )
    return ratio_gain(carried, by_tcp)


def _has(row: Row, terminal: str) -> bool:
    """Whether the terminal was served at all in this run."""
    return bool(row[f"{terminal}.mean_packets_s"] > 0)


def driven_table(profiles: Sequence[Row]) -> Table:
    """Variants over links that the profiles drive."""
    import pandas as pd

    entries = [
        {"scheduler": label, "variant": name, "gain_percent": gain.mean, "half_width": gain.half_width}
        for label, gains in driven_gains(profiles).items()
        for name, gain in gains.items()
    ]
    caption = "Gain of the proxy over TCP in what four links carry that the profiles of one run drive."
    return Table("proxy-over-driven-links", "The proxy's leg over driven links", pd.DataFrame(entries), caption)


def cell_table(adapted: Sequence[Row], buffer: Sequence[Row]) -> Table:
    """Variants in the cell."""
    import pandas as pd

    entries = []
    for label in SCHEDULERS.values():
        for what, rows in {
            **{f"proxy, {name}": chosen(adapted, variant=name) for name in ADAPTED if chosen(adapted, variant=name)},
            f"TCP, {LARGER_BUFFER}": chosen(buffer, scenario="ren-lin-hsdpa-tcp"),
            f"I-TCP, {LARGER_BUFFER}": chosen(buffer, scenario="ren-lin-hsdpa-split"),
        }.items():
            runs = of_scheduler(rows, label)
            entry: dict[str, object] = {"scheduler": label, "variant": what}
            entry |= {f"{terminal}_kbit_s": mean_of(runs, f"{terminal}.kbit_s").mean for terminal in TERMINALS}
            entry["drops"] = mean_of(runs, "drops").mean
            entries.append(entry)
    caption = "200 frames of buffer but where it says 400; drops are those of all four terminals."
    return Table("proxy-in-the-cell", "The proxy's leg in the cell", pd.DataFrame(entries), caption)


def in_the_cell(adapted: Sequence[Row]) -> str:
    """What all four terminals carry, by variant."""
    words = []
    for name in ADAPTED:
        rows = chosen(adapted, variant=name)
        if rows:
            sums = [f"{label} {_total(of_scheduler(rows, label)):.0f}" for label in SCHEDULERS.values()]
            words.append(f"{name} {', '.join(sums)}")
    return f"in the cell, kbit/s of all four terminals: {'; '.join(words)}"


def _total(runs: Sequence[Row]) -> float:
    return sum(mean_of(runs, f"{terminal}.kbit_s").mean for terminal in TERMINALS)


def over_links(profiles: Sequence[Row]) -> str:
    """Gains over TCP, by variant."""
    gains = driven_gains(profiles)
    words = []
    for name in ("as chosen", *ADAPTATIONS):
        by_scheduler = [f"{label} {written(one[name], digits=2)}" for label, one in gains.items()]
        words.append(f"{name} {', '.join(by_scheduler)}")
    return f"over driven links, gain on TCP in %: {'; '.join(words)}"
