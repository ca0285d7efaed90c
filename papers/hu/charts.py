"""Hu's figures, drawn from our runs."""

from __future__ import annotations

from papers.experiment import Measurements
from papers.hu.model_check import model_frame
from papers.hu.reading import Files, gain_line
from papers.hu.settings import BLOCK_ERRORS, RATES_BIT_S, SENDINGS, SIZE
from pepscope.results.charts import Chart, Line

_THROUGHPUT = "RLC throughput, kbit/s"


def charts(measurements: Measurements) -> tuple[Chart, ...]:
    """Figures 6 and 7, those of the slides' four goals, block errors, and the model."""
    return (
        *_by_size(measurements),
        *_gains(measurements),
        _windows(measurements),
        _losses(measurements),
        _block_errors(measurements),
        _max_dat(measurements),
        _model(measurements),
    )


def _by_size(measurements: Measurements) -> tuple[Chart, ...]:
    files = Files(measurements["hu-file-size"].runs)
    wanted = [
        (f"{rate // 1000} kbit/s, {variant}", rate, variant)
        for rate in RATES_BIT_S
        for variant in ("regular", "split 3")
    ]
    caption = (
        "Second table of the slides; split: proxy with an initial window of 3. The published curves do not survive."
    )
    return (
        Chart(
            "file-size",
            "Throughput by file size (figure 6)",
            "file, kB",
            _THROUGHPUT,
            tuple(_in_kilobytes(files.line(name, SIZE, rate=rate, variant=variant)) for name, rate, variant in wanted),
            caption,
            is_x_logarithmic=True,
        ),
        Chart(
            "download-time",
            "Download time by file size",
            "file, kB",
            "time from request to last byte, s",
            tuple(
                _in_kilobytes(files.line(name, SIZE, "download_s", 1.0, rate=rate, variant=variant))
                for name, rate, variant in wanted
            ),
            caption,
            is_x_logarithmic=True,
            is_y_logarithmic=True,
        ),
    )


def _in_kilobytes(line: Line) -> Line:
    return Line(line.name, [x / 1e3 for x in line.x], line.y, line.half_width)


def _gains(measurements: Measurements) -> tuple[Chart, ...]:
    gain, files = Files(measurements["hu-gain"].runs), Files(measurements["hu-file-size"].runs)
    sizes = [float(size) for size in sorted(files.runs[SIZE].unique())]
    kilobits = [rate / 1e3 for rate in RATES_BIT_S]
    lines = [
        Line(f"window {window}, {size // 1000} kB", kilobits, line.y, line.half_width)
        for size in (50_000, 200_000)
        for window in (3, 10)
        for line in (gain_line("", gain, "rate", list(map(float, RATES_BIT_S)), f"split {window}", size=size),)
    ]
    return (
        Chart(
            "gain-by-rate",
            "Gain of the proxy by rate (figure 7)",
            "rate of the channel, kbit/s",
            "gain, %",
            (
                *lines,
                Line("published, window 3", [256.0], [33.0], is_published=True),
                Line("published, window 10", [256.0], [66.0], is_published=True),
            ),
            "Second table of the slides. The published numbers name no file.",
        ),
        Chart(
            "gain-by-size",
            "Gain of the proxy by file size",
            "file, kB",
            "gain, %",
            tuple(
                _in_kilobytes(gain_line(f"{rate // 1000} kbit/s", files, "size", sizes, "split 3", rate=rate))
                for rate in RATES_BIT_S
            ),
            "Second table of the slides, window 3. The gain is largest where the file is about what slow start sends.",
            is_x_logarithmic=True,
        ),
    )


def _windows(measurements: Measurements) -> Chart:
    files = Files(measurements["hu-initial-window"].runs)
    windows = (1, 2, 3, 5, 10)
    lines = []
    for rate in RATES_BIT_S:
        means = [files.mean(variant=f"window {window}", rate=rate, size=50_000) for window in windows]
        lines.append(
            Line(
                f"{rate // 1000} kbit/s",
                [float(window) for window in windows],
                [mean.mean / 1e3 for mean in means],
                [(mean.half_width or 0.0) / 1e3 for mean in means],
            )
        )
    return Chart(
        "initial-window",
        "Initial window of the server (goal 2)",
        "initial window, segments of 536 bytes",
        _THROUGHPUT,
        tuple(lines),
        "First table of the slides, files of 50 kB, no proxy.",
    )


def _losses(measurements: Measurements) -> Chart:
    files = Files(measurements["hu-internet-loss"].runs)
    losses = (0.0, 0.005, 0.01, 0.02, 0.05)
    lines = []
    for rate in (64_000, 384_000):
        for suffix, name in (("", "regular"), (", split 3", "split 3")):
            means = [files.mean(variant=f"{loss:g}{suffix}", rate=rate, size=50_000) for loss in losses]
            lines.append(
                Line(
                    f"{rate // 1000} kbit/s, {name}",
                    [100.0 * loss for loss in losses],
                    [mean.mean / 1e3 for mean in means],
                    [(mean.half_width or 0.0) / 1e3 for mean in means],
                )
            )
    return Chart(
        "internet-loss",
        "Loss in the Internet (goal 3)",
        "packets lost, %",
        _THROUGHPUT,
        tuple(lines),
        "Second table of the slides, files of 50 kB.",
    )


def _block_errors(measurements: Measurements) -> Chart:
    files = Files(measurements["hu-block-errors"].runs)
    return Chart(
        "block-errors",
        "Block errors on the radio link",
        "block error rate",
        _THROUGHPUT,
        tuple(
            files.line(f"{rate // 1000} kbit/s, {variant}", BLOCK_ERRORS, variant=variant, rate=rate)
            for rate in (64_000, 384_000)
            for variant in ("regular", "split 3", "split 10")
        ),
        "Second table of the slides, files of 50 kB, MaxDAT 10.",
    )


def _max_dat(measurements: Measurements) -> Chart:
    runs = Files(measurements["hu-max-dat"].runs)
    lines = []
    for errors in sorted(runs.runs[BLOCK_ERRORS].unique()):
        line = runs.only(BLOCK_ERRORS, errors).line(f"{errors:.0%}", SENDINGS)
        lines.append(Line(line.name, [x - 1.0 for x in line.x], line.y, line.half_width))
    return Chart(
        "max-dat",
        "MaxDAT by block error rate (goal 4)",
        "MaxDAT, retransmissions of a PDU",
        _THROUGHPUT,
        tuple(lines),
        "First table of the slides, 256 kbit/s, files of 200 kB. Points at which a transfer was given up are left out.",
        is_x_logarithmic=True,
    )


def _model(measurements: Measurements) -> Chart:
    frame = model_frame(measurements)
    largest = float(max(frame["simulated_kbit_s"].max(), frame["model_kbit_s"].max()))
    smallest = float(min(frame["simulated_kbit_s"].min(), frame["model_kbit_s"].min()))
    points = tuple(
        Line(
            str(name),
            part["simulated_kbit_s"].tolist(),
            part["model_kbit_s"].tolist(),
            has_line=False,
        )
        for name, part in frame.groupby("connection")
    )
    return Chart(
        "model",
        "Model of a split connection against the simulator",
        "simulated goodput, kbit/s",
        "modelled goodput, kbit/s",
        (*points, Line("equal", [smallest, largest], [smallest, largest], is_dense=True)),
        "Every combination of rate (64 kbit/s to 2 Mbit/s), loss on either half and buffer of the split point.",
        is_x_logarithmic=True,
        is_y_logarithmic=True,
    )
