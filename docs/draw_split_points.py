"""Draw docs/figures/split-point-buffer.svg: what a split point holds, read as it empties and read from half on.

Run by `make docs`.
"""

from __future__ import annotations

from pathlib import Path

from pepscope.results.charts import Chart, Line
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate
from reports.figures.svg_chart import chart_svg

FIGURE = Path(__file__).parent / "figures" / "split-point-buffer.svg"
BUFFER_BYTES, SENDING_BYTES = 262_144, 32_768
FROM_S, UNTIL_S = 2.0, 3.0


def course(name: str, resume_share: float) -> Line:
    """What waits in the buffer down, in kB, over a second of a download of 8 Mbit/s."""
    run = simulate(
        Scenario.from_mapping(
            {
                "name": "split-point-buffer",
                "duration_s": UNTIL_S,
                "server": {"host": "linux"},
                "mobile": {"host": "linux"},
                "path": [
                    {"kind": "wired", "down": {"rate_bit_s": 50_000_000, "delay_s": 0.01}},
                    {
                        "kind": "split-proxy",
                        "name": "box",
                        "buffer_bytes": BUFFER_BYTES,
                        "resume_share": resume_share,
                        "server_leg": {"host": "linux", "receive_buffer_bytes": 131_072},
                        "mobile_leg": {"host": "linux", "send_buffer_bytes": SENDING_BYTES},
                    },
                    {"kind": "wired", "down": {"rate_bit_s": 8_000_000, "delay_s": 0.005, "queue_packets": 100}},
                ],
                "traffic": [{"kind": "download", "duration_s": UNTIL_S}],
                "record": {"series_interval_s": 0.005},
            }
        )
    )
    series = run.series
    [held] = [one for one in series.quantities if (one.place, one.name) == ("box", "held_down_bytes")]
    chosen = series.time_s >= FROM_S
    return Line(name, series.time_s[chosen].tolist(), (held.values[chosen] / 1e3).tolist(), is_dense=True)


def chart() -> Chart:
    """Both courses."""
    return Chart(
        "split-point-buffer",
        "What a split point holds of a download",
        "time in s",
        "bytes in its buffer, in kB",
        (course("read as it empties", 1.0), course("read again once half is empty", 0.5)),
    )


if __name__ == "__main__":
    FIGURE.write_text(chart_svg(chart()) + "\n", encoding="utf-8")
    print(f"docs/figures/{FIGURE.name}")
