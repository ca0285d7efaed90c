"""Columns of senders and load responses made by hand: what is not given was not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from pepscope.captures.senders import LoadResponses, Senders

_COUNTED = {"later_packets", "ticked_packets", "samples", "times_shut", "shut_ns", "train_bytes", "train_spread_ns"}


def senders(connections: int, far: int, **columns: Any) -> Senders:
    """With these columns of the far sender of each connection."""
    made = _columns(Senders, connections, far, columns)
    kinds = np.zeros((2 * connections, 16), np.uint8)
    for row, given in enumerate(columns.get("option_kinds", ())):
        kinds[2 * row + far, : len(given)] = given
    return Senders(**{**made, "option_kinds": kinds})


def load_responses(connections: int, near: int, **columns: Any) -> LoadResponses:
    """With these columns of the near sender's data of each connection."""
    return LoadResponses(**_columns(LoadResponses, connections, near, columns))


def _columns(kind: type[Any], connections: int, side: int, columns: dict[str, Any]) -> dict[str, Any]:
    rows = np.arange(2 * connections)
    made: dict[str, Any] = {"connection": rows // 2, "sent": rows % 2}
    for name in kind.__struct_fields__:
        if name in made or name == "option_kinds":
            continue
        is_float = name == "rank_correlation"
        absent = np.nan if is_float else 0 if name in _COUNTED else -1
        column = np.full(2 * connections, absent, np.float64 if is_float else np.int64)
        if name in columns:
            column[side::2] = columns[name]
        made[name] = column
    return made
