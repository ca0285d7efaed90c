"""Closed forms of split connections: the papers' worked examples, limits, and what lies outside their domains."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pepscope.errors import PepscopeError, UsageError
from reference_sim.models import padhye
from reference_sim.models.command import model
from reference_sim.models.domain import OutsideDomainError
from reference_sim.models.split_gain import slow_start_bytes, split_gain
from reference_sim.models.split_throughput import Half, split_rate_segments_s, whole_rate_segments_s

WIRED = Half(0.01, 0.14, 1.0, segments_an_acknowledgement=1.0)
CELL = Half(0.0, 0.12, 1.0, window_limit_segments=22.0, link_segments_s=32.0, segments_an_acknowledgement=1.0)
EXAMPLE = (128_000.0, 1500.0, 0.03, 0.8)

losses = st.floats(0.001, 0.05)
round_trips = st.floats(0.02, 0.5)
halves = st.builds(Half, losses, round_trips, st.floats(0.2, 3.0), st.floats(5.0, 200.0), st.floats(10.0, 1000.0))


def test_the_worked_example_of_wei_and_others() -> None:
    """r2 v / s is 8.533 packets: log2 is 3.0931; (r1 + r2) v / s is 8.853, log2 3.1463."""
    filled = split_gain(*EXAMPLE, downstream_slow_start=False)
    started = split_gain(*EXAMPLE, downstream_slow_start=True)
    assert filled.regular_s == pytest.approx(0.83 * 3.14625, rel=1e-4)
    assert filled.split_s == pytest.approx(0.03 * 3.09311, rel=1e-4)
    assert filled.approximate_gain_s == pytest.approx(2.5045, abs=1e-3)
    assert started.approximate_gain_s == pytest.approx(0.1228, abs=1e-3)
    assert started.gain_s == pytest.approx(0.137, abs=1e-3)


def test_bytes_of_a_slow_start_are_the_sum_of_its_windows() -> None:
    """Windows of 1, 2, 4 and 8 packets, and of 1, 1.5, 2.25."""
    assert slow_start_bytes(8 * 8 * 1000.0, 1000.0, 1.0) == pytest.approx(15_000)
    assert slow_start_bytes(2.25 * 8000.0, 1000.0, 1.0, segments_an_acknowledgement=2.0) == pytest.approx(4750)


def test_a_link_below_one_packet_is_outside_the_gain_s_domain() -> None:
    with pytest.raises(OutsideDomainError, match="must be above 1"):
        split_gain(1280.0, 1500.0, 0.03, 0.8, downstream_slow_start=True)
    with pytest.raises(OutsideDomainError, match="upstream_round_trip_s"):
        split_gain(128e3, 1500.0, 0.0, 0.8, downstream_slow_start=True)


def test_a_half_alone_is_padhye_until_its_link_cuts_it() -> None:
    expected = padhye.send_rate_segments_s(0.01, 0.14, 1.0, segments_an_acknowledgement=1.0)
    assert WIRED.rate_segments_s() == pytest.approx(expected, rel=1e-6)
    assert replace(WIRED, link_segments_s=expected).rate_segments_s() < 0.95 * expected
    assert CELL.rate_segments_s() == 32.0


@given(halves, halves, st.floats(1.0, 1000.0))
def test_a_split_carries_no_more_than_its_slower_half(upstream: Half, downstream: Half, buffer: float) -> None:
    slower = min(upstream.rate_segments_s(), downstream.rate_segments_s())
    rate = split_rate_segments_s(upstream, downstream, buffer)
    assert 0.0 < rate <= slower * (1.0 + 1e-9)
    assert rate <= split_rate_segments_s(upstream, downstream, 4.0 * buffer) * (1.0 + 1e-9)
    assert split_rate_segments_s(upstream, downstream, 1e9) == pytest.approx(slower, rel=1e-3)


@given(halves, halves, st.floats(1.0, 1000.0))
def test_the_direction_through_the_split_does_not_matter(one: Half, other: Half, buffer: float) -> None:
    assert split_rate_segments_s(one, other, buffer) == pytest.approx(split_rate_segments_s(other, one, buffer))


@given(losses, losses, round_trips, round_trips)
def test_splitting_a_lossy_path_carries_more(first: float, second: float, near_s: float, far_s: float) -> None:
    upstream, downstream = Half(first, near_s, 1.0), Half(second, far_s, 1.0)
    assert split_rate_segments_s(upstream, downstream, 1e6) > whole_rate_segments_s(upstream, downstream)


@pytest.mark.parametrize(
    ("half", "name"),
    [
        (Half(1.0, 0.1, 1.0), "loss_probability"),
        (Half(0.01, 0.0, 1.0), "round_trip_s"),
        (Half(0.01, 0.1, -1.0), "timeout_s"),
        (Half(0.01, 0.1, 1.0, window_limit_segments=0.5), "window_limit_segments"),
        (Half(0.01, 0.1, 1.0, link_segments_s=0.0), "link_segments_s"),
        (Half(0.0, 0.1, 1.0), "limits it"),
    ],
)
def test_what_is_outside_is_refused_by_name(half: Half, name: str) -> None:
    with pytest.raises(OutsideDomainError, match=name):
        split_rate_segments_s(half, CELL, 10.0)
    with pytest.raises(OutsideDomainError, match="buffer_segments"):
        split_rate_segments_s(WIRED, CELL, 0.0)


def run(*arguments: str) -> dict[str, object]:
    result = CliRunner().invoke(model, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document.pop("schema") == 1
    return dict(document)


def test_the_command_prints_the_functions_results() -> None:
    padhyes = run("throughput", "--loss", "0.01", "--round-trip", "0.1")
    assert padhyes["segments_s"] == padhye.send_rate_segments_s(0.01, 0.1, 1.0)
    assert padhyes["goodput_bit_s"] == pytest.approx(8 * 1460 * padhye.send_rate_segments_s(0.01, 0.1, 1.0))
    split = run(
        "throughput", "--model", "split", "--loss", "0.01", "--round-trip", "0.14", "--downstream-loss", "0",
        "--downstream-round-trip", "0.12", "--downstream-window", "22", "--downstream-link", "32", "--buffer", "45",
        "--acknowledge", "1",
    )  # fmt: skip
    assert split["segments_s"] == split_rate_segments_s(WIRED, CELL, 45.0)
    assert run("split-gain", "--rate", "128000", "--upstream", "0.03", "--downstream", "0.8", "--filled")[
        "gain_s"
    ] == pytest.approx(2.519, abs=1e-3)


def test_window_parameters_names_what_is_broken() -> None:
    """Figure 13: 0.2 s is longer than the 0.172 s in which 1160 frames/s drain 200 frames; 0.1 s is not (figure 14)."""
    setting = ("--approach", "4", "--switching", "20", "--mean-rate", "1160")
    assert run("window-parameters", "--step", "0.2", *setting)["broken"] == ["drain"]
    assert run("window-parameters", "--step", "0.1", *setting)["holds"] is True
    overshooting = run("window-parameters", "--step", "0.3", *setting)
    assert overshooting["broken"] == ["approach", "deviation", "drain"]
    assert overshooting["deviation_frames"] is None


def test_the_command_names_what_is_missing() -> None:
    arguments = ["throughput", "--model", "split", "--loss", "0.01", "--round-trip", "0.1"]
    with pytest.raises(UsageError, match="--downstream-loss"):
        CliRunner().invoke(model, arguments, catch_exceptions=False)
    with pytest.raises(UsageError, match="80,120"):
        CliRunner().invoke(
            model,
            ["throughput", "--model", "variable", "--rates", "a,b", "--round-trip", "0.1"],
            catch_exceptions=False,
        )
    assert math.isfinite(
        float(
            str(
                run("throughput", "--model", "variable", "--rates", "80,120", "--round-trip", "0.1", "--buffer", "15")[
                    "segments_s"
                ]
            )
        )
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["throughput", "--round-trip", "0.1", "--loss", "1e-300"], "within the range of floating-point numbers"),
        (["throughput", "--round-trip", "0.1", "--loss", "0.01", "--segment-bytes", "1e308"], "goodput_bit_s must be"),
        (["throughput", "--round-trip", "0.1", "--loss", "0.01", "--buffer", "9"], "padhye must not have --buffer"),
        (
            ["throughput", "--model", "variable", "--round-trip", "0.04", "--buffer", "15", "--rates", "1e308,1e308"],
            "within the range of floating-point numbers",
        ),
        (
            ["window-parameters", "--step", "1e-300", "--approach", "1e-300", "--switching", "20", "--mean-rate", "1"],
            "within the range of floating-point numbers",
        ),
    ],
)
def test_the_command_refuses_what_it_cannot_compute(arguments: list[str], sentence: str) -> None:
    with pytest.raises(PepscopeError, match=re.escape(sentence)):
        CliRunner().invoke(model, arguments, catch_exceptions=False)


def test_the_command_refuses_a_segment_of_no_size() -> None:
    arguments = ["throughput", "--round-trip", "0.1", "--loss", "0.01", "--segment-bytes", "nan"]
    assert "'nan' is not a finite number" in CliRunner().invoke(model, arguments).output


def test_the_command_refuses_arguments_outside_a_models_domain() -> None:
    arguments = ["throughput", "--model", "variable", "--round-trip", "0.5", "--buffer", "5", "--rates", "80,120,60"]
    assert "smaller than the pipe" in CliRunner().invoke(model, arguments).output
