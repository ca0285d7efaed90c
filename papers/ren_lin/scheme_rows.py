"""Table 3: the window-adaptation proxy beside TCP and I-TCP, over links that profiles drive and in the cell itself.

Outcomes are those of the driven links: the paper calls its rows by the names of the profiles, and says of the same
experiment that "the cellular link is driven by" one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from papers.published import published_table
from papers.ren_lin.experiments import CHOSEN
from papers.ren_lin.links import SCHEDULERS, TERMINALS
from papers.ren_lin.model_rows import of_scheduler
from papers.results import Table
from papers.statements.comparing import differences, written
from papers.statements.grouping import Row, chosen, grouped, paired_gains, values_of
from reference_sim.intervals import Interval, mean_interval

_MEASURES = {"tcp": "tcp_kbit_s", "split": "split_kbit_s", "adaptation": "adaptation_kbit_s"}
SCENARIOS = {"tcp": "ren-lin-hsdpa-tcp", "split": "ren-lin-hsdpa-split", "adaptation": "ren-lin-hsdpa-adaptation"}


@dataclass(frozen=True, slots=True)
class Schemes:
    """Throughput of the three schemes for one terminal and scheduler: each seed's value, in the seeds' order."""

    tcp: list[float]
    split: list[float]
    adaptation: list[float]

    @property
    def gains(self) -> tuple[Interval, Interval]:
        """Of the proxy over TCP and over I-TCP, in percent, seed by seed."""
        return paired_gains(self.adaptation, self.tcp), paired_gains(self.adaptation, self.split)

    @property
    def likeness(self) -> Interval:
        """Of I-TCP over TCP."""
        return paired_gains(self.split, self.tcp)


Rows = dict[tuple[str, str], Schemes]


def driven_rows(profiles: Sequence[Row]) -> Rows:
    """Over links that the profiles drive."""
    return {
        (terminal, label): Schemes(
            **{
                scheme: values_of(of_scheduler(profiles, label), f"{terminal}.{measure}")
                for scheme, measure in _MEASURES.items()
            }
        )
        for terminal in TERMINALS
        for label in SCHEDULERS.values()
    }


def cell_rows(ends: Sequence[Row], adapted: Sequence[Row], variant: str = CHOSEN) -> Rows:
    """In the cell itself."""
    return rows_in_cell([*ends, *chosen(adapted, variant=variant)])


def rows_in_cell(rows: Sequence[Row]) -> Rows:
    """In the cell itself, from the runs of all three schemes."""
    return {
        (terminal, label): Schemes(
            **{
                scheme: values_of(of_scheduler(chosen(rows, scenario=scenario), label), f"{terminal}.kbit_s")
                for scheme, scenario in SCENARIOS.items()
            }
        )
        for terminal in TERMINALS
        for label in SCHEDULERS.values()
    }


def quantities(driven: Rows, cell: Rows, larger: Rows) -> dict[str, Any]:
    """What the statements on table 3 compare; `larger` is the cell with twice the buffer."""
    return {
        **driven_quantities(driven, cell),
        "mean_gain_cell_rr": _mean_gain({key: one for key, one in cell.items() if key[1] == "RR"}),
        "mean_gain_cell": _mean_gain(cell),
        "mean_gain_larger_buffer": _mean_gain(larger),
    }


def driven_quantities(driven: Rows, cell: Rows | None = None) -> dict[str, Any]:
    """What does not need the cell; its rows are added to table 3 where they are given."""
    likenesses = [one.likeness for rows in (driven, cell or {}) for one in rows.values()]
    likeness = [one.mean for one in likenesses]
    return {
        "table_3": _table_3(driven, cell),
        "mean_gain_driven": _mean_gain(driven),
        "likeness": mean_interval(likeness),
        "likenesses": likenesses,
        "least_likeness": max(likeness, key=abs),
    }


def jitter(profiles: Sequence[Row]) -> dict[str, Any]:
    """Packet delay variation with I-TCP and with the adapted window: for each seed the mean over its driven links."""
    split, adapted = (
        [
            mean_interval([value for name in TERMINALS for value in values_of(rows, f"{name}.{scheme}_jitter_ms")]).mean
            for rows in grouped(profiles, "repeat").values()
        ]
        for scheme in ("split", "adaptation")
    )
    return {
        "jitter_split": mean_interval(split),
        "jitter_adapted": mean_interval(adapted),
        "jitter_split_over_adapted": differences(split, adapted),
    }


def _mean_gain(rows: Rows) -> Interval:
    return mean_interval([gain.mean for one in rows.values() for gain in one.gains])


def _table_3(driven: Rows, cell: Rows | None) -> list[dict[str, Any]]:
    """Rows of table 3 with what was found for them."""
    cases = []
    for row in published_table("ren_lin", "table3_proxy_throughput").to_dict("records"):
        key = str(row["ue"]), str(row["scheduler"])
        gains = driven[key].gains
        is_ahead = any(_sign(gain) > 0 for gain in gains) and not any(_sign(gain) < 0 for gain in gains)
        cases.append(
            {
                "ue": key[0],
                "scheduler": key[1],
                "published_proxy": row["proxy_mean"],
                "published_tcp": row["tcp_mean"],
                "published_split": row["itcp_mean"],
                "published_gain": 100.0 * (row["proxy_mean"] / row["tcp_mean"] - 1.0),
                "proxy": mean_interval(driven[key].adaptation),
                "tcp": mean_interval(driven[key].tcp),
                "gain": gains[0],
                "proxy_is_ahead": is_ahead,
                "driven": _summary(driven[key]),
                "cell": _summary(cell[key]) if cell else "not run",
                "why_different": _why(is_ahead=is_ahead, in_the_cell=cell[key].gains if cell else ()),
            }
        )
    return cases


def _why(*, is_ahead: bool, in_the_cell: Sequence[Interval]) -> str:
    reason = "the cell serves other rates here (see the choices), and over a link whose rate changes once a second TCP "
    reason += "leaves little to gain"
    if not is_ahead:
        reason += "; where a rate falls by more than the buffer holds, what three steps had granted is lost"
    if any(_sign(gain) < 0 for gain in in_the_cell):
        reason += "; in the cell service comes in bursts, of which feedback two steps old makes losses"
    return reason


def _sign(gain: Interval) -> int:
    """1 or -1 where the interval lies on one side of 0, else 0."""
    return 0 if abs(gain.mean) <= (gain.half_width or 0.0) else (1 if gain.mean > 0.0 else -1)


def _summary(schemes: Schemes) -> str:
    rates = "/".join(f"{mean_interval(one).mean:.0f}" for one in (schemes.adaptation, schemes.tcp, schemes.split))
    over_tcp, over_split = schemes.gains
    return f"{rates} kbit/s, {written(over_tcp, '%', 2)} on TCP and {written(over_split, '%', 2)} on I-TCP"


def scheme_table(driven: Rows, cell: Rows) -> Table:
    """Table 3 side by side."""
    import pandas as pd

    entries = []
    for row in published_table("ren_lin", "table3_proxy_throughput").to_dict("records"):
        key = str(row["ue"]), str(row["scheduler"])
        entry: dict[str, object] = {
            "terminal": key[0],
            "scheduler": key[1],
            "published_gain_percent": 100.0 * (row["proxy_mean"] / row["tcp_mean"] - 1.0),
        }
        for place, rows in (("driven", driven), ("cell", cell)):
            entry[f"{place}_gain_percent"] = rows[key].gains[0].mean
            entry[f"{place}_half_width"] = rows[key].gains[0].half_width
        for place, rows in (("driven", driven), ("cell", cell)):
            for scheme in _MEASURES:
                values: list[float] = getattr(rows[key], scheme)
                entry[f"{place}_{scheme}_kbit_s"] = mean_interval(values).mean
        entry |= {
            "published_proxy_kbit_s": row["proxy_mean"],
            "published_tcp_kbit_s": row["tcp_mean"],
            "published_itcp_kbit_s": row["itcp_mean"],
        }
        entries.append(entry)
    caption = "Means over the seeds; gains of the proxy over TCP, seed by seed, with 95 % intervals; split is I-TCP."
    return Table("table-3", "Throughput of three schemes (table 3)", pd.DataFrame(entries), caption)
