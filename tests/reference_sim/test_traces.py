"""Traces of carriers' links: formats, conversions, and those that come with pepscope."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_sim
from pepscope.errors import ScenarioError
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate
from reference_sim.traces import (
    CsvForm,
    RateTrace,
    read_csv,
    read_mahimahi,
    read_two_columns,
    trace_of_deliveries,
    write_csv,
    write_mahimahi,
)
from reference_sim.traces.captures import trace_of_capture
from reference_sim.traces.made import MADE, made

SCENARIOS = Path(reference_sim.__file__).parent / "scenarios"
STEPS = st.lists(st.tuples(st.integers(1, 3000), st.floats(0, 5e6)), min_size=1, max_size=30)


def trace_of(steps: list[tuple[int, float]]) -> RateTrace:
    """Steps of so many milliseconds and bit/s."""
    times = [0]
    for length, _ in steps:
        times.append(times[-1] + length)
    return RateTrace(tuple(time / 1e3 for time in times), tuple(rate for _, rate in steps))


@given(STEPS, st.integers(1, 5000))
def test_resampling_keeps_what_is_carried(steps: list[tuple[int, float]], interval_ms: int) -> None:
    trace = trace_of(steps)
    resampled = trace.resampled(interval_ms / 1e3)
    assert resampled.duration_s == pytest.approx(trace.duration_s)
    assert resampled.mean_bit_s == pytest.approx(trace.mean_bit_s, rel=1e-6, abs=1e-3)
    assert max(resampled.rates_bit_s) <= max(trace.rates_bit_s) * (1 + 1e-6)


@given(STEPS)
def test_opportunities_carry_what_the_rate_does_but_for_one(steps: list[tuple[int, float]]) -> None:
    trace = trace_of(steps)
    times = trace.opportunities_ms(1504)
    assert times == sorted(times)
    carried = trace.mean_bit_s * trace.duration_s / 8
    assert abs(len(times) * 1504 - carried) <= 1504 * (1 + 1e-6)
    # No opportunity comes before its bytes.
    for number, time in enumerate(times[:200], 1):
        until = math.fsum(
            rate * max(0.0, min(time / 1e3, later) - earlier)
            for rate, earlier, later in zip(trace.rates_bit_s, trace.times_s, trace.times_s[1:], strict=False)
        )
        assert until >= 8 * 1504 * number * (1 - 1e-6)


@given(st.lists(st.integers(0, 10_000_000), min_size=2, max_size=50), st.sampled_from([0.05, 0.1, 1.0]))
def test_a_csv_file_comes_back_as_it_was_written(rates: list[int], interval_s: float) -> None:
    times = tuple(round(number * interval_s, 6) for number in range(len(rates) + 1))
    read = read_csv(write_csv(RateTrace(times, tuple(map(float, rates)))))
    assert read.times_s == pytest.approx(times)
    assert read.rates_bit_s == tuple(rates)


def test_an_uneven_end_is_written() -> None:
    trace = RateTrace((0.0, 1.0, 1.5), (1e6, 2e6))
    read = read_csv(write_csv(trace))
    assert read.rates_bit_s[:2] == (1e6, 2e6)
    assert read.times_s[:3] == (0.0, 1.0, 1.5)


def test_public_forms_of_csv_files() -> None:
    kbit = "Timestamp,State,DL_bitrate,UL_bitrate\n0,D,1000,5\n1000,D,-,5\n2000,D,3000,5\n3000,D,2000,5\n"
    form = CsvForm("Timestamp", "DL_bitrate", time_unit_s=1e-3, rate_unit_bit_s=1e3)
    read = read_csv(kbit, form)
    assert (read.times_s, read.rates_bit_s) == ((0.0, 2.0, 3.0, 4.0), (1e6, 3e6, 2e6))
    every = read_csv(kbit, CsvForm(rate_column="DL_bitrate", rate_unit_bit_s=1e3, interval_s=1.0))
    assert every.rates_bit_s == (1e6, 3e6, 2e6)
    columns = read_two_columns("# seconds, Mbit/s\n\n10 1.5\n11\t0.5\n12.0,2\n")
    assert (columns.times_s, columns.rates_bit_s) == ((10.0, 11.0, 12.0, 13.0), (1.5e6, 0.5e6, 2e6))


def test_mahimahi_and_back() -> None:
    text = (SCENARIOS / "made-up-cell.mahimahi").read_text(encoding="ascii")
    read = read_mahimahi(text, interval_s=0.1)
    again = read_mahimahi(write_mahimahi(read), interval_s=0.1)
    assert again.mean_bit_s == pytest.approx(read.mean_bit_s, rel=0.01)
    assert all(rate == 0 for rate in read.rates_bit_s[71:75]), "the gap from 7 to 7.5 s"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "last time above 0"),
        ("0\n", "last time above 0"),
        ("5\n4\n", "line 2 of the trace has a time before"),
        ("5\nx\n", "line 2 of the trace must have whole milliseconds"),
        ("5\n\n6\n", "line 2"),
    ],
)
def test_what_is_no_mahimahi_trace_is_refused(text: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        read_mahimahi(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must have a column 'time_s', got none"),
        ("a,b\n1,2\n", "must have a column 'time_s', got a, b"),
        ("time_s,rate_bit_s\n0,1\n", "at least two times, got 1"),
        ("time_s,rate_bit_s\n0,1\n1\n", "line 3 of the trace must have 2 fields"),
        ("time_s,rate_bit_s\n0,1\n1,x\n", "line 3 of the trace must have a finite number, got 'x'"),
        ("time_s,rate_bit_s\n0,1\n-1,2\n", "times of a trace must increase"),
        ("time_s,rate_bit_s\n0,1\n1,-2\n", "rate 2 of a trace must be finite and at least 0, got -2"),
    ],
)
def test_what_is_no_csv_trace_is_refused(text: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        read_csv(text)


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (read_mahimahi, read_two_columns, read_csv):
        try:
            trace = read(text)
        except ScenarioError:
            continue
        assert trace.duration_s > 0


@pytest.mark.parametrize("name", sorted(MADE))
def test_the_traces_that_come_along_are_as_they_were_made(name: str) -> None:
    assert made(name) == (SCENARIOS / f"{name}.csv").read_text(encoding="ascii")


def test_a_capture_of_a_full_link_gives_the_trace_back(tmp_path: Path) -> None:
    rates = {"kind": "csv", "text": "time_s,rate_bit_s\n0,4000000\n2,1000000\n4,8000000\n", "time_column": "time_s"}
    link = {
        "kind": "variable-rate",
        "name": "cell",
        "down": {"delay_s": 0.02, "rates": {**rates, "rate_column": "rate_bit_s"}},
    }
    scenario = Scenario.from_mapping(
        {
            "name": "full",
            "duration_s": 6,
            "mobile": {"receive_buffer_bytes": 64 << 20},
            "server": {"send_buffer_bytes": 64 << 20},
            "path": [{**link, "up": {"delay_s": 0.02}}],
            "traffic": [{"kind": "download", "duration_s": 6}],
        }
    )
    run = simulate(scenario, tmp_path)
    trace = trace_of_capture(run.captures["mobile"], 0.1, skip_s=0.5)
    assert trace.rates_bit_s[8] == pytest.approx(4e6, rel=0.05)
    assert trace.rates_bit_s[25] == pytest.approx(1e6, rel=0.15)
    assert trace.rates_bit_s[45] == pytest.approx(8e6, rel=0.05)


def test_deliveries_of_less_than_an_interval_are_refused() -> None:
    with pytest.raises(ScenarioError, match="at least one interval"):
        trace_of_deliveries([(0.0, 1500), (0.05, 1500)], 0.1)


def test_the_command_converts_and_refuses(tmp_path: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pepscope", "trace", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    out = tmp_path / "edge.mahimahi"
    made_of = str(SCENARIOS / "lte-edge.csv")
    done = run(made_of, "--from", "csv", "--to", "mahimahi", "-o", str(out), "--json")
    assert json.loads(done.stdout)["duration_s"] == pytest.approx(60.0)
    back = run(str(out), "--from", "mahimahi", "--interval", "1")
    assert len(back.stdout.splitlines()) > 50
    refused = run(made_of, "--from", "mahimahi")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert "line 1 of the trace" in refused.stderr
    assert run(made_of, "--from", "csv", "--json").returncode == 2
    useless = run(str(out), "--from", "mahimahi", "--rate-unit", "1000")
    assert (useless.returncode, useless.stdout) == (2, "")
    assert useless.stderr == "pepscope: --rate-unit is for --from csv, got --from mahimahi\n"
    assert run(made_of, "--from", "csv", "-o", "/dev/full").returncode == 2
