"""Fig. 11: utilisation by the period of the variation."""

from __future__ import annotations

from collections.abc import Sequence

from reference_sim.intervals import Interval, mean_interval
from reference_sim.reproduction.grouping import Row, chosen, grouped, mean_of, values_of
from reference_sim.reproduction.judging import judge_value, written
from reference_sim.reproduction.ren_lin.experiments import PERIOD
from reference_sim.reproduction.results import Chart, Line, Statement, Table, Verdict

#: Variants of the campaign by what the paper leaves open.
SETTINGS = {"50-150 %": "28 ms, rates of 50-150 %", "25-175 %": "28 ms, rates of 25-175 %"}
LONG = {"25-175 %, 100 ms": "103 ms, rates of 25-175 %"}
SLOW_S = 4.0
#: Where the paper's "extreme case" is drawn; its text does not name the period.
FASTEST_S = 0.02
PUBLISHED_LEAST, PUBLISHED_KEPT = 0.70, 0.95
#: Slowly varying rates: schemes count as alike within so many hundredths.
ALIKE = 0.02


def utilisations(rows: Sequence[Row], scheme: str, setting: str) -> dict[float, Interval]:
    """By period in seconds."""
    runs = chosen(rows, variant=f"{scheme}, {setting}")
    return {float(period): mean_of(part, "utilisation") for (period,), part in grouped(runs, PERIOD).items()}


def statements(rows: Sequence[Row]) -> list[Statement]:
    """What the paper reads from the figure, for each setting that it may have had."""
    found = []
    for setting, words in {**SETTINGS, **LONG}.items():
        split, adapted = utilisations(rows, "i-tcp", setting), utilisations(rows, "adaptation", setting)
        found += [_least(split, words), _kept(adapted, words), _alike(rows, setting, words)]
    return found


def _least(split: dict[float, Interval], words: str) -> Statement:
    period, least = min(split.items(), key=lambda entry: entry[1].mean)
    slow = max(one.mean for one in split.values())
    verdict = judge_value(PUBLISHED_LEAST, least, rounding=0.05, direction=least.mean < slow - 0.05)
    return Statement(
        where=f"Fig. 11, {words}",
        published="I-TCP falls to about 70 % of the link where rates change fast",
        found=f"least utilisation {written(least)} at a period of {period:g} s, most {slow:.3f}",
        verdict=verdict,
        reason=""
        if verdict is Verdict.REPRODUCED
        else "15 packets hold more than 28 ms of the link's mean rate, so a halved window still fills it: over this "
        "delay NewReno loses next to nothing, and ns-2 and ns-3 keep 0.90 to 0.99 of such a link too",
    )


def _kept(adapted: dict[float, Interval], words: str) -> Statement:
    above = [period for period, one in adapted.items() if one.mean - (one.half_width or 0.0) > PUBLISHED_KEPT]
    period, least = min(adapted.items(), key=lambda entry: entry[1].mean)
    verdict = Verdict.NOT
    if 2 * len(above) > len(adapted):
        verdict = Verdict.REPRODUCED
    elif above:
        verdict = Verdict.DIRECTION
    return Statement(
        where=f"Fig. 11, {words}",
        published="The adapted window keeps more than 95 % under most conditions",
        found=f"above 95 % at {len(above)} of {len(adapted)} periods; least {written(least)} at {period:g} s",
        verdict=verdict,
        reason=""
        if verdict is Verdict.REPRODUCED
        else "four steps of feedback each way (d = 4) are later than the changes: quotas for the old rate overrun "
        "the buffer",
    )


def _alike(rows: Sequence[Row], setting: str, words: str) -> Statement:
    apart = []
    for period in utilisations(rows, "i-tcp", setting):
        if period >= SLOW_S:
            schemes = [
                values_of(
                    [row for row in chosen(rows, variant=f"{scheme}, {setting}") if row[PERIOD] == period],
                    "utilisation",
                )
                for scheme in ("adaptation", "i-tcp")
            ]
            apart += [one - other for one, other in zip(*schemes, strict=True)]
    difference = mean_interval(apart)
    fast = min(utilisations(rows, "i-tcp", setting))
    apart_fast = utilisations(rows, "adaptation", setting)[fast].mean - utilisations(rows, "i-tcp", setting)[fast].mean
    verdict = Verdict.NOT
    if abs(difference.mean) + (difference.half_width or 0.0) <= ALIKE:
        verdict = Verdict.REPRODUCED
    elif abs(difference.mean) < abs(apart_fast):
        verdict = Verdict.DIRECTION
    return Statement(
        where=f"Fig. 11, {words}",
        published="Both are alike where rates change slowly",
        found=f"adapted window over I-TCP from {SLOW_S:g} s on: {written(difference)} of the link (alike: 0.02); at "
        f"{fast:g} s {apart_fast:.3f}",
        verdict=verdict,
        reason=""
        if verdict is Verdict.REPRODUCED
        else "over this delay I-TCP loses at each change, slow ones included",
    )


def charts(rows: Sequence[Row]) -> list[Chart]:
    """Fig. 11, for each setting."""
    drawn = []
    for number, (setting, words) in enumerate({**SETTINGS, **LONG}.items()):
        lines = []
        for scheme, name in (("adaptation", "adapted window"), ("i-tcp", "I-TCP"), ("tcp", "TCP")):
            points = utilisations(rows, scheme, setting)
            means, widths = [one.mean for one in points.values()], [one.half_width for one in points.values()]
            lines.append(Line(name, list(points), means, widths))
        lines.append(Line("I-TCP, least published", [FASTEST_S], [PUBLISHED_LEAST], is_published=True))
        drawn.append(
            Chart(
                f"figure-11-{number + 1}",
                f"Utilisation by period: {words} (fig. 11)",
                "period of the variation (s)",
                "utilisation",
                tuple(lines),
                "Whole frames leave 0.985 at most. The paper's text gives 0.70 as I-TCP's least and 0.95 as the "
                "least of "
                "the adapted window under most conditions.",
                is_x_logarithmic=True,
                from_zero=False,
            )
        )
    return drawn


def choices_table(rows: Sequence[Row]) -> Table:
    """I-TCP's utilisation with one thing changed at a time."""
    import pandas as pd

    entries = []
    for (variant,), part in grouped(rows, "variant").items():
        entry: dict[str, object] = {"variant": variant}
        entry |= {
            f"{period:g} s": mean_of(group, "utilisation").mean for (period,), group in grouped(part, PERIOD).items()
        }
        entries.append(entry)
    caption = "Utilisation of I-TCP over rates of 25-175 % by period, one thing changed at a time (28 ms, 200 frames)."
    return Table("link-choices", "Delay, buffer, amplitude, service and timers", pd.DataFrame(entries), caption)
