"""Scenarios that run in milliseconds."""

from __future__ import annotations

from pathlib import Path

import pytest

SMALL = """
name = "small"
duration_s = 30.0
seed = 3

[[path]]
kind = "wired"
name = "core"
down = { rate_bit_s = 10_000_000, delay_s = 0.01 }

[[path]]
kind = "wired"
name = "radio"
[path.down]
rate_bit_s = 1_000_000
delay_s = 0.03
queue_packets = 20
loss = { kind = "independent", probability = 0.01 }

[[traffic]]
kind = "download"
bytes = 60_000
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A scenario file: 60 kB over 1 Mbit/s with 1 % loss."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path
