"""Figs 13 to 16 and the guideline: steps and approach rates that hold the queue, and those that do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from papers.ren_lin.experiments import LAWS, VARIATIONS
from papers.results import Table
from papers.statements.comparing import written
from papers.statements.grouping import Row, chosen, grouped, mean_of
from reference_sim.intervals import Interval
from reference_sim.models import window_parameters

#: A queue that is hardly ever empty.
SELDOM_EMPTY = 0.01
MEAN_FRAMES_S = 1160.0
_SWITCHING, _REFERENCE, _BUFFER = 20.0, 100.0, 200.0


def of(rows: Sequence[Row], law: str, variation: str, measure: str) -> Interval:
    """One measure of one law under one variation."""
    return mean_of(chosen(rows, variant=f"{law}; {variation}"), measure)


def quantities(rows: Sequence[Row]) -> dict[str, Any]:
    """What the statements on figs 13 to 16, equation (42) and the guideline compare."""
    return {
        "proposition_1": _proposition_1(rows),
        **_unstable(rows),
        "figure_14": [_stable(rows, variation) for variation in VARIATIONS],
        **_rule(rows),
    } | {
        **{
            f"reached_{delta}_s": of(rows, f"Ts 0.025, delta {delta}", "constant", "reached_s") for delta in (1, 20, 35)
        },
        "delta_35_settles_sooner": of(rows, "Ts 0.025, delta 35", "constant", "reached_s").mean
        < of(rows, "Ts 0.025, delta 20", "constant", "reached_s").mean,
        "switching_deviation_frames": _guideline(0.025, 35.0).deviation_frames,
    }


def _proposition_1(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """How far the queue strays from the reference under a constant rate, beside the band of proposition 1."""
    cases = []
    for approach in (4, 20, 35):
        band = _guideline(0.025, float(approach)).deviation_frames
        farthest = of(rows, f"Ts 0.025, delta {approach}", "constant", "farthest_frames")
        over_band = Interval(farthest.mean - band, farthest.half_width, farthest.count)
        cases.append({"approach": approach, "band_frames": band, "farthest": farthest, "farthest_over_band": over_band})
    return cases


def _unstable(rows: Sequence[Row]) -> dict[str, Any]:
    spread, burst = (
        {variation: of(rows, law, variation, "utilisation") for variation in VARIATIONS}
        for law in ("Ts 0.2, delta 4", "Ts 0.2, delta 4, at once")
    )
    empty = min(of(rows, "Ts 0.2, delta 4", variation, "empty_share").mean for variation in VARIATIONS)
    return {
        "unstable_utilisations": [*spread.values(), *burst.values()],
        "unstable_utilisations_words": "; ".join(
            f"{variation}: {written(spread[variation])} and {written(burst[variation])}" for variation in VARIATIONS
        ),
        "unstable_empty_percent": 100 * empty,
        "unstable_queue_runs_empty": empty > SELDOM_EMPTY,
    }


def _stable(rows: Sequence[Row], variation: str) -> dict[str, Any]:
    law = "Ts 0.1, delta 4"
    empty = of(rows, law, variation, "empty_share")
    return {
        "rates": "constant rate" if variation == "constant" else f"rates of {variation}",
        "empty_share": empty,
        "empty_percent": 100 * empty.mean,
        "deviation": of(rows, law, variation, "deviation_frames"),
        "used": of(rows, law, variation, "utilisation"),
        "longer_steps_are_worse": of(rows, "Ts 0.2, delta 4", variation, "empty_share").mean > empty.mean,
    }


def _guideline(step_s: float, approach: float, variation_period_s: float | None = None) -> window_parameters.Guideline:
    """Section 5.2 for one step and approach rate, with the switching term of section 5.1."""
    return window_parameters.check(
        step_s,
        approach,
        _SWITCHING,
        reference_frames=_REFERENCE,
        buffer_frames=_BUFFER,
        mean_rate_frames_s=MEAN_FRAMES_S,
        variation_period_s=variation_period_s,
    )


def _rule(rows: Sequence[Row]) -> dict[str, Any]:
    """Whether the laws that the guideline allows are those whose queue is hardly ever empty."""
    words, agrees = [], []
    for law, (step_s, approach, spreads) in LAWS.items():
        if not spreads:
            continue
        guideline = _guideline(step_s, approach, variation_period_s=1.0)
        empty = max(of(rows, law, variation, "empty_share").mean for variation in VARIATIONS)
        agrees.append(guideline.holds == (empty <= SELDOM_EMPTY))
        broken = "allowed" if guideline.holds else f"breaks {guideline.broken[0].rule}"
        words.append(f"{law}: {broken}, empty {100 * empty:.1f} % of the time")
    return {"guideline_by_law": "; ".join(words), "guideline_agrees": all(agrees)}


def table(rows: Sequence[Row]) -> Table:
    """All laws under all variations."""
    import pandas as pd

    entries = []
    for (variant,), part in grouped(rows, "variant").items():
        law, variation = str(variant).split("; ")
        entry: dict[str, object] = {"law": law, "rates": variation}
        for name in ("utilisation", "mean_frames", "deviation_frames", "empty_share", "drops", "reached_s"):
            known = [row for row in part if row[name] == row[name] and row[name] is not None]
            entry[name] = mean_of(known, name).mean if known else None
        entries.append(entry)
    return Table(
        "stability",
        "Steps and approach rates of the law (figs. 13 to 16)",
        pd.DataFrame(entries),
        "60 s over 1160 frames/s on average; rates change every second. Mean, deviation and share of empty "
        "samples after "
        "10 s; 'reached s' is when the queue first comes within 10 frames of q0 = 100.",
    )
