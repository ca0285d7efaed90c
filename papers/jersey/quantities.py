"""Quantities that the statements on TCP-Jersey (`statements.toml`) compare, measured in the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from papers.jersey import experiments as runs_of
from papers.jersey.gains import NAMES, gain_of_jersey, goodput_of, judged_wrong
from papers.results import StatementOutcome
from papers.statements.comparing import compare_positive, written
from papers.statements.grouping import Row, chosen, grouped, mean_of, ratio_gain, values_of
from reference_sim.intervals import Interval, mean_interval

#: Where the paper shows a load, by speech terminals a cell.
_FIGURES = {9: "Fig. 5", 19: "Fig. 6"}
#: An age at which RLC may discard packets, for comparison.
_AGE_S = 2.0
#: What each of two flows gets at least where they share roughly alike.
_FAIR_SHARE = 0.4
#: Share of losses by congestion that may be taken for link errors.
_MISJUDGED_SHARE = 0.01
#: Of the warning in the bottleneck that flows share: half its buffer.
MIDDLE_THRESHOLD = 41


def quantities_of(
    goodput: Sequence[Row], errors: Sequence[Row], fairness: Sequence[Row], open_parameters: Sequence[Row]
) -> dict[str, Any]:
    """All of them, by the names that the table of statements uses; `open_parameters` may be without rows."""
    middle = [row for row in fairness if row[runs_of.THRESHOLD] == MIDDLE_THRESHOLD]
    by_loss = {loss: part for (loss,), part in grouped(middle, runs_of.LOSS_BEHIND).items()}
    loads = [_load(rows, load) for (load,), rows in grouped(goodput, runs_of.SPEECH).items()]
    return {
        "loads": loads,
        **_consistency(loads),
        **_sack(goodput),
        **_false_detection(goodput, open_parameters),
        **_link_errors(errors),
        "fairness": [_fairness(part, loss) for loss, part in by_loss.items()],
    }


def _load(rows: Sequence[Row], load: int) -> dict[str, Any]:
    """Gains of Jersey beside so many speech terminals a cell."""
    gains = {name: gain_of_jersey(rows, name) for name in NAMES if name != "jersey"}
    behind = [NAMES[name] for name, one in gains.items() if compare_positive(one) is not StatementOutcome.REPRODUCED]
    return {
        "figure": _FIGURES.get(load, "Section V"),
        "load": load,
        "gains_of_jersey": list(gains.values()),
        "gains_by_sender": "; ".join(f"{NAMES[name]} {written(one, '%', 2)}" for name, one in gains.items()),
        "behind": ", ".join(behind),
        "mean_kbit_s": mean_interval(goodput_of(rows, "jersey")).mean,
    }


def _consistency(loads: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Gains of Jersey over every sender beside every load, and the least of them."""
    others = [NAMES[name] for name in NAMES if name != "jersey"]
    gains = {
        f"{sender} beside {load['load']} terminals": gain
        for load in loads
        for sender, gain in zip(others, load["gains_of_jersey"], strict=True)
    }
    least = min(gains, key=lambda where: gains[where].mean)
    return {
        "all_gains_of_jersey": list(gains.values()),
        "least_gain_of_jersey": gains[least],
        "least_gain_over": least,
    }


def _sack(rows: Sequence[Row]) -> dict[str, Any]:
    """Gain of SACK over the best of the Reno family, by load."""
    gains = {}
    for (load,), part in grouped(rows, runs_of.SPEECH).items():
        best = max(("tahoe", "reno", "new-reno"), key=lambda name: sum(goodput_of(part, name)))
        gains[load] = gain_of_jersey(part, best, instead="sack")
    by_load = "; ".join(f"{load}: {written(one, '%', 2)}" for load, one in gains.items())
    return {"gains_of_sack": list(gains.values()), "gains_of_sack_by_load": by_load}


def _false_detection(rows: Sequence[Row], open_parameters: Sequence[Row]) -> dict[str, Any]:
    """Losses by congestion that Jersey took for link errors."""
    wrong, total = judged_wrong(chosen(rows, variant="jersey"))
    most = greatest_share(wrong, total)
    is_low = wrong <= _MISJUDGED_SHARE * total
    aged = ""
    if open_parameters:
        aged_wrong, aged_total = judged_wrong(chosen(open_parameters, variant=f"jersey, discard after {_AGE_S:g} s"))
        aged = f"; where RLC discards packets of {_AGE_S:g} s, {aged_wrong} of {aged_total} losses are taken for link "
        aged += "errors"
    return {
        "misjudged": wrong,
        "judged": total,
        "greatest_misjudged_percent": 100 * most,
        "misjudged_below_1_percent": True if most < _MISJUDGED_SHARE else None if is_low else False,
        "with_discarded_packets": aged,
        "too_few_losses": "; so few losses cannot show that it is below 1 %"
        if most >= _MISJUDGED_SHARE and is_low
        else "",
    }


def greatest_share(events: int, total: int) -> float:
    """Upper end of the one-sided 95 % interval of a share (Clopper and Pearson)."""
    if events >= total:
        return 1.0
    from scipy.special import betaincinv

    return float(betaincinv(events + 1, total - events, 0.95))


def _link_errors(rows: Sequence[Row]) -> dict[str, Any]:
    """Gains of Jersey where link errors are left, and how they exceed those where lower layers repeat all."""
    by_loss = grouped(rows, runs_of.LOSS)
    (loss,), part = list(by_loss.items())[-1]
    over_sack = [gain_of_jersey(one, "sack") for one in by_loss.values()]
    return {
        "link_errors_percent": 100 * loss,
        "gain_over_new_reno": gain_of_jersey(part, "new-reno"),
        "gain_over_sack": gain_of_jersey(part, "sack"),
        "hidden_gain_over_sack": over_sack[0],
        "more_gain_with_link_errors": Interval(
            over_sack[-1].mean - over_sack[0].mean, _joined(over_sack[-1], over_sack[0]), over_sack[0].count
        ),
    }


def _joined(one: Interval, other: Interval) -> float | None:
    """Half width of the difference of two means, taken as independent."""
    if one.half_width is None or other.half_width is None:
        return None
    return float((one.half_width**2 + other.half_width**2) ** 0.5)


def _fairness(rows: Sequence[Row], loss: float) -> dict[str, Any]:
    """Shares of one bottleneck: of two Jersey flows, and of NewReno beside Jersey."""
    alike = chosen(rows, variant="two jersey")
    share = mean_of(alike, "first_share")
    beside_jersey, beside_own = (
        values_of(chosen(rows, variant=variant), "second_mbit_s") for variant in ("jersey and new-reno", "two new-reno")
    )
    return {
        "link_errors": f"{100 * loss:g} %" if loss else "no",
        "first_share": share,
        "fairness_index": mean_of(alike, "fairness_index"),
        "shares_are_roughly_alike": _FAIR_SHARE <= share.mean <= 1.0 - _FAIR_SHARE,
        "why_unequal": "losses at random take more from the larger window, but leave the first flow ahead"
        if loss
        else "nothing brings the two together: each window is set from the rate that its own flow had, so who came "
        "first keeps more",
        "change_of_new_reno": ratio_gain(beside_jersey, beside_own),
        "share_of_jersey": mean_of(chosen(rows, variant="jersey and new-reno"), "first_share"),
        "threshold_matters": ""
        if loss
        else "it hangs on the threshold of the warning against the buffer, which no text gives: early warnings hold "
        "Jersey back while NewReno fills the buffer, late ones turn that over (see the table)",
    }
