"""Parameters that the paper does not give, gives twice, or prints wrongly."""

from __future__ import annotations

from collections.abc import Sequence

from papers.ren_lin.adaptations import driven_gains, in_the_cell, over_links
from papers.ren_lin.fast_links import PERIOD
from papers.ren_lin.links import SCHEDULERS, TERMINALS
from papers.ren_lin.model_rows import errors, of_scheduler
from papers.results import Assumption
from papers.statements.comparing import written
from papers.statements.grouping import Row, grouped, mean_of
from reference_sim.intervals import mean_interval


def assumptions(
    link: Sequence[Row], adapted: Sequence[Row], profiles: Sequence[Row], loads: Sequence[Row]
) -> tuple[Assumption, ...]:
    """Each with what the sweeps showed."""
    return (
        Assumption(
            "channel of the cell",
            "EURANE's traces; path loss and shadowing are not given, interference only as '30' and '6'",
            "path loss of TR 25.896, shadowing 8 dB, interference of 30 dBm at the antenna and -70 dBm at a terminal",
            "published values of the same time for the same system (docs/models/hsdpa.md)",
            f"mean packets/s of UE1 to UE4, here: {_rates(profiles)}; published table 2: RR 139, 78, 86, 70; MCI "
            "142, 86, "
            "89, 76; FCDS 110, 93, 80, 73",
        ),
        Assumption(
            "load behind the bandwidth profiles",
            "packets forwarded a second, the traffic is not stated",
            "one download a terminal into a queue of 2000 packets, which does not run empty",
            "a queue that runs empty measures the traffic; UE1 under MCI is held at 200 packets/s even so, by "
            "acknowledgements over its uplink of 64 kbit/s",
            _loads(loads),
        ),
        Assumption(
            "where table 3 was run",
            "'referring to fig. 1a', but figs 10 and 12 to 16 describe a link that a profile drives",
            "links that its profiles drive; the cell itself beside it",
            "its rows are called as the profiles are, and section 5.2 takes the mean rate of a driven link from it",
            "columns 'cell' and 'driven' of table 3",
        ),
        Assumption(
            "timer, recovery and buffer of the proxy's leg, pace and memory of its law",
            "timeouts are disabled, three duplicates retransmit; eta_l and eta_u are extremes of all time; nothing of "
            "the rest",
            "SACK, repeated losses detected from later acknowledgements (RFC 8985), RFC 6298's timer for lost tails; "
            "retransmissions count as packets of the step; 64 kB; a step's packets leave evenly; extremes of 5 s",
            "without timeouts only duplicates can show a second loss; (17) counts whatever joins the queue; extremes "
            "of all time would keep the start-up's",
            f"{over_links(profiles)}; {in_the_cell(adapted)}",
        ),
        Assumption(
            "rates, buffer, steps and service of figs 8 and 11",
            "20 ms from the proxy, frames as long as packets; nothing of rates, buffer, q0 and Ts",
            "15 packets, q0 half of them; steps of 5 ms; rates of 50-150 % and 25-175 % of 89 packets/s, and of 25-175 "
            "% up to 3.6 Mbit/s; bits are served exactly under each rate",
            "buffer and mean rate of section 5.1, and what one terminal gets that has the cell to itself; Ts must be "
            "below half of the shortest period (section 5.2); ns-2 keeps the rate at which a packet's service began, "
            "which is an artefact",
            _link(link),
        ),
        Assumption(
            "least retransmission timer of table 2's sender",
            "nothing",
            "0.2 s",
            "the default of ns-2, with which the paper was simulated",
            _patient(profiles),
        ),
        Assumption(
            "N_d of equation (4)",
            "drops, 'inferred from the profile'",
            "drops as measured in the run",
            "a profile has no drops",
        ),
        Assumption(
            "epochs (6) and (7) where half a window exceeds the pipe",
            "nothing; they turn negative for the paper's own figures",
            "epoch A takes no time, epoch B begins at the half window",
            "the pipe is full from the start",
        ),
        Assumption(
            "w(k) in (17) and (36)",
            "the sending window",
            "packets sent in step k, whole ones with a carry, not below zero; the sum in (36) has what was sent",
            "2.2 packets in flight could not hold 100 frames",
        ),
    )


def _rates(profiles: Sequence[Row]) -> str:
    words = []
    for label in SCHEDULERS.values():
        runs = of_scheduler(profiles, label)
        means = ", ".join(f"{mean_of(runs, f'{terminal}.mean_packets_s').mean:.0f}" for terminal in TERMINALS)
        words.append(f"{label} {means}")
    return "; ".join(words)


def _patient(profiles: Sequence[Row]) -> str:
    words = []
    for which, timer in (("", "0.2 s"), ("patient_", "1 s (RFC 6298)")):
        for label, terminal in (("MCI", "UE1"), ("FCDS", "UE3")):
            runs = of_scheduler(profiles, label)
            by_padhye, by_model = (
                mean_interval(errors(runs, terminal, name, which)).mean for name in ("padhye", "model")
            )
            timeouts = mean_of(runs, f"{terminal}.{which}timeouts").mean
            words.append(
                f"{timer}, {terminal} {label}: Padhye off by {100 * by_padhye:.1f} %, the model by "
                f"{100 * by_model:.1f} %, "
                f"{timeouts:.1f} timeouts"
            )
    return "; ".join(words)


def _loads(rows: Sequence[Row]) -> str:
    words = []
    for (variant,), part in grouped(rows, "variant").items():
        gains = driven_gains(part)
        by_scheduler = [f"{label} {written(one['as chosen'], digits=2)}" for label, one in gains.items()]
        words.append(f"{variant}: {_rates(part)} packets/s, the proxy gains {', '.join(by_scheduler)} % on TCP")
    return "; ".join(words)


def _link(rows: Sequence[Row]) -> str:
    words = []
    for (variant,), part in grouped(rows, "variant").items():
        values = ", ".join(f"{mean_of(group, 'utilisation').mean:.3f}" for group in grouped(part, PERIOD).values())
        words.append(f"{variant} {values}")
    periods = ", ".join(f"{period:g}" for (period,) in grouped(rows, PERIOD))
    return f"utilisation at {periods} s: {'; '.join(words)}"
