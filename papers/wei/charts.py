"""Wei et al.'s figures, drawn from our runs."""

from __future__ import annotations

from collections.abc import Mapping

from papers.experiment import Measurements
from papers.published import published_table
from papers.wei.characteristics import Characteristics
from papers.wei.experiments import COASTS, SIZES
from papers.wei.reading import SLOW_START, CampaignRuns, table_runs
from pepscope.results.charts import Chart, Line
from reference_sim.models.split_gain import split_gain

_LINK = "A download of 2 MB at 128 kbit/s."


def charts(measurements: Measurements, drawn: Mapping[str, Characteristics]) -> tuple[Chart, ...]:
    """Table II as a figure, figure 3, choices, and the closed form."""
    return (_table(measurements), *_figure_3(drawn), _choices(measurements), _closed_form())


def _table(measurements: Measurements) -> Chart:
    campaign = table_runs(measurements)
    published = published_table("wei", "table2_split_gain")
    sizes = [size / 1e3 for size in SIZES]
    lines = []
    for coast in COASTS:
        gains = campaign.gains(coast)
        lines.append(Line(coast, sizes, [g.mean for g in gains.values()], [g.half_width for g in gains.values()]))
    for coast in COASTS:
        gains = campaign.gains(coast, SLOW_START)
        means, halves = ([getattr(gain, name) for gain in gains.values()] for name in ("mean", "half_width"))
        lines.append(Line(f"{coast}, slow start", sizes, means, halves))
    lines.extend(
        Line(f"{coast}, published", sizes, [float(v) for v in published[f"{coast}_gain_percent"]], is_published=True)
        for coast in COASTS
    )
    return Chart(
        "table2",
        "Gain of Split-TCP by file size (table II)",
        "file, kB",
        "gain over regular TCP, %",
        tuple(lines),
        "From the open connection to the last byte. Slow start: the split point begins with three segments downstream, "
        "not with r2 v.",
        is_x_logarithmic=True,
    )


def _figure_3(drawn: Mapping[str, Characteristics]) -> tuple[Chart, ...]:
    return (
        Chart(
            "sender",
            "Throughput of the sender (figure 3 a)",
            "time, s",
            "sent in a second, kbit/s",
            tuple(
                Line(kind, d.second_s.tolist(), (d.sender_bit_s / 1e3).clip(1.0).tolist(), is_dense=True)
                for kind, d in drawn.items()
            ),
            f"{_LINK} Seconds without a packet are drawn at 1 kbit/s.",
            is_y_logarithmic=True,
        ),
        Chart(
            "window",
            "Receive window at the sender (figure 3 b)",
            "time, s",
            "window, kB",
            tuple(
                Line(kind, d.window_s.tolist(), (d.window_bytes / 1e3).tolist(), is_dense=True)
                for kind, d in drawn.items()
            ),
            f"{_LINK} While the server has something to send.",
        ),
        Chart(
            "delay",
            "End-to-end delay (figure 3 c)",
            "packet, by the time it was sent",
            "from the server to the mobile, s",
            tuple(
                Line(kind, [float(number) for number in range(len(d.delay_s))], d.delay_s.tolist(), is_dense=True)
                for kind, d in drawn.items()
            ),
            f"{_LINK} Until all bytes of the packet had arrived.",
        ),
    )


def _choices(measurements: Measurements) -> Chart:
    campaign = CampaignRuns(measurements["wei-choices"].runs)
    sizes = [size / 1e3 for size in SIZES]
    return Chart(
        "choices",
        "The same under other choices, west coast",
        "file, kB",
        "gain over regular TCP, %",
        tuple(
            Line(str(variant), sizes, [gain.mean for gain in campaign.gains(str(variant)).values()])
            for variant in campaign.runs["variant"].unique()
        ),
        "One choice at a time; intervals are in the table.",
        is_x_logarithmic=True,
    )


def _closed_form() -> Chart:
    times_s = [0.01 * number for number in range(1, 31)]
    return Chart(
        "closed-form",
        "T_regular - T_split by the length of the wired leg (section IV-A)",
        "r1, ms",
        "time gained, s",
        (
            *(
                Line(
                    "with slow start downstream" if slow_start else "without slow start downstream",
                    [1e3 * r1 for r1 in times_s],
                    [split_gain(128e3, 1500.0, r1, 0.8, downstream_slow_start=slow_start).gain_s for r1 in times_s],
                    is_dense=True,
                )
                for slow_start in (False, True)
            ),
            Line("published", [30.0, 30.0], [2.5, 0.12], is_published=True, has_line=False),
        ),
        "v = 128 kbit/s, s = 1500 B, r2 = 0.8 s; not approximated.",
    )
