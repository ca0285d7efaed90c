"""Parameters that the paper does not give, gives twice, or prints wrongly."""

from __future__ import annotations

from collections.abc import Sequence

from reference_sim.intervals import mean_interval
from reference_sim.reproduction.grouping import Row, chosen, grouped, mean_of
from reference_sim.reproduction.ren_lin.experiments import PERIOD
from reference_sim.reproduction.ren_lin.links import SCHEDULERS, TERMINALS
from reference_sim.reproduction.ren_lin.model_rows import errors, of_scheduler
from reference_sim.reproduction.results import Choice


def choices(link: Sequence[Row], adapted: Sequence[Row], profiles: Sequence[Row]) -> tuple[Choice, ...]:
    """Each with what the sweeps showed."""
    return (
        Choice(
            "channel of the cell",
            "EURANE's traces; path loss and shadowing are not given, interference only as '30' and '6'",
            "path loss of TR 25.896, shadowing 8 dB, interference of 30 dBm at the antenna and -70 dBm at a terminal",
            "published values of the same time for the same system (docs/models/hsdpa.md)",
            f"mean packets/s of UE1 to UE4, here: {_rates(profiles)}; published table 2: RR 139, 78, 86, 70; MCI "
            "142, 86, "
            "89, 76; FCDS 110, 93, 80, 73",
        ),
        Choice(
            "load behind the bandwidth profiles",
            "packets forwarded a second, of what traffic is not said",
            "one download a terminal, queues that never run empty",
            "anything less would measure the traffic",
        ),
        Choice(
            "where table 3 was run",
            "'referring to fig. 1a', yet figs 10 and 12 to 16 speak of a link that is driven by a profile",
            "both: the cell itself, and links that its profiles drive",
            "neither reading can be excluded",
            "columns `cell` and `driven` of table 3",
        ),
        Choice(
            "timer of the proxy's leg",
            "timeouts are disabled, three duplicates retransmit",
            "a constant timer of 1 s",
            "without any a lost tail would never be repaired; backing off belongs to what was disabled",
            _timers(adapted),
        ),
        Choice(
            "delay, buffer, amplitude and service of figs 8 and 11",
            "20 ms from proxy to RNC; nothing of the rest",
            "28 ms and 15 packets as in section 5.1; rates of 50-150 %, 25-175 %, and 25-175 % over 103 ms; bits "
            "are served "
            "exactly under each rate",
            "the paper's other settings; ns-2 keeps the rate at which a packet's service began, which is an artefact",
            _link(link),
        ),
        Choice(
            "least retransmission timer of table 2's sender",
            "nothing",
            "0.2 s",
            "the default of ns-2, with which the paper was simulated",
            _patient(profiles),
        ),
        Choice(
            "N_d of equation (4)",
            "drops, 'inferred from the profile'",
            "drops as measured in the run",
            "a profile has no drops",
        ),
        Choice(
            "epochs (6) and (7) where half a window exceeds the pipe",
            "nothing; they turn negative for the paper's own figures",
            "epoch A takes no time, epoch B begins at the half window",
            "the pipe is full from the start",
        ),
        Choice(
            "w(k) in (17) and (36)",
            "the sending window",
            "packets sent in step k, whole ones with a carry, not below zero; the sum in (36) has what was sent",
            "2.2 packets in flight could not hold 100 frames",
        ),
    )


def _rates(profiles: Sequence[Row]) -> str:
    told = []
    for label in SCHEDULERS.values():
        runs = of_scheduler(profiles, label)
        means = ", ".join(f"{mean_of(runs, f'{terminal}.mean_packets_s').mean:.0f}" for terminal in TERMINALS)
        told.append(f"{label} {means}")
    return "; ".join(told)


def _patient(profiles: Sequence[Row]) -> str:
    told = []
    for which, words in (("", "0.2 s"), ("patient_", "1 s (RFC 6298)")):
        for label, terminal in (("MCI", "UE1"), ("FCDS", "UE3")):
            runs = of_scheduler(profiles, label)
            by_padhye, by_model = (
                mean_interval(errors(runs, terminal, name, which)).mean for name in ("padhye", "model")
            )
            timeouts = mean_of(runs, f"{terminal}.{which}timeouts").mean
            told.append(
                f"{words}, {terminal} {label}: Padhye off by {100 * by_padhye:.1f} %, the model by "
                f"{100 * by_model:.1f} %, "
                f"{timeouts:.1f} timeouts"
            )
    return "; ".join(told)


def _timers(adapted: Sequence[Row]) -> str:
    told = []
    for (variant,), rows in grouped(adapted, "variant").items():
        sums = []
        for label in SCHEDULERS.values():
            runs = of_scheduler(chosen(rows, variant=variant), label)
            total = sum(mean_of(runs, f"{terminal}.kbit_s").mean for terminal in TERMINALS)
            sums.append(f"{label} {total:.0f}")
        told.append(f"{variant}: {', '.join(sums)} kbit/s of all four terminals")
    return "; ".join(told)


def _link(rows: Sequence[Row]) -> str:
    told = []
    for (variant,), part in grouped(rows, "variant").items():
        values = ", ".join(f"{mean_of(group, 'utilisation').mean:.3f}" for group in grouped(part, PERIOD).values())
        told.append(f"{variant} {values}")
    periods = ", ".join(f"{period:g}" for (period,) in grouped(rows, PERIOD))
    return f"I-TCP at {periods} s: {'; '.join(told)}"
