"""What the campaigns say of the paper's statements."""

from __future__ import annotations

from collections.abc import Sequence

from reference_sim.intervals import Interval, mean_interval
from reference_sim.reproduction.experiment import Effort, Measurements
from reference_sim.reproduction.grouping import Row, chosen, grouped, mean_of, ratio_gain, rows_of, values_of
from reference_sim.reproduction.jersey import experiments as runs_of
from reference_sim.reproduction.jersey import figures
from reference_sim.reproduction.jersey.choices import choices
from reference_sim.reproduction.jersey.gains import NAMES, gain_of_jersey, goodput_of, judged_wrong
from reference_sim.reproduction.judging import judge_positive, worst, written
from reference_sim.reproduction.results import Statement, Story, Verdict

#: Of SACK over the best of the Reno family; above it, it would no longer be a limited improvement.
LIMITED_PERCENT = 10.0
#: An age at which RLC may discard packets, for comparison.
AGE_S = 2.0
#: What each of two flows gets at least where they share roughly alike.
FAIR_SHARE = 0.4
#: Where NewReno loses more than this to Jersey, Jersey is not friendly.
UNFRIENDLY_PERCENT = 10.0
#: Of the warning in the bottleneck that flows share: half its buffer.
MIDDLE_THRESHOLD = 41
_MISSES = (
    "RLC and hybrid ARQ repeat what the air loses, so a loss is an overflow, for which Jersey slows down as others do"
)


def assess(measurements: Measurements) -> Story:
    """Verdicts, tables and figures."""
    goodput = rows_of(measurements[runs_of.GOODPUT].runs)
    errors = rows_of(measurements[runs_of.LINK_ERRORS].runs)
    fairness = rows_of(measurements[runs_of.FAIRNESS].runs)
    warning = rows_of(measurements[runs_of.WARNING].runs)
    silences = [] if measurements.effort is Effort.REDUCED else rows_of(measurements[runs_of.SILENCES].runs)
    tables = [
        figures.goodput_table(goodput),
        figures.errors_table(errors),
        figures.fairness_table(fairness),
        figures.warning_table(warning),
    ]
    if silences:
        tables.append(figures.silences_table(silences))
    return Story(
        statements=(
            *(_order(rows, load) for (load,), rows in grouped(goodput, runs_of.SPEECH).items()),
            _sack(goodput),
            _false_detection(goodput, silences),
            _telling_errors(errors),
            _hidden_errors(errors),
            *_fair(fairness),
        ),
        tables=tuple(tables),
        charts=(figures.gain_chart(goodput), figures.errors_chart(errors), figures.fairness_chart(fairness)),
        choices=choices(warning, silences),
    )


def _order(rows: Sequence[Row], load: int) -> Statement:
    gains = {name: gain_of_jersey(rows, name) for name in NAMES if name != "jersey"}
    verdict = worst([judge_positive(one) for one in gains.values()])
    told = "; ".join(f"{NAMES[name]} {written(one, '%', 2)}" for name, one in gains.items())
    behind = [NAMES[name] for name, one in gains.items() if judge_positive(one) is not Verdict.REPRODUCED]
    mean = mean_interval(goodput_of(rows, "jersey"))
    return Statement(
        where={9: "Fig. 5", 19: "Fig. 6"}.get(load, "Section V") + f", {load} speech terminals a cell",
        published="Jersey has significantly more goodput than each of Tahoe, Reno, NewReno and SACK",
        found=f"gain of Jersey over {told}; its mean over the drops is {mean.mean:.0f} kbit/s",
        verdict=verdict,
        reason=""
        if verdict is Verdict.REPRODUCED
        else f"not ahead of {', '.join(behind)} beyond the interval: {_MISSES}",
    )


def _sack(rows: Sequence[Row]) -> Statement:
    gains = {}
    for (load,), part in grouped(rows, runs_of.SPEECH).items():
        best = max(("tahoe", "reno", "new-reno"), key=lambda name: sum(goodput_of(part, name)))
        gains[load] = gain_of_jersey(part, best, instead="sack")
    ends = [(one.mean - (one.half_width or 0.0), one.mean + (one.half_width or 0.0)) for one in gains.values()]
    if all(high < LIMITED_PERCENT and low + high > 0.0 for low, high in ends):
        verdict = Verdict.REPRODUCED
    else:
        verdict = Verdict.DIRECTION if all(low < LIMITED_PERCENT for low, _ in ends) else Verdict.NOT
    told = "; ".join(f"{load}: {written(one, '%', 2)}" for load, one in gains.items())
    return Statement(
        where="Section V, last paragraph",
        published="SACK improves little on Tahoe, Reno and NewReno even beside few terminals",
        found=f"SACK over the best of the three, by number of speech terminals: {told} (limited: 0 to 10 %)",
        verdict=verdict,
        reason="" if verdict is Verdict.REPRODUCED else "the gain is small, but its interval is not within 0 to 10 %",
    )


def _false_detection(rows: Sequence[Row], silences: Sequence[Row]) -> Statement:
    wrong, total = judged_wrong(chosen(rows, variant="jersey"))
    most = greatest_share(wrong, total)
    verdict = Verdict.REPRODUCED
    if most >= 0.01:
        verdict = Verdict.DIRECTION if wrong <= 0.01 * total else Verdict.NOT
    aged = f"; where RLC discards packets of {AGE_S:g} s, {_aged(silences)}" if silences else ""
    few = "; so few losses cannot show that it is below 1 %" if verdict is Verdict.DIRECTION else ""
    return Statement(
        where="Section V",
        published="Less than 1 % of losses by congestion are taken for link errors",
        found=f"{wrong} of {total} losses by congestion were taken for link errors (95 % below {100 * most:.2g} %)",
        verdict=verdict,
        reason="it hangs on how fast the router's average follows its queue, of which the paper says nothing: with the "
        f"usual weight of 0.002 most losses come before the warning (see the choices){aged}{few}",
    )


def _aged(silences: Sequence[Row]) -> str:
    wrong, total = judged_wrong(chosen(silences, variant=f"jersey, discard after {AGE_S:g} s"))
    return f"{wrong} of {total} losses are taken for link errors"


def greatest_share(events: int, total: int) -> float:
    """Upper end of the one-sided 95 % interval of a share (Clopper and Pearson)."""
    if events >= total:
        return 1.0
    from scipy.special import betaincinv

    return float(betaincinv(events + 1, total - events, 0.95))


def _telling_errors(rows: Sequence[Row]) -> Statement:
    (loss,), part = list(grouped(rows, runs_of.LOSS).items())[-1]
    gains = {name: gain_of_jersey(part, name) for name in ("new-reno", "sack")}
    verdict = worst([judge_positive(one) for one in gains.values()])
    told = "; ".join(f"over {NAMES[name]} {written(one, '%', 2)}" for name, one in gains.items())
    return Statement(
        where="Section V",
        published="Jersey gains by telling link errors from congestion",
        found=f"where {100 * loss:g} % of the packets are lost and no lower layer repeats them, Jersey gains {told} "
        "(reference [3] has 76 and 85 % over Reno with 1 %, with and without other traffic)",
        verdict=verdict,
        reason="" if verdict is Verdict.REPRODUCED else "the interval spans no gain",
    )


def _hidden_errors(rows: Sequence[Row]) -> Statement:
    gains = [gain_of_jersey(part, "sack") for part in grouped(rows, runs_of.LOSS).values()]
    verdict = judge_positive(Interval(gains[-1].mean - gains[0].mean, _joined(gains[-1], gains[0]), gains[0].count))
    return Statement(
        where="Section V",
        published="The improvement is smaller than over a bare lossy link, since RLC and MAC hide link errors",
        found=f"gain over SACK behind RLC and hybrid ARQ {written(gains[0], '%', 2)}; with link errors left "
        f"{written(gains[-1], '%', 2)}",
        verdict=verdict,
        reason="" if verdict is Verdict.REPRODUCED else "the two intervals overlap",
    )


def _joined(one: Interval, other: Interval) -> float | None:
    """Half width of the difference of two means, taken as independent."""
    if one.half_width is None or other.half_width is None:
        return None
    return float((one.half_width**2 + other.half_width**2) ** 0.5)


def _fair(rows: Sequence[Row]) -> list[Statement]:
    """Reference [3]'s claim, in the usual two senses: equal shares among its own, and nothing taken from others."""
    statements = []
    middle = [row for row in rows if row[runs_of.THRESHOLD] == MIDDLE_THRESHOLD]
    for (loss,), part in grouped(middle, runs_of.LOSS_BEHIND).items():
        where = f"Section I, of reference [3], {f'{100 * loss:g} %' if loss else 'no'} link errors"
        statements += [_fair_among_its_own(part, where, has_errors=loss > 0), _friendly(part, where, loss > 0)]
    return statements


def _fair_among_its_own(rows: Sequence[Row], where: str, *, has_errors: bool) -> Statement:
    alike = chosen(rows, variant="two jersey")
    share, index = mean_of(alike, "first_share"), mean_of(alike, "fairness_index")
    verdict = Verdict.NOT
    if FAIR_SHARE <= share.mean <= 1.0 - FAIR_SHARE:
        is_equal = abs(share.mean - 0.5) <= (share.half_width or 0.0)
        verdict = Verdict.REPRODUCED if is_equal else Verdict.DIRECTION
    reason = ""
    if verdict is not Verdict.REPRODUCED:
        reason = (
            "losses at random take more from the larger window, but leave the first flow ahead"
            if has_errors
            else "nothing brings the two together: each window is set from the rate that its own flow had, so who came "
            "first keeps more"
        )
    return Statement(
        where=where,
        published="Jersey is fair: its flows share alike",
        found=f"the first of two Jersey flows on 10 Mbit/s gets {written(share)} of what both get; Jain's index is "
        f"{written(index)}",
        verdict=verdict,
        reason=reason,
    )


def _friendly(rows: Sequence[Row], where: str, has_errors: bool) -> Statement:
    beside_jersey, beside_own = (
        values_of(chosen(rows, variant=variant), "second_mbit_s") for variant in ("jersey and new-reno", "two new-reno")
    )
    change = ratio_gain(beside_jersey, beside_own)
    share = mean_of(chosen(rows, variant="jersey and new-reno"), "first_share")
    verdict = Verdict.NOT
    if change.mean - (change.half_width or 0.0) >= -UNFRIENDLY_PERCENT:
        verdict = Verdict.REPRODUCED
    elif change.mean >= -2.0 * UNFRIENDLY_PERCENT:
        verdict = Verdict.DIRECTION
    reason = ""
    if verdict is not Verdict.REPRODUCED:
        reason = "Jersey refills at once what link errors empty, so NewReno meets a full buffer more often"
    elif not has_errors:
        reason = (
            "it hangs on the threshold of the warning against the buffer, which no text gives: early warnings hold "
            "Jersey back while NewReno fills the buffer, late ones turn that over (see the table)"
        )
    return Statement(
        where=where,
        published="Jersey is friendly: it takes nothing from other flows",
        found=f"beside Jersey the rate of NewReno changes by {written(change, '%', 2)} against that beside another "
        f"NewReno; Jersey's share is {written(share)}",
        verdict=verdict,
        reason=reason,
    )
