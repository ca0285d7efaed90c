"""Table 3's standard deviations: the same link again, its flow starting at another time within the first second."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import stdev
from typing import Any

from papers.published import published_table
from papers.ren_lin.links import TERMINALS, driven, profile_of
from papers.ren_lin.model_rows import of_scheduler
from papers.statements.grouping import Row, mean_of
from reference_sim.run import Run
from reference_sim.simulation import simulate

#: Of the paper, with the names of its columns.
SCHEMES = {"adaptation": "proxy", "tcp": "tcp", "split": "itcp"}
#: Starts within the first second, evenly spaced.
STARTS = 6
#: Of each run in the paper.
LENGTH_S = 300.0


def measure_starts(run: Run) -> Mapping[str, float | None]:
    """Of each terminal and scheme: the standard deviation of the throughput over the starts, in kbit/s."""
    measures: dict[str, float | None] = {}
    for terminal, name in enumerate(TERMINALS):
        profile = profile_of(run, terminal)
        if not profile.any():
            continue
        for scheme in SCHEMES:
            rates = []
            for number in range(STARTS):
                start_s = number / STARTS
                values = {
                    "duration_s": LENGTH_S,
                    "traffic[0].start_s": start_s,
                    "traffic[0].duration_s": LENGTH_S - start_s,
                }
                link = simulate(driven(scheme, profile).with_values(values), captures=False)
                rates.append(8e-3 * float(link.truth["flows"][0]["mobile"]["read_bytes"]) / LENGTH_S)
            measures[f"{name}.{scheme}_deviation_kbit_s"] = stdev(rates)
    return measures


def quantities(rows: Sequence[Row]) -> dict[str, Any]:
    """Rows of table 3 with the deviations that were found for them."""
    cases = []
    for row in published_table("ren_lin", "table3_proxy_throughput").to_dict("records"):
        runs = of_scheduler(rows, str(row["scheduler"]))
        found = {
            scheme: mean_of(
                [one for one in runs if _is_known(one, f"{row['ue']}.{scheme}_deviation_kbit_s")],
                f"{row['ue']}.{scheme}_deviation_kbit_s",
            )
            for scheme in SCHEMES
        }
        cases.append(
            {
                "ue": str(row["ue"]),
                "scheduler": str(row["scheduler"]),
                **{f"published_{scheme}": float(row[f"{column}_std"]) for scheme, column in SCHEMES.items()},
                **{f"deviation_{scheme}": one for scheme, one in found.items()},
            }
        )
    return {"table_3_deviations": cases}


def _is_known(row: Row, name: str) -> bool:
    return row.get(name) is not None and not math.isnan(float(row[name]))
