"""Figs 11 and 12: utilisation by the period of the variation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from papers.ren_lin.fast_links import FASTER, LONG_STEPS, PERIOD
from papers.results import Table
from papers.search.space import ONE_SETTING
from papers.statements.comparing import differences
from papers.statements.grouping import Row, chosen, grouped, mean_of, values_of
from pepscope.results.charts import Chart, Line
from reference_sim.intervals import Interval, mean_interval

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
_USED = "utilisation"
_SHORT_PIPE = (
    "40 ms of 89 packets a second are 3.6 packets, and the buffer has 15: a halved window still fills the link, and "
    "ns-2 and ns-3 keep 0.90 to 0.99 of it too"
)


def utilisations(rows: Sequence[Row], scheme: str, setting: str) -> dict[float, Interval]:
    """By period in seconds."""
    runs = chosen(rows, variant=f"{scheme}, {setting}")
    return {float(period): mean_of(part, "utilisation") for (period,), part in grouped(runs, PERIOD).items()}


def quantities(rows: Sequence[Row], link: Sequence[Row]) -> dict[str, Any]:
    """What the statements on figs 11 and 12 compare; `link` has the runs with one thing changed at a time."""
    return {
        "figure_11": [_figure_11(rows, link, setting) for setting in SETTINGS],
        **_figure_12(rows),
        **_sampling(link),
    }


def quantities_of_one(rows: Sequence[Row], setting: str, steps: Sequence[Row]) -> dict[str, Any]:
    """What the statements on figs 11 and 12 compare where all runs have one setting; `steps` has variants "short" and
    "long", the law with steps of 5 and of 25 ms."""
    traced = [row for row in chosen(rows, variant=f"tcp, {setting}") if row[PERIOD] == TRACED_S]
    short, long = (values_of(chosen(steps, variant=name), _USED) for name in ("short", "long"))
    return {
        "figure_11": [{"words": ONE_SETTING, **_utilisation(rows, setting)}],
        "timeouts_over_fast_retransmits": [_timeouts_over_repairs(traced)],
        "some_run_times_out": any(row["timeouts"] > 0 for row in traced),
        "short_over_long_steps": [differences(short, long)],
    }


def _figure_11(rows: Sequence[Row], link: Sequence[Row], setting: str) -> dict[str, Any]:
    """Utilisation by period under one of the settings that the paper may have had."""
    on_steps = _on_steps(link)
    return {
        "words": SETTINGS[setting],
        **_utilisation(rows, setting),
        "why_split_keeps": "where the pipe is longer than the buffer I-TCP does fall"
        if setting == FAST
        else _SHORT_PIPE,
        "on_steps": on_steps,
        "on_steps_anyway": on_steps if setting == FAST else "",
    }


def _utilisation(rows: Sequence[Row], setting: str) -> dict[str, Any]:
    split, adapted = utilisations(rows, "i-tcp", setting), utilisations(rows, "adaptation", setting)
    split_period, split_least = min(split.items(), key=lambda entry: entry[1].mean)
    split_most = max(one.mean for one in split.values())
    adapted_period, adapted_least = min(adapted.items(), key=lambda entry: entry[1].mean)
    kept = [period for period, one in adapted.items() if one.mean - (one.half_width or 0.0) > PUBLISHED_KEPT]
    slow = _apart_from(rows, setting, SLOW_S)
    fastest = min(split)
    apart_fast = adapted[fastest].mean - split[fastest].mean
    return {
        "split_least": split_least,
        "split_least_words": _share(split_least),
        "split_least_period_s": split_period,
        "split_most": split_most,
        "split_falls": split_least.mean < split_most - 0.05,
        "kept_share": len(kept) / len(adapted),
        "kept_periods": len(kept),
        "periods": len(adapted),
        "adapted_least_words": _share(adapted_least),
        "adapted_least_period_s": adapted_period,
        "apart_slow": slow,
        "apart_slow_words": _share(slow),
        "slow_from_s": SLOW_S,
        "fastest_period_s": fastest,
        "apart_fast": apart_fast,
        "more_alike_than_at_the_fastest": abs(slow.mean) < abs(apart_fast),
    }


def _sampling(link: Sequence[Row]) -> dict[str, Any]:
    """Utilisation at the shortest period with steps below half of it, and with steps of 25 ms, under each setting."""
    words, more = [], []
    for setting, chosen_so in (
        ("89 packets/s", "as chosen"),
        ("512 packets/s", FASTER),
        ("512 packets/s and 60 of buffer", f"{FASTER}, 60 packets of buffer"),
    ):
        long_steps = LONG_STEPS if chosen_so == "as chosen" else f"{chosen_so}, {LONG_STEPS}"
        short, long = (
            values_of(
                [row for row in chosen(link, variant=f"adaptation, {variant}") if row[PERIOD] == FASTEST_S], _USED
            )
            for variant in (chosen_so, long_steps)
        )
        more.append(differences(short, long))
        words.append(f"{setting}: {_share(mean_interval(short))} and {_share(mean_interval(long))}")
    return {"short_over_long_steps": more, "used_by_short_and_long_steps": "; ".join(words)}


def _apart_from(rows: Sequence[Row], setting: str, least_period_s: float) -> Interval:
    """Utilisation of the adapted window over I-TCP's, run by run, at periods of that length and longer."""
    apart = []
    for period in utilisations(rows, "i-tcp", setting):
        if period >= least_period_s:
            schemes = [
                values_of(
                    [row for row in chosen(rows, variant=f"{scheme}, {setting}") if row[PERIOD] == period],
                    "utilisation",
                )
                for scheme in ("adaptation", "i-tcp")
            ]
            apart += [one - other for one, other in zip(*schemes, strict=True)]
    return mean_interval(apart)


def _figure_12(rows: Sequence[Row]) -> dict[str, Any]:
    """Timeouts and fast retransmissions of NewReno at the period of fig. 12."""
    words, more = [], []
    for setting, name in SETTINGS.items():
        traced = [row for row in chosen(rows, variant=f"tcp, {setting}") if row[PERIOD] == TRACED_S]
        more.append(_timeouts_over_repairs(traced))
        timeouts, repairs = (mean_of(traced, measure).mean for measure in ("timeouts", "fast_retransmits"))
        words.append(f"{name}: {timeouts:.0f} and {repairs:.0f}")
    return {
        "timeouts_over_fast_retransmits": more,
        "timeouts_and_fast_retransmits": "; ".join(words),
        "some_run_times_out": any(row["timeouts"] > 0 for row in rows if row[PERIOD] == TRACED_S),
    }


def _timeouts_over_repairs(traced: Sequence[Row]) -> Interval:
    return differences(values_of(traced, "timeouts"), values_of(traced, "fast_retransmits"))


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
    """A share with its half width, in thousandths."""
    width = of_the_link.half_width or 0.0
    return f"{of_the_link.mean:.3f}" + (f" ± {width:.3f}" if width >= 0.0005 else "")


def _swept(link: Sequence[Row], variant: str) -> dict[float, float]:
    """Mean utilisation by period of one choice."""
    parts = grouped(chosen(link, variant=variant), PERIOD).items()
    return {float(period): mean_of(part, "utilisation").mean for (period,), part in parts}


def _listed(values: dict[float, float]) -> str:
    return "/".join(f"{value:.2f}" for value in values.values())


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
