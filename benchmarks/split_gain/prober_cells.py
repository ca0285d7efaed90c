"""The cells that the prober's experiment `gain` points to, as a small file of its package."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.split_gain.gains import ObjectRow

CELLS = Path(__file__).parent.parent.parent / "prober" / "assets" / "split_gain.json"

#: The prober does not know the split point's control: CUBIC, which most kernels begin with.
_BOX = "cubic"
#: Where times tie, the first one is taken: the most usual control of servers.
_SERVERS = ("cubic", "bbr")


def write_prober_cells(rows: Sequence[ObjectRow], path: Path = CELLS) -> None:
    """One cell a line."""
    cells = [
        {
            "access": row.access,
            "size_bytes": row.size_bytes,
            "server_control": row.server_control,
            "box_control": row.box,
            "end_to_end_s": round(row.end_to_end_s, 5),
            "gain": round(row.gain, 5),
            "gain_low": round(row.gain_low, 5),
            "gain_high": round(row.gain_high, 5),
        }
        for server in _SERVERS
        for row in rows
        if (row.server_control, row.box) == (server, _BOX)
    ]
    lines = ",\n".join(json.dumps(cell) for cell in cells)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
