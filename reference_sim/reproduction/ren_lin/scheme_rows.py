"""Table 3: the window-adaptation proxy beside TCP and I-TCP, over links that profiles drive and in the cell itself.

Verdicts are those of the driven links: the paper calls its rows by the names of the profiles, and says of the same
experiment that "the cellular link is driven by" one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reference_sim.intervals import Interval, mean_interval
from reference_sim.reproduction.grouping import Row, chosen, paired_gains, values_of
from reference_sim.reproduction.judging import judge_value, worst, written
from reference_sim.reproduction.published import published_table
from reference_sim.reproduction.ren_lin.experiments import CHOSEN
from reference_sim.reproduction.ren_lin.links import SCHEDULERS, TERMINALS
from reference_sim.reproduction.ren_lin.model_rows import decided, of_scheduler
from reference_sim.reproduction.results import Statement, Table, Verdict

#: Largest difference between I-TCP and TCP in table 3.
PUBLISHED_LIKENESS_PERCENT = 2.8
_MEASURES = {"tcp": "tcp_kbit_s", "split": "split_kbit_s", "adaptation": "adaptation_kbit_s"}
_SCENARIOS = {"tcp": "ren-lin-hsdpa-tcp", "split": "ren-lin-hsdpa-split", "adaptation": "ren-lin-hsdpa-adaptation"}


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
    rows = [*ends, *chosen(adapted, variant=variant)]
    return {
        (terminal, label): Schemes(
            **{
                scheme: values_of(of_scheduler(chosen(rows, scenario=scenario), label), f"{terminal}.kbit_s")
                for scheme, scenario in _SCENARIOS.items()
            }
        )
        for terminal in TERMINALS
        for label in SCHEDULERS.values()
    }


def row_statements(driven: Rows, cell: Rows) -> list[Statement]:
    """The twelve rows."""
    statements = []
    for row in published_table("ren_lin_table3_proxy_throughput").to_dict("records"):
        key = str(row["ue"]), str(row["scheduler"])
        published_gain = 100.0 * (row["proxy_mean"] / row["tcp_mean"] - 1.0)
        gains = driven[key].gains
        is_ahead = any(_sign(gain) > 0 for gain in gains) and not any(_sign(gain) < 0 for gain in gains)
        verdict = worst(
            [
                decided(judge_value(value, found, rounding=rounding, direction=is_ahead), found)
                for value, found, rounding in (
                    (row["proxy_mean"], mean_interval(driven[key].adaptation), 0.05),
                    (row["tcp_mean"], mean_interval(driven[key].tcp), 0.05),
                    (published_gain, gains[0], 1.0),
                )
            ]
        )
        if not is_ahead:
            verdict = Verdict.NOT
        statements.append(
            Statement(
                where=f"Table 3, {key[0]} {key[1]}",
                published=f"proxy {row['proxy_mean']:g} kbit/s, TCP {row['tcp_mean']:g}, I-TCP "
                f"{row['itcp_mean']:g}: the "
                f"proxy gains {published_gain:.1f} % on TCP",
                found=f"driven link: {_told(driven[key])}; cell: {_told(cell[key])}",
                verdict=verdict,
                reason=_why(is_ahead, cell[key].gains),
            )
        )
    return statements


def _why(is_ahead: bool, in_the_cell: Sequence[Interval]) -> str:
    told = "the cell serves other rates here (see the choices), and over a link whose rate changes once a second TCP "
    told += "leaves little to gain"
    if not is_ahead:
        told += "; where a rate falls by more than the buffer holds, what three steps had granted is lost"
    if any(_sign(gain) < 0 for gain in in_the_cell):
        told += "; in the cell service comes in bursts, of which feedback two steps old makes losses"
    return told


def _sign(gain: Interval) -> int:
    """1 or -1 where the interval lies on one side of 0, else 0."""
    return 0 if abs(gain.mean) <= (gain.half_width or 0.0) else (1 if gain.mean > 0.0 else -1)


def _told(schemes: Schemes) -> str:
    rates = "/".join(f"{mean_interval(one).mean:.0f}" for one in (schemes.adaptation, schemes.tcp, schemes.split))
    over_tcp, over_split = schemes.gains
    return f"{rates} kbit/s, {written(over_tcp, '%', 2)} on TCP and {written(over_split, '%', 2)} on I-TCP"


def conclusions(driven: Rows, cell: Rows, larger: Rows) -> list[Statement]:
    """What the paper concludes from the table."""
    statements = []
    for where, rows in (("driven links", driven), ("the cell, RR", _under(cell, "RR")), ("the cell", cell)):
        gain = mean_interval([gain.mean for one in rows.values() for gain in one.gains])
        verdict = decided(judge_value(10.0, gain, rounding=1.0), gain)
        with_more = mean_interval([gain.mean for one in larger.values() for gain in one.gains])
        statements.append(
            Statement(
                where=f"Section 5.1, {where}",
                published="In most situations the proxy has 10 % more throughput than TCP and I-TCP",
                found=f"mean gain over the rows {written(gain, '%', 2)}",
                verdict=verdict,
                reason=""
                if verdict is Verdict.REPRODUCED
                else "published means have 2 to 15 %; TCP keeps "
                "these links busy, so there is little to gain; in the cell bursts of service overrun the 100 free "
                "frames "
                f"of the buffer: with 400 frames for all three the mean gain is {written(with_more, '%', 2)}",
            )
        )
    likeness = [one.likeness.mean for rows in (driven, cell) for one in rows.values()]
    largest = max(likeness, key=abs)
    verdict = Verdict.REPRODUCED if abs(largest) <= PUBLISHED_LIKENESS_PERCENT else Verdict.DIRECTION
    statements.append(
        Statement(
            where="Section 5.1, table 3",
            published=f"I-TCP and TCP have nearly the same throughput (table 3: within {PUBLISHED_LIKENESS_PERCENT} %)",
            found=f"I-TCP over TCP: {written(mean_interval(likeness), '%', 2)} on average, at most {largest:.1f} %",
            verdict=verdict,
            reason="" if verdict is Verdict.REPRODUCED else "one row of the cell is further apart, the mean is not",
        )
    )
    return statements


def _under(rows: Rows, label: str) -> Rows:
    return {key: one for key, one in rows.items() if key[1] == label}


def scheme_table(driven: Rows, cell: Rows) -> Table:
    """Table 3 side by side."""
    import pandas as pd

    entries = []
    for row in published_table("ren_lin_table3_proxy_throughput").to_dict("records"):
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
