"""Parameters that the paper does not give, or gives twice."""

from __future__ import annotations

from collections.abc import Sequence

from papers.jersey.experiments import DISCARD_AGES_S
from papers.jersey.gains import gain_of_jersey, judged_wrong
from papers.results import Assumption
from papers.statements.comparing import written
from papers.statements.grouping import Row, chosen, grouped, mean_of


def assumptions(warning: Sequence[Row], open_parameters: Sequence[Row]) -> tuple[Assumption, ...]:
    """Each with the effect that the sweeps showed; without rows of `open_parameters` only those of the warning."""
    return (
        Assumption(
            "estimator and window of Jersey",
            "both equations are lost from the text",
            "R_n = (RTT R_(n-1) + L_n) / (t_n - t_(n-1) + RTT); window RTT R_n over the segment size; Reno's growth "
            "between warnings",
            "the paper's reference [3] (Xu, Tian and Ansari, JSAC 2004)",
        ),
        Assumption(
            "threshold and averaging of the congestion warning",
            "nothing",
            "half the queue; an average over some ten packets (weight 0.1)",
            "a warning must come before the queue is full: the average has to follow within the packets that are left",
            _warning_effect(warning),
        ),
        *(
            _choice(open_parameters, subject, paper, choice, reason, names)
            for subject, paper, choice, reason, names in _OPEN_PARAMETERS
        ),
    )


_OPEN_PARAMETERS: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    (
        "Node-B queue of the data terminal",
        "nothing",
        "50 packets",
        "about a bandwidth-delay product of a terminal that is served well (4 Mbit/s over 150 ms)",
        ("queue 25", "queue 100", "queue 200"),
    ),
    (
        "SDU discard",
        "a timer whose length is not given",
        "none, but a block is sent ten times at most (MaxDAT)",
        "the longest timer of TS 25.331 (7.5 s) hardly ever ends; shorter ones drop packets without loss or overflow",
        tuple(f"discard after {age_s:g} s" for age_s in DISCARD_AGES_S),
    ),
    (
        "shadowing",
        "8.0 dB in table 2, 8.9 dB in the text",
        "8.0 dB",
        "the table is the list of what was set",
        ("shadowing 8.9 dB",),
    ),
    (
        "channel of speech",
        "UM over 'contending traffic', so apparently the shared channel",
        "the shared channel",
        "a dedicated channel would leave the scheduler with one terminal",
        ("dedicated speech",),
    ),
)


def _choice(
    open_parameters: Sequence[Row], subject: str, paper: str, choice: str, reason: str, names: tuple[str, ...]
) -> Assumption:
    effect = (
        "" if not open_parameters else f"gain over NewReno and SACK: {_gains(open_parameters, ('as chosen', *names))}"
    )
    return Assumption(subject, paper, choice, reason, effect)


def _gains(rows: Sequence[Row], names: tuple[str, ...]) -> str:
    words = []
    for name in names:
        gains = [gain_of_jersey(rows, f"{base}, {name}", instead=f"jersey, {name}") for base in ("new-reno", "sack")]
        wrong, total = judged_wrong(chosen(rows, variant=f"jersey, {name}"))
        misjudged = f" ({wrong} of {total} losses taken for link errors)" if wrong else ""
        words.append(f"{name} {written(gains[0], '%', 2)} and {written(gains[1], '%', 2)}{misjudged}")
    return "; ".join(words)


def _warning_effect(rows: Sequence[Row]) -> str:
    words = []
    for (variant,), part in grouped(rows, "variant").items():
        wrong, total = judged_wrong(part)
        rate = mean_of(part, "goodput_kbit_s").mean
        words.append(f"{variant}: {wrong} of {total} losses misjudged, {rate:.0f} kbit/s")
    return "; ".join(words)
