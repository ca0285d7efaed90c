"""Verdicts as pandas frames and as CSV or Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from reports.errors import ReportError, cannot_write

if TYPE_CHECKING:
    import pandas as pd

    from pepscope.results import DetectionResult


def evidence_frame(result: DetectionResult) -> pd.DataFrame:
    """One row a piece of evidence; `pair` is the row of `result.to_frame()` that it belongs to.

    `numbers` is the JSON text of the figures behind it, `caveats` the caveats joined by `; `.
    """
    import json

    import pandas as pd

    items = [(index, item) for index, pair in enumerate(result.pairs) for item in pair.evidence]
    return pd.DataFrame(
        {
            "pair": [index for index, _ in items],
            "method": [item.method for _, item in items],
            "outcome": [item.outcome.value for _, item in items],
            "finding": [item.finding for _, item in items],
            "strength": [item.strength for _, item in items],
            "summary": [item.summary for _, item in items],
            "numbers": [json.dumps(dict(item.numbers)) for _, item in items],
            "caveats": ["; ".join(item.caveats) for _, item in items],
        }
    )


def evidence_path(path: str | Path) -> Path:
    """Where the evidence goes that belongs to the table at `path`: `verdicts.csv` gets `verdicts.evidence.csv`."""
    target = Path(path)
    return target.with_name(f"{target.stem}.evidence{target.suffix}")


def write_csv(result: DetectionResult, destination: str | Path | TextIO) -> None:
    """Write `to_frame()` as CSV to a stream or a file; next to a file goes `evidence_frame` (see `evidence_path`)."""
    if not isinstance(destination, (str, Path)):
        result.to_frame().to_csv(destination)
        return
    try:
        result.to_frame().to_csv(destination)
        evidence_frame(result).to_csv(evidence_path(destination), index=False)
    except OSError as error:
        raise cannot_write(destination, error) from error


def write_parquet(result: DetectionResult, path: str | Path) -> None:
    """Write `to_frame()` to `path` and `evidence_frame` next to it, as Parquet; needs pyarrow."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ReportError(
            "Parquet output needs the package pyarrow, which is not installed: run 'pip install pyarrow' or use --csv."
        ) from error
    try:
        result.to_frame().to_parquet(path)
        evidence_frame(result).to_parquet(evidence_path(path), index=False)
    except OSError as error:
        raise cannot_write(path, error) from error
