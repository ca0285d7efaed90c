"""The receiver's times on the sender's clock: what the core computes is what the clock relation says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pepscope import _core
from pepscope.captures.packets import Int64Array
from pepscope.results.verdicts import FloatArray

TIMES = st.lists(st.integers(0, 4 * 10**18), min_size=1, max_size=20)
LINE = st.tuples(st.integers(0, 4 * 10**18), st.integers(0, 4 * 10**18), st.floats(-1e12, 1e12), st.floats(-5e-4, 5e-4))
Lines = list[tuple[int, int, float, float]]


def server_minus_client_ns(client_ns: Int64Array, lines: Lines) -> FloatArray:
    found = np.zeros(len(client_ns))
    for number, (start, reference, offset, drift) in enumerate(lines):
        inside = client_ns >= start if number else np.ones(len(client_ns), np.bool_)
        found[inside] = offset + drift * (client_ns[inside] - reference)
    return found


def reference(time_ns: Int64Array, is_up: bool, origin_ns: int, start_ns: int, lines: Lines | None, raised: float):
    if lines is None:
        return (time_ns - start_ns) / 1e9
    if not is_up:
        difference = -(server_minus_client_ns(time_ns, lines) + raised)
    else:
        client = time_ns - round(lines[0][2])
        for _ in range(2):
            client = time_ns - np.rint(server_minus_client_ns(client, lines)).astype(np.int64)
        difference = server_minus_client_ns(client, lines) + raised
    return (time_ns - origin_ns - difference) / 1e9


@given(TIMES, st.booleans(), st.integers(0, 10**18), st.integers(0, 10**18), st.none() | st.lists(LINE, min_size=1))
def test_times_are_those_of_the_relation(
    times: list[int], is_up: bool, origin_ns: int, start_ns: int, lines: Lines | None
) -> None:
    time_ns = np.array(times, np.int64)
    ordered = None if lines is None else sorted(lines)
    for raised in (0.0, 12.5):
        made = _core.receiver_times_s(time_ns, is_up, origin_ns, start_ns, ordered, raised)
        assert made.tolist() == reference(time_ns, is_up, origin_ns, start_ns, ordered, raised).tolist()
