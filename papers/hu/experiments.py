"""Hu's experiments as campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from papers.experiment import Effort, Experiment, sweep
from papers.hu.measuring import measure_files
from papers.hu.model_check import model_experiments
from papers.hu.settings import (
    BASE,
    BLOCK_ERRORS,
    FAR_RADIO,
    FIRST_TABLE,
    LOSS,
    RATE,
    RATES_BIT_S,
    SECOND_TABLE,
    SENDINGS,
    SIZE,
    WINDOWS,
    ftp,
    split,
)

#: File sizes of the comparison, and those of the curves of 0 to 1000 kB.
SIZES = (50_000, 100_000, 200_000)
CURVE_SIZES = (5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
#: Long enough for all files at the lowest rate: what is slow is no less part of a mean.
_PATIENCE = {"duration_s": 20_000.0}
LOSSES = (0.0, 0.005, 0.01, 0.02, 0.05)
BLOCK_ERROR_RATES = (0.0, 0.05, 0.1, 0.15)
MAX_DAT_ERRORS = (0.05, 0.1, 0.15, 0.3, 0.5)
MOST_SENDINGS = (2, 3, 4, 6, 8, 11, 16, 31)


def experiments(effort: Effort) -> Sequence[Experiment]:
    """All campaigns; with reduced effort, the sizes and rates that the statements need."""
    repeats = effort.of(3, 12, 100)
    few = effort.of(2, 8, 40)
    reduced = effort is Effort.REDUCED
    return (
        _experiment("gain", variants=_proxies(SECOND_TABLE, 1460), repeats=repeats, sizes=SIZES),
        _experiment("gain-first-table", variants=_first_table_proxies(), repeats=few, sizes=SIZES),
        _experiment(
            "file-size",
            variants={"regular": {}, "split 3": split(3), "split 10": split(10)},
            repeats=few,
            sizes=SIZES if reduced else CURVE_SIZES,
        ),
        _experiment(
            "file-size-first-table",
            variants={"regular": FIRST_TABLE},
            repeats=few,
            sizes=SIZES if reduced else CURVE_SIZES,
        ),
        _experiment("initial-window", variants=_server_windows(), repeats=few, sizes=SIZES),
        _experiment("internet-loss", variants=_losses(), repeats=few, sizes=(50_000, 200_000)),
        _experiment(
            "block-errors",
            variants={"regular": {}, "split 3": split(3), "split 10": split(10)},
            repeats=few,
            sizes=(50_000,),
            grid={BLOCK_ERRORS: BLOCK_ERROR_RATES},
        ),
        _experiment(
            "max-dat",
            variants={"regular": {**FIRST_TABLE, SIZE: 200_000}},
            repeats=few,
            rates=(256_000,),
            grid={BLOCK_ERRORS: (0.05, 0.1, 0.15) if reduced else MAX_DAT_ERRORS, SENDINGS: MOST_SENDINGS},
        ),
        _experiment("ftp", variants=_ftp(), repeats=few),
        _experiment("far-radio", variants=_far_radio(), repeats=effort.of(3, 60, 100), rates=(256_000,)),
        _experiment(
            "separate-choices", variants=_choices(), repeats=effort.of(2, 8, 40), rates=(256_000,), sizes=SIZES
        ),
        *model_experiments(effort),
    )


def _experiment(
    name: str,
    *,
    variants: dict[str, Any],
    repeats: int,
    rates: Sequence[int] = RATES_BIT_S,
    sizes: Sequence[int] = (),
    grid: dict[str, Sequence[Any]] | None = None,
) -> Experiment:
    variants = {label: {**_PATIENCE, **values} for label, values in variants.items()}
    points: dict[str, Sequence[Any]] = {RATE: rates, **(grid or {})}
    if sizes:
        points[SIZE] = sizes
    return Experiment(sweep(f"hu-{name}", [BASE], grid=points, variants=variants, repeats=repeats), measure_files)


def _proxies(values: Any, segment_bytes: int) -> dict[str, Any]:
    return {
        "regular": values,
        **{f"split {window}": {**values, **split(window, segment_bytes=segment_bytes)} for window in WINDOWS},
    }


def _first_table_proxies() -> dict[str, Any]:
    """Without Internet loss and with the 1 % of the second table: the first one names none."""
    lossy = {**FIRST_TABLE, LOSS: 0.01}
    return {
        **_proxies(FIRST_TABLE, 536),
        **{f"{name}, 1 % loss": values for name, values in _proxies(lossy, 536).items()},
    }


def _server_windows() -> dict[str, Any]:
    return {
        f"window {window}": {**FIRST_TABLE, "server.initial_window_segments": window} for window in (1, 2, 3, 5, 10)
    }


def _losses() -> dict[str, Any]:
    return {f"{loss:g}": {LOSS: loss} for loss in LOSSES} | {
        f"{loss:g}, split 3": {LOSS: loss, **split(3)} for loss in LOSSES
    }


def _ftp() -> dict[str, Any]:
    """A connection for each file, asked for at exponential intervals, beside pages on one connection."""
    return {
        f"{name}, {size // 1000} kB": {**ftp(size), **proxy}
        for size in (50_000, 200_000)
        for name, proxy in (("regular", {}), ("split 3", split(3)), ("split 10", split(10)))
    }


def _far_radio() -> dict[str, Any]:
    """The first table over a radio link with a round trip of 0.4 s, files of 50 kB, 0.1 % of Internet loss."""
    far = {**FIRST_TABLE, **FAR_RADIO, LOSS: 0.001, **ftp(50_000)}
    return {"regular": far, **{f"split {window}": {**far, **split(window, segment_bytes=536)} for window in (3, 10)}}


def _choices() -> dict[str, Any]:
    """One choice at a time over the second table, where its two tables differ or the paper gives no value."""
    changes: dict[str, dict[str, Any]] = {
        "as chosen": {},
        "server starts with 1": {"server.initial_window_segments": 1},
        "server starts with 10": {"server.initial_window_segments": 10},
        "100 ms": {"path[0].down.delay_s": 0.1, "path[0].up.delay_s": 0.1},
        "no Internet loss": {LOSS: 0.0},
        "windows kept over think time": {"server.restart_after_idle": False},
        "delayed acknowledgements": {"mobile.delayed_acknowledgement_segments": 2},
        "no rule for the last PDU": {"path[2].radio_link_control.unreported_is_lost_after_s": 0.0},
        "buffer 16 kB": {},
    }
    variants: dict[str, Any] = {}
    for name, values in changes.items():
        buffer_bytes = 16_384 if name == "buffer 16 kB" else 65_536
        variants[f"regular: {name}"] = values
        for window in (3, 10):
            proxy = split(window, buffer_bytes=buffer_bytes)
            if name == "windows kept over think time":
                proxy["path[1]"]["mobile_leg"]["restart_after_idle"] = False
            variants[f"split {window}: {name}"] = {**values, **proxy}
    return variants
