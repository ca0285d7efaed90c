"""Tables and figures."""

from __future__ import annotations

from collections.abc import Sequence

from papers.jersey import experiments as runs_of
from papers.jersey.gains import NAMES, gain_of_jersey
from papers.results import Table
from papers.statements.grouping import Row, chosen, grouped, mean_of
from pepscope.results.charts import Chart, Line


def goodput_table(rows: Sequence[Row]) -> Table:
    """Figs 5 and 6 as a table."""
    import pandas as pd

    entries = []
    for (load, variant), part in grouped(rows, runs_of.SPEECH, "variant").items():
        rate = mean_of(part, "goodput_kbit_s")
        same_load = [row for row in rows if row[runs_of.SPEECH] == load]
        ahead = gain_of_jersey(same_load, variant) if variant != "jersey" else None
        sent = sum(row["data_segments_sent"] for row in part)
        entries.append(
            {
                "speech_terminals": load,
                "sender": NAMES[variant],
                "goodput_kbit_s": rate.mean,
                "half_width_kbit_s": rate.half_width,
                "gain_of_jersey_percent": ahead.mean if ahead else None,
                "gain_half_width_percent": ahead.half_width if ahead else None,
                "mean_delay_s": mean_of(part, "mean_delay_s").mean,
                "retransmitted_percent": 100.0 * sum(row["retransmitted_segments"] for row in part) / sent,
                "timeouts": mean_of(part, "timeouts").mean,
            }
        )
    return Table(
        "goodput",
        "Average TCP goodput (figs. 5 and 6)",
        pd.DataFrame(entries),
        "Drops differ far more than senders do: gains are ratios of means over the same drops. The text has no "
        "values of the published figures. Delay is one way, down; timeouts are those of 120 s.",
    )


def gain_chart(rows: Sequence[Row]) -> Chart:
    """Gains by load."""
    by_load = grouped(rows, runs_of.SPEECH)
    loads = [float(load) for (load,) in by_load]
    lines = _gain_lines(loads, list(by_load.values()), [name for name in NAMES if name != "jersey"])
    return Chart(
        "gain-of-jersey",
        "What Jersey gains in average goodput",
        "speech terminals a cell",
        "gain in goodput (%)",
        lines,
        "Ratio of the means over the same drops, with 95 % intervals.",
    )


def _gain_lines(at: list[float], parts: Sequence[Sequence[Row]], senders: Sequence[str]) -> tuple[Line, ...]:
    """What Jersey gains on each sender, over the places `at`, of which `parts` holds the runs."""
    lines = []
    for name in senders:
        gains = [gain_of_jersey(part, name) for part in parts]
        lines.append(Line(f"over {NAMES[name]}", at, [one.mean for one in gains], [one.half_width for one in gains]))
    return tuple(lines)


def errors_table(rows: Sequence[Row]) -> Table:
    """Senders by rate of link errors."""
    import pandas as pd

    entries = []
    for (loss, variant), part in grouped(rows, runs_of.LOSS, "variant").items():
        rate = mean_of(part, "goodput_kbit_s")
        entries.append(
            {
                "link_errors_percent": 100.0 * loss,
                "sender": NAMES[variant],
                "goodput_kbit_s": rate.mean,
                "half_width_kbit_s": rate.half_width,
                "judged_link_errors": mean_of(part, "corruption_retransmits").mean,
                "judged_congestion": mean_of(part, "fast_retransmits").mean,
                "timeouts": mean_of(part, "timeouts").mean,
            }
        )
    caption = "9 speech terminals; packets lost at random without retransmission below TCP. Counts are those of 120 s."
    return Table("link-errors", "Link errors that no lower layer hides", pd.DataFrame(entries), caption)


def errors_chart(rows: Sequence[Row]) -> Chart:
    """Gains by rate of link errors."""
    by_loss = grouped(rows, runs_of.LOSS)
    percent = [100.0 * loss for (loss,) in by_loss]
    lines = _gain_lines(percent, list(by_loss.values()), ("new-reno", "sack"))
    return Chart(
        "link-errors",
        "Jersey's gain where link errors are not hidden",
        "packets lost by link errors (%)",
        "gain in goodput (%)",
        lines,
        "9 speech terminals; ratio of the means over the same drops, with 95 % intervals.",
    )


def fairness_table(rows: Sequence[Row]) -> Table:
    """Shares of a bottleneck."""
    import pandas as pd

    entries = []
    for (variant, threshold, loss), part in grouped(rows, "variant", runs_of.THRESHOLD, runs_of.LOSS_BEHIND).items():
        share = mean_of(part, "first_share")
        entries.append(
            {
                "flows": variant,
                "warning_threshold_packets": threshold,
                "link_errors_percent": 100.0 * loss,
                "share_of_first": share.mean,
                "half_width": share.half_width,
                "second_mbit_s": mean_of(part, "second_mbit_s").mean,
                "fairness_index": mean_of(part, "fairness_index").mean,
                "total_mbit_s": mean_of(part, "total_mbit_s").mean,
            }
        )
    caption = (
        "10 Mbit/s, 100 ms, a buffer of 83 packets (one bandwidth-delay product); the second flow comes 0.2 to 4.7 s "
        "after the first. The index is Jain's: 1 for equal shares, 0.5 for everything to one of two."
    )
    return Table("fairness", "Shares of one bottleneck", pd.DataFrame(entries), caption)


def fairness_chart(rows: Sequence[Row]) -> Chart:
    """Jersey's share by rate of link errors."""
    lines = []
    both = chosen(rows, variant="jersey and new-reno")
    for (threshold,), group in grouped(both, runs_of.THRESHOLD).items():
        by_loss = {loss: mean_of(part, "first_share") for (loss,), part in grouped(group, runs_of.LOSS_BEHIND).items()}
        percent = [100.0 * loss for loss in by_loss]
        means, widths = [share.mean for share in by_loss.values()], [share.half_width for share in by_loss.values()]
        lines.append(Line(f"warning above {threshold} of 83 packets", percent, means, widths))
    return Chart(
        "fairness",
        "Jersey beside NewReno on one bottleneck",
        "packets lost by link errors (%)",
        "Jersey's share",
        tuple(lines),
        "0.5 is an equal share.",
    )


def warning_table(rows: Sequence[Row]) -> Table:
    """The congestion warning's threshold and averaging."""
    import pandas as pd

    entries = []
    for (variant,), part in grouped(rows, "variant").items():
        wrong = round(sum(row["corruption_retransmits"] for row in part))
        entries.append(
            {
                "warning": variant,
                "goodput_kbit_s": mean_of(part, "goodput_kbit_s").mean,
                "misjudged": wrong,
                "losses_judged": wrong + round(sum(row["fast_retransmits"] for row in part)),
                "timeouts": mean_of(part, "timeouts").mean,
                "mean_delay_s": mean_of(part, "mean_delay_s").mean,
            }
        )
    caption = "9 speech terminals, a queue of 50 packets, no link errors: each loss judged as one is misjudged."
    return Table("warning", "Threshold and averaging of the congestion warning", pd.DataFrame(entries), caption)


def open_parameters_table(rows: Sequence[Row]) -> Table:
    """Gains by parameters that the paper does not give."""
    import pandas as pd

    entries = []
    for name in runs_of.OPEN_VALUES:
        entry: dict[str, object] = {"choice": name}
        entry["jersey_kbit_s"] = mean_of(chosen(rows, variant=f"jersey, {name}"), "goodput_kbit_s").mean
        for base in ("new-reno", "sack"):
            ahead = gain_of_jersey(rows, f"{base}, {name}", instead=f"jersey, {name}")
            entry[f"gain_over_{base}_percent"] = ahead.mean
            entry[f"{base}_half_width_percent"] = ahead.half_width
        entries.append(entry)
    caption = "9 speech terminals; gains of Jersey over the same drops."
    return Table("silences", "What the paper leaves open", pd.DataFrame(entries), caption)
