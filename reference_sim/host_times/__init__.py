"""How long a machine and its programs take, measured in captures that were made at the machine itself."""

from __future__ import annotations

from reference_sim.host_times.acts import End, captured_end
from reference_sim.host_times.measured import Measured, measure_host_times

__all__ = ["End", "Measured", "captured_end", "measure_host_times"]
