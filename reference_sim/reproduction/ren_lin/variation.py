"""Figs 11 and 12: utilisation by the period of the variation."""

from __future__ import annotations

from collections.abc import Sequence

from reference_sim.intervals import Interval, mean_interval
from reference_sim.reproduction.grouping import Row, chosen, grouped, mean_of, values_of
from reference_sim.reproduction.judging import differences, judge_positive, judge_value, worst
from reference_sim.reproduction.ren_lin.fast_links import FASTER, LONG_STEPS, PERIOD
from reference_sim.reproduction.results import Chart, Line, Statement, Table, Verdict

FAST = f"25-175 %, {FASTER}"
#: Variants of the campaign by what the paper leaves open.
SETTINGS = {
    "50-150 %": "89 packets/s, rates of 50-150 %",
    "25-175 %": "89 packets/s, rates of 25-175 %",
    FAST: "512 packets/s, rates of 25-175 %",
}
SLOW_S = 4.0
#: Where the paper's "extreme case" is drawn; its text does not name the period.
FASTEST_S = 0.02
#: Of fig. 12.
TRACED_S = 0.2
PUBLISHED_LEAST, PUBLISHED_KEPT = 0.70, 0.95
#: Slowly varying rates: schemes count as alike within so many hundredths.
ALIKE = 0.02
_SHORT_PIPE = (
    "40 ms of 89 packets a second are 3.6 packets, and the buffer has 15: a halved window still fills the link, and "
    "ns-2 and ns-3 keep 0.90 to 0.99 of it too"
)


def utilisations(rows: Sequence[Row], scheme: str, setting: str) -> dict[float, Interval]:
    """By period in seconds."""
    runs = chosen(rows, variant=f"{scheme}, {setting}")
    return {float(period): mean_of(part, "utilisation") for (period,), part in grouped(runs, PERIOD).items()}


def statements(rows: Sequence[Row], link: Sequence[Row]) -> list[Statement]:
    """What the paper reads from its figures, for each setting that it may have had."""
    found = []
    for setting, words in SETTINGS.items():
        split, adapted = utilisations(rows, "i-tcp", setting), utilisations(rows, "adaptation", setting)
        found += [_least(split, words, setting), _kept(adapted, words, setting, link), _alike(rows, setting, words)]
    return [*found, _spurious(rows)]


def _least(split: dict[float, Interval], words: str, setting: str) -> Statement:
    period, least = min(split.items(), key=lambda entry: entry[1].mean)
    slow = max(one.mean for one in split.values())
    verdict = judge_value(PUBLISHED_LEAST, least, rounding=0.05, direction=least.mean < slow - 0.05)
    reason = ""
    if verdict is not Verdict.REPRODUCED:
        reason = "where the pipe is longer than the buffer I-TCP does fall" if setting == FAST else _SHORT_PIPE
    return Statement(
        where=f"Fig. 11, {words}",
        published="I-TCP falls to about 70 % of the link where rates change fast",
        found=f"least utilisation {_share(least)} at a period of {period:g} s, most {slow:.3f}",
        verdict=verdict,
        reason=reason,
    )


def _kept(adapted: dict[float, Interval], words: str, setting: str, link: Sequence[Row]) -> Statement:
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
        found=f"above 95 % at {len(above)} of {len(adapted)} periods; least {_share(least)} at {period:g} s",
        verdict=verdict,
        reason="" if verdict is Verdict.REPRODUCED and setting != FAST else _on_steps(link),
    )


def _on_steps(link: Sequence[Row]) -> str:
    long, roomy, roomy_split = (
        _swept(link, variant)
        for variant in (
            f"adaptation, {FASTER}, {LONG_STEPS}",
            f"adaptation, {FASTER}, 60 packets of buffer",
            f"i-tcp, {FASTER}, 60 packets of buffer",
        )
    )
    periods = "/".join(f"{period:g}" for period in long)
    return (
        f"it hangs on Ts and the buffer: steps of 25 ms bring 13 packets at these rates, of which the law makes "
        f"{_listed(long)} of the link at {periods} s; with 60 packets of buffer it has {_listed(roomy)}, and I-TCP "
        f"{_listed(roomy_split)}"
    )


def _share(of_the_link: Interval) -> str:
    """A share with its half width, as far as thousandths tell them."""
    width = of_the_link.half_width or 0.0
    return f"{of_the_link.mean:.3f}" + (f" ± {width:.3f}" if width >= 0.0005 else "")


def _swept(link: Sequence[Row], variant: str) -> dict[float, float]:
    """Mean utilisation by period of one choice."""
    parts = grouped(chosen(link, variant=variant), PERIOD).items()
    return {float(period): mean_of(part, "utilisation").mean for (period,), part in parts}


def _listed(values: dict[float, float]) -> str:
    return "/".join(f"{value:.2f}" for value in values.values())


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
        found=f"adapted window over I-TCP from {SLOW_S:g} s on: {_share(difference)} of the link (alike: 0.02); at "
        f"{fast:g} s {apart_fast:.3f}",
        verdict=verdict,
        reason=""
        if verdict is Verdict.REPRODUCED
        else "where the pipe is longer than the buffer I-TCP leaves the link idle after each loss, at whatever period",
    )


def _spurious(rows: Sequence[Row]) -> Statement:
    told, verdicts = [], []
    for setting, words in SETTINGS.items():
        traced = [row for row in chosen(rows, variant=f"tcp, {setting}") if row[PERIOD] == TRACED_S]
        timeouts, repairs = values_of(traced, "timeouts"), values_of(traced, "fast_retransmits")
        verdicts.append(judge_positive(differences(timeouts, repairs)))
        told.append(f"{words}: {mean_interval(timeouts).mean:.0f} and {mean_interval(repairs).mean:.0f}")
    has_some = any(value > 0 for row in rows if row[PERIOD] == TRACED_S for value in [row["timeouts"]])
    verdict = worst(verdicts)
    if verdict is Verdict.NOT and has_some:
        verdict = Verdict.DIRECTION
    return Statement(
        where="Fig. 12",
        published="At a period of 0.2 s slow starts after spurious timeouts come often, and fast recovery hardly ever",
        found=f"timeouts and fast retransmissions of NewReno in 300 s, {'; '.join(told)}",
        verdict=verdict,
        reason=""
        if verdict is Verdict.REPRODUCED
        else "a timer of four deviations and at least 0.2 s mostly outlasts rates that fall for 0.2 s; the paper's "
        "condition (2) takes it for twice the last round trip",
    )


def charts(rows: Sequence[Row]) -> list[Chart]:
    """Fig. 11, for each setting."""
    drawn = []
    for number, (setting, words) in enumerate(SETTINGS.items()):
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
                "20 ms from the proxy, packets of 500 bytes, 15 of which wait. The paper's text gives 0.70 as I-TCP's "
                "least and 0.95 as the least of the adapted window under most conditions.",
                is_x_logarithmic=True,
                from_zero=False,
            )
        )
    return drawn


def choices_table(rows: Sequence[Row]) -> Table:
    """Utilisation with one thing changed at a time."""
    import pandas as pd

    entries = []
    for (variant,), part in grouped(rows, "variant").items():
        scheme, change = str(variant).split(", ", 1)
        entry: dict[str, object] = {"scheme": scheme, "variant": change}
        entry |= {
            f"{period:g} s": mean_of(group, "utilisation").mean for (period,), group in grouped(part, PERIOD).items()
        }
        entries.append(entry)
    caption = "Utilisation by period over rates of 25-175 % of 89 packets/s, one thing changed at a time."
    return Table(
        "link-choices", "Rates, buffer, delay, frames, service and timers of fig. 11", pd.DataFrame(entries), caption
    )
