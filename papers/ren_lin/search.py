"""What Ren and Lin leave open of their cell (tables 2 and 3) and of the link of figs 11 and 12, as inverse problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from papers.experiment import Experiment, sweep
from papers.ren_lin import model_rows, scheme_rows, stability, starts, variation
from papers.ren_lin.experiments import UNSTABLE, laws
from papers.ren_lin.fast_links import DELAY_S, LONG_STEP_S, PERIOD, STEP_S, fast_link
from papers.ren_lin.links import SATURATED, SCHEDULER, SCHEDULERS, TERMINALS
from papers.ren_lin.measuring import (
    SCHEMES,
    measure_stability,
    measure_tables,
    measure_tables_patiently,
    measure_terminals,
    measure_utilisation,
)
from papers.search.space import OpenParameter, Results, Search, Settings
from papers.statements.grouping import Row, rows_of
from reference_sim.sweep import Campaign

STATEMENTS = Path(__file__).with_name("statements.toml")

PATH_LOSS, INTERFERENCE, SHADOWING = "path loss at 1 km, dB", "interference at a terminal, dBm", "shadowing, dB"
QUEUE, LEAST_TIMER = "queue behind the profiles", "least retransmission timer, s"
UPLINK, PLACE = "uplink of a terminal, kbit/s", "where table 3 was run"
DRIVEN, IN_THE_CELL = "driven links", "the cell"
#: Of the cell behind table 3.
CELL_S = 150.0
IN_CELL = "ren-lin-search-cell"
_STARTS = "ren-lin-search-starts"
LONG_QUEUE, SHORT_QUEUE = "2000 packets", "200 frames"

CELL_PARAMETERS = (
    OpenParameter(
        PATH_LOSS,
        128.1,
        (133.0, 137.4),
        "nothing; 128.1 of TR 25.896 and 137.4 of EURANE's default are both for 2 GHz",
        range=(125.0, 142.0),
    ),
    OpenParameter(
        INTERFERENCE, -70.0, (-80.0, -60.0), "'6', which is no dBm at a terminal; EURANE has -70", range=(-95.0, -55.0)
    ),
    OpenParameter(SHADOWING, 8.0, (0.0, 4.0), "nothing"),
    OpenParameter(QUEUE, LONG_QUEUE, (SHORT_QUEUE,), "packets forwarded a second; section 5.1 has 200 frames"),
    OpenParameter(
        UPLINK,
        64.0,
        (44.0, 128.0),
        "nothing; 140 acknowledgements a second, UE1's share under RR and MCI, are 45 kbit/s",
        range=(32.0, 384.0),
        is_logarithmic=True,
    ),
    OpenParameter(LEAST_TIMER, 0.2, (1.0,), "nothing; ns-2 has 0.2 s, RFC 6298 1 s"),
    OpenParameter(PLACE, DRIVEN, (IN_THE_CELL,), "'referring to fig. 1a', with rows named after the profiles"),
)


def cell_experiments(settings: Settings, repeats: int, seed: int) -> Sequence[Experiment]:
    """The cell whose profiles drive the links of tables 2 and 3."""
    radio, values = _cell(settings)
    is_patient = settings[LEAST_TIMER] == 1.0
    profiles = _of_cell("ren-lin-search-profiles", ["ren-lin-hsdpa-tcp"], values, repeats, seed)
    found = [Experiment(profiles, measure_tables_patiently if is_patient else measure_tables)]
    if settings[PLACE] == IN_THE_CELL:
        short = {**radio, "duration_s": CELL_S, "traffic[0].duration_s": CELL_S}
        campaign = _of_cell(IN_CELL, list(scheme_rows.SCENARIOS.values()), short, repeats, seed)
        found.append(Experiment(campaign, measure_terminals))
    return found


def further_cell_experiments(settings: Settings, repeats: int, seed: int) -> Sequence[Experiment]:
    """Starts within the first second, over the links that the cell's profiles drive."""
    _, values = _cell(settings)
    return (Experiment(_of_cell(_STARTS, ["ren-lin-hsdpa-tcp"], values, repeats, seed), starts.measure_starts),)


def _of_cell(name: str, scenarios: Sequence[str], values: Mapping[str, Any], repeats: int, seed: int) -> Campaign:
    schedulers = {SCHEDULER: tuple(SCHEDULERS)}
    return sweep(name, scenarios, grid=schedulers, variants={"": values}, repeats=repeats, seed=seed)


def _cell(settings: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """Values of the radio, and of a saturated cell with them."""
    radio: dict[str, Any] = {
        "path[3].radio": {
            "kind": "single-cell",
            "path_loss_intercept_db": float(settings[PATH_LOSS]),
            "inter_cell_interference_dbm": float(settings[INTERFERENCE]),
            "shadowing_deviation_db": float(settings[SHADOWING]),
        },
        "path[3].uplink.rate_bit_s": round(1000.0 * float(settings[UPLINK])),
    }
    values = {**SATURATED, **radio}
    if settings[QUEUE] == SHORT_QUEUE:
        values |= {"path[3].queue_packets": None, "path[3].queue_frames": 200}
    return radio, values


def cell_quantities(_settings: Settings, results: Results) -> dict[str, Any]:
    """Tables 2 and 3, with what the paper concludes from them; nothing of a cell that does not serve every terminal."""
    rows = rows_of(results["ren-lin-search-profiles"].runs)
    if not _serves_all(rows):
        return {}
    driven = scheme_rows.driven_rows(rows)
    if IN_CELL in results:
        driven = scheme_rows.rows_in_cell(rows_of(results[IN_CELL].runs))
    deviations = starts.quantities(rows_of(results[_STARTS].runs)) if _STARTS in results else {}
    return {
        **model_rows.quantities(rows),
        **scheme_rows.driven_quantities(driven),
        **scheme_rows.jitter(rows),
        **deviations,
    }


def _serves_all(rows: Sequence[Row]) -> bool:
    """Whether in each run each terminal carried something by each scheme, and both models say what."""
    names = [
        f"{terminal}.{measure}"
        for terminal in TERMINALS
        for measure in (
            "actual_packets_s",
            "padhye_packets_s",
            "model_packets_s",
            *(f"{scheme}_{what}" for scheme in SCHEMES for what in ("kbit_s", "jitter_ms")),
        )
    ]
    values = [row.get(name) for row in rows for name in names]
    return all(value is not None and value > 0.0 for value in values)


CELL = Search(
    name="ren-lin-cell",
    title="The cell behind tables 2 and 3",
    statements=STATEMENTS,
    parameters=CELL_PARAMETERS,
    leads={
        "137.4 dB, -80 dBm, 200 frames": {PATH_LOSS: 137.4, INTERFERENCE: -80.0, QUEUE: SHORT_QUEUE},
        "140 acknowledgements a second": {UPLINK: 44.0, QUEUE: SHORT_QUEUE},
    },
    experiments=cell_experiments,
    quantities=cell_quantities,
    repeats=(2, 3, 5),
    sensitivity_repeats=4,
    further_experiments=further_cell_experiments,
)

RATE, AMPLITUDE, BUFFER = "mean rate, packets/s", "change of the rate", "buffer, packets"
SERVICE, STEP, MORE_DELAY = "service", "Ts, s", "more one-way delay, s"
LINK_TIMER = "least retransmission timer, s"
EXACT, FROZEN = "exact", "frozen"
_PACKET_BITS = 4000
_LAWS = "ren-lin-search-laws"
#: From the proxy to the Node-B in section 5.1.
_LAWS_DELAY_S = 0.025
#: Of fig. 11, and that of fig. 12; three are slow ones.
PERIODS_S = (0.02, 0.04, 0.1, 0.2, 0.4, 1.0, 4.0, 6.0, 8.0)
#: Seconds of each run.
DURATION_S = 150.0

LINK_PARAMETERS = (
    OpenParameter(
        RATE,
        89.26,
        (200.0, 512.0),
        "nothing; section 5.1 has 89 packets/s, one terminal alone up to 512",
        range=(50.0, 600.0),
        is_logarithmic=True,
    ),
    OpenParameter(AMPLITUDE, 0.75, (0.5, 0.95), "nothing", range=(0.25, 1.0)),
    OpenParameter(BUFFER, 15, (7, 30, 60), "15 packets in section 3", range=(5, 100), is_logarithmic=True),
    OpenParameter(SERVICE, EXACT, (FROZEN,), "that of ns-2 freezes the rate at which a packet's service began"),
    OpenParameter(STEP, STEP_S, (LONG_STEP_S,), "25 ms in section 5.1; below half the shortest period in section 5.2"),
    OpenParameter(MORE_DELAY, 0.0, (0.05, 0.1), "20 ms from the proxy, nothing beyond", range=(0.0, 0.15)),
    OpenParameter(LINK_TIMER, 0.2, (1.0,), "nothing; ns-2 has 0.2 s, RFC 6298 1 s"),
)


def link_experiments(settings: Settings, repeats: int, seed: int) -> Sequence[Experiment]:
    """Three schemes over one link by period, and the law with steps of 25 ms."""
    rate_bit_s, amplitude = _PACKET_BITS * float(settings[RATE]), float(settings[AMPLITUDE])

    def link(scheme: str, step_s: float) -> dict[str, Any]:
        return {
            "duration_s": DURATION_S,
            "traffic[0].duration_s": DURATION_S,
            **fast_link(
                scheme,
                rates_bit_s=(round(rate_bit_s * (1.0 - amplitude)), round(rate_bit_s * (1.0 + amplitude))),
                buffer_packets=int(settings[BUFFER]),
                delay_s=DELAY_S + float(settings[MORE_DELAY]),
                service=str(settings[SERVICE]),
                least_timer_s=float(settings[LINK_TIMER]),
                step_s=step_s,
            ),
        }

    step_s = float(settings[STEP])
    schemes = {
        "tcp, all": link("tcp", step_s),
        "i-tcp, all": link("i-tcp", step_s),
        "adaptation, all": link("adaptation", step_s),
    }
    return (
        Experiment(
            sweep(
                "ren-lin-search-link",
                ["ren-lin-fast-link"],
                grid={PERIOD: PERIODS_S},
                variants=schemes,
                repeats=repeats,
                seed=seed,
            ),
            measure_utilisation,
        ),
        Experiment(
            sweep(
                "ren-lin-search-steps",
                ["ren-lin-fast-link"],
                grid={PERIOD: PERIODS_S[:1]},
                variants={"short": link("adaptation", STEP_S), "long": link("adaptation", LONG_STEP_S)},
                repeats=repeats,
                seed=seed,
            ),
            measure_utilisation,
        ),
    )


def further_link_experiments(settings: Settings, repeats: int, seed: int) -> Sequence[Experiment]:
    """The laws of figs 13 to 16, whose link differs by service and delay: the paper names its rates, buffer and Ts."""
    more = {
        "path[2].down.delay_s": _LAWS_DELAY_S + float(settings[MORE_DELAY]),
        "path[3].down.service": str(settings[SERVICE]),
    }
    return (Experiment(sweep(_LAWS, [UNSTABLE], variants=laws(more), repeats=repeats, seed=seed), measure_stability),)


def link_quantities(_settings: Settings, results: Results) -> dict[str, Any]:
    """Figs 11 and 12 under one setting, and what longer steps do."""
    rows = rows_of(results["ren-lin-search-link"].runs)
    steps = rows_of(results["ren-lin-search-steps"].runs)
    held = stability.quantities(rows_of(results[_LAWS].runs)) if _LAWS in results else {}
    return {**variation.quantities_of_one(rows, "all", steps), **held}


LINK = Search(
    name="ren-lin-link",
    title="The link of figs 11 and 12",
    statements=STATEMENTS,
    parameters=LINK_PARAMETERS,
    leads={
        "frozen service, 5-195 %": {SERVICE: FROZEN, AMPLITUDE: 0.95},
        "up to 3.6 Mbit/s": {RATE: 512.0},
        "100 ms one way": {MORE_DELAY: 0.08},
    },
    experiments=link_experiments,
    quantities=link_quantities,
    repeats=(2, 4, 6),
    sensitivity_repeats=3,
    further_experiments=further_link_experiments,
)
