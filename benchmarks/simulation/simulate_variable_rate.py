"""Seed 003's Fig. 8 here, for timing: PERIOD_S DELAY_S SPLIT LONGEST_S SECONDS. Prints the bytes that the link sent.

LONGEST_S is what rates are made for, so that a run of no seconds has the same to prepare.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace

from benchmarks.simulation.variable_rate_run import Setup
from pepscope import _core


def main() -> None:
    period_s, delay_s, is_split, longest_s, seconds = (float(word) for word in sys.argv[1:])
    setup = Setup(period_s, delay_s, bool(is_split), seed=1, duration_s=longest_s)
    described = setup.scenario() | {"duration_s": seconds}
    described["traffic"] = replace(setup, duration_s=seconds).scenario()["traffic"]
    simulated = _core.simulate(json.dumps(described), None, None)
    print(json.loads(simulated.truth_json)["hops"][-1]["down"]["delivered_bytes"])


if __name__ == "__main__":
    main()
