"""The simulated cell that the experiment `gain` points to."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from prober.measurement.simulated_gain import FURTHEST, nearest_simulated_gain

TABLE = Path(__file__).parents[3] / "docs" / "models" / "split_gain.csv"
#: The controls that servers have; the campaign has others.
SERVERS = ("cubic", "bbr")


def rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["box"] == "cubic" and row["server_control"] in SERVERS]


def test_every_cell_is_nearest_to_itself_and_the_published_one() -> None:
    table = rows()
    assert len(table) == 40
    for row in table:
        found = nearest_simulated_gain(float(row["size_bytes"]), float(row["end_to_end_s"]))
        assert found is not None
        assert found.size_bytes == int(row["size_bytes"])
        # Servers whose times tie have one cell.
        assert found.end_to_end_s == pytest.approx(float(row["end_to_end_s"]), rel=1e-3)
        ties = [other for other in table if other["end_to_end_s"] == row["end_to_end_s"]]
        assert any(found.gain == pytest.approx(float(other["gain"]), abs=1e-4) for other in ties)
        assert found.gain_low <= found.gain <= found.gain_high


def test_the_sentence_names_the_cell_and_its_interval() -> None:
    row = next(row for row in rows() if (row["access"], row["size_bytes"]) == ("satellite", "1000000"))
    found = nearest_simulated_gain(1.1e6, 1.05 * float(row["end_to_end_s"]))
    assert found is not None
    assert found.reading.startswith("In the nearest simulated cell (1 MB over a satellite in ")
    assert "at the server, CUBIC at the box) a split gains " in found.reading


def test_what_is_far_from_every_cell_has_none() -> None:
    assert nearest_simulated_gain(1_000, 0.1) is None
    slowest = max(float(row["end_to_end_s"]) for row in rows())
    assert nearest_simulated_gain(1e8, slowest * FURTHEST * 1.01) is None
    assert nearest_simulated_gain(1e8, slowest * FURTHEST * 0.99) is not None
