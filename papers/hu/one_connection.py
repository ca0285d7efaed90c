"""Statements on connections without a proxy under other values of what Hu leaves open: file, windows, loss, MaxDAT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from papers.experiment import Experiment, sweep
from papers.hu.measuring import measure_files
from papers.hu.quantities import file_size, initial_window, internet_loss, max_dat, pipe_use, recovery
from papers.hu.reading import Files
from papers.hu.settings import BASE, BLOCK_ERRORS, LOSS, RATE, SENDINGS, SIZE
from papers.search.space import Results

_FILES, _WINDOWS, _LOSSES, _MAX_DAT = (f"hu-search-{name}" for name in ("files", "windows", "losses", "max-dat"))
_KB = 1000
#: Initial windows of the server, block errors and sendings of a PDU.
_SERVER_WINDOWS = (1, 3, 5, 10)
_ERRORS = (0.05, 0.1, 0.15)
_MOST_SENDINGS = (2, 4, 6, 8, 11, 31)


def one_connection_experiments(
    first_table: Mapping[int, Mapping[str, Any]], comparison: Mapping[str, Any], repeats: int, seed: int
) -> Sequence[Experiment]:
    """Campaigns without a proxy.

    `first_table` has values over the scenario for files of 50 and 200 kB with the first table, by size in kB;
    `comparison` those for 50 kB with the table of the comparison.
    """

    def campaign(name: str, variants: Mapping[str, Any], grid: Mapping[str, Sequence[Any]]) -> Experiment:
        return Experiment(sweep(name, [BASE], grid=grid, variants=variants, repeats=repeats, seed=seed), measure_files)

    windows = {
        f"window {window}": {**first_table[50], "server.initial_window_segments": window} for window in _SERVER_WINDOWS
    }
    losses = {f"{loss:g}": {**comparison, LOSS: loss} for loss in (0.0, 0.01)}
    return (
        *(
            campaign(f"{_FILES}-{size}", {"regular": values}, {RATE: (64_000, 256_000, 384_000)})
            for size, values in first_table.items()
        ),
        campaign(_WINDOWS, windows, {RATE: (64_000, 128_000, 256_000)}),
        campaign(_LOSSES, losses, {RATE: (64_000, 384_000)}),
        campaign(
            _MAX_DAT,
            {"regular": first_table[200]},
            {RATE: (256_000,), BLOCK_ERRORS: _ERRORS, SENDINGS: _MOST_SENDINGS},
        ),
    )


def one_connection_quantities(results: Results) -> dict[str, Any]:
    """What the statements on these campaigns compare; none of campaigns that did not run."""
    if _MAX_DAT not in results:
        return {}
    import pandas as pd

    sizes = {int(name.rpartition("-")[2]): one.runs for name, one in results.items() if name.startswith(f"{_FILES}-")}
    files = Files(pd.concat([runs.assign(**{SIZE: size * _KB}) for size, runs in sizes.items()], ignore_index=True))
    windows, losses = (Files(results[name].runs.assign(**{SIZE: 50 * _KB})) for name in (_WINDOWS, _LOSSES))
    sendings = Files(results[_MAX_DAT].runs)
    return {
        **file_size(files),
        **pipe_use(files),
        **initial_window(windows),
        **internet_loss(losses),
        **max_dat(sendings),
        **recovery(sendings),
    }
