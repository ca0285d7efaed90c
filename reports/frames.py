"""Verdicts as pandas frames and as CSV or Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pepscope.results import Kind, PairResult
from reports.errors import ReportError, cannot_write

if TYPE_CHECKING:
    import pandas as pd

    from pepscope.results import DetectionResult


def pairs_frame(result: DetectionResult) -> pd.DataFrame:
    """One row a connection, in the order of `result.pairs`; the index is named `pair`.

    `client_a`/`server_a`/`capture_a` are the connection as the first vantage shows it, `_b` the second (missing where
    there is only one); probabilities lie in [0, 1]; `duration_s` is in seconds.
    """
    import pandas as pd

    pairs = result.pairs
    seconds = [pair.vantages[1] if len(pair.vantages) > 1 else None for pair in pairs]
    columns = {
        "capture_a": [pair.vantages[0].capture for pair in pairs],
        "client_a": [pair.vantages[0].client for pair in pairs],
        "server_a": [pair.vantages[0].server for pair in pairs],
        "capture_b": [vantage.capture if vantage else None for vantage in seconds],
        "client_b": [vantage.client if vantage else None for vantage in seconds],
        "server_b": [vantage.server if vantage else None for vantage in seconds],
        "verdict": [pair.verdict.value for pair in pairs],
        "probability_regular": _probabilities(pairs, Kind.REGULAR),
        "probability_split_tcp": _probabilities(pairs, Kind.SPLIT_TCP),
        "probability_tcp_proxy": _probabilities(pairs, Kind.TCP_PROXY),
        "packets": [pair.packets for pair in pairs],
        "payload_bytes_up": [pair.payload_bytes_up for pair in pairs],
        "payload_bytes_down": [pair.payload_bytes_down for pair in pairs],
        "duration_s": [pair.duration_s for pair in pairs],
        "reason": [pair.reason for pair in pairs],
    }
    frame = pd.DataFrame(columns)
    frame.index.name = "pair"
    return frame


def evidence_frame(result: DetectionResult) -> pd.DataFrame:
    """One row a piece of evidence; `pair` is the row of `pairs_frame` that it belongs to.

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
    """Write `pairs_frame` as CSV to a stream or a file; next to a file goes `evidence_frame` (see `evidence_path`)."""
    if not isinstance(destination, (str, Path)):
        pairs_frame(result).to_csv(destination)
        return
    try:
        pairs_frame(result).to_csv(destination)
        evidence_frame(result).to_csv(evidence_path(destination), index=False)
    except OSError as error:
        raise cannot_write(destination, error) from error


def write_parquet(result: DetectionResult, path: str | Path) -> None:
    """Write `pairs_frame` to `path` and `evidence_frame` next to it, as Parquet; needs pyarrow."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ReportError(
            "Parquet output needs the package pyarrow, which is not installed: run 'pip install pyarrow' or use --csv."
        ) from error
    try:
        pairs_frame(result).to_parquet(path)
        evidence_frame(result).to_parquet(evidence_path(path), index=False)
    except OSError as error:
        raise cannot_write(path, error) from error


def _probabilities(pairs: Sequence[PairResult], kind: Kind) -> list[float]:
    return [float(pair.probability.get(kind, 0.0)) for pair in pairs]
