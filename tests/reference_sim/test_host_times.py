"""Times of machines: measured in captures, written, and given to simulated machines."""

from __future__ import annotations

import gzip
import json
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pepscope.captures.capture import open_capture
from pepscope.errors import ScenarioError, UsageError
from reference_sim.host_times import End, Measured, captured_end, measure_host_times
from reference_sim.host_times.acts import Act, acts_of
from reference_sim.host_times.fitting import LogNormal, fit_cooling, fit_log_normal, fit_persistence, slower_mode
from reference_sim.host_times.written import as_text, as_toml
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

CORPUS = Path(__file__).parents[1] / "corpus"
LINE: dict[str, Any] = {"kind": "wired", "down": {"rate_bit_s": 20_000_000, "delay_s": 0.01, "queue_packets": 200}}
TRAFFIC: tuple[dict[str, Any], ...] = (
    {"kind": "download", "bytes": 1_500_000, "count": 8, "spacing_s": 1.0},
    {"kind": "upload", "bytes": 1_000_000, "count": 8, "spacing_s": 1.0, "start_s": 0.5},
    {"kind": "http", "page_bytes": 3000, "pages": 4, "think_time_mean_s": 0.05, "count": 8, "spacing_s": 1.0},
)
#: Times in close succession and after pauses alike, without interruptions.
PLAIN: dict[str, Any] = {
    "cold_receiving": 1, "cold_opening": 1, "interrupted_share": 0, "machine_spread": 0,
}  # fmt: skip


def time_of(least_us: float, median_us: float, spread: float) -> dict[str, float]:
    return {"least_s": round(least_us * 1e-6, 10), "median_s": round(median_us * 1e-6, 10), "spread": spread}


def made(times: dict[str, Any] | None, **rest: Any) -> Scenario:
    end = {"host": "linux"} if times is None else {"host": "linux", "times": times}
    fields = {"name": "times", "duration_s": 60.0, "seed": 3, "path": [LINE], "traffic": TRAFFIC}
    return Scenario.from_mapping({**fields, "server": end, "mobile": end, **rest})


def measured_in(scenario: Scenario, directory: Path, place: str = "server") -> Measured:
    capture = open_capture(str(simulate(scenario, directory).captures[place]))
    return measure_host_times([(capture, End.SERVER if place == "server" else End.CLIENT)])


# What is given to a machine.


def test_the_defaults_written_out_are_the_defaults(tmp_path: Path) -> None:
    plain = made(None)
    times = json.loads(json.dumps(plain.server["times"], default=dict))
    assert times["receiving"] == {"least_s": 3e-6, "median_s": 7e-6, "spread": 0.8, "quantiles_s": None}
    first, second = (simulate(made(one), tmp_path / str(one is None)) for one in (None, times))
    for place in ("server", "mobile"):
        assert first.captures[place].read_bytes() == second.captures[place].read_bytes()


def test_an_ideal_machine_has_no_times() -> None:
    assert made(None, server={"host": "ideal"}).server["times"] is None


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ({"server": {"times": {}}}, "server.times must be absent where takes_time is false, got {}"),
        ({"server": {"host": "linux", "times": {"reading": {"least_s": 1, "median_s": 0.5}}}}, "at least least_s"),
        ({"server": {"host": "linux", "times": {"receiving": {"spread": 5}}}}, "server.times.receiving.spread must be"),
        ({"server": {"host": "linux", "times": {"cold_receiving": 0.5}}}, "server.times.cold_receiving must be"),
        ({"server": {"host": "linux", "times": {"thinking": {}}}}, "server.times.thinking"),
        ({"path": [{"kind": "split-proxy", "mobile_leg": {"host": "linux", "times": {}}}]}, "which is one machine"),
        ({"path": [{"kind": "split-proxy", "times": {}}]}, "path[0].times must be absent where takes_time is false"),
        ({"server": {"host": "linux", "times": {"reading": {"quantiles_s": [2e-6, 1e-6]}}}}, "none less than the one"),
        ({"server": {"host": "linux", "times": {"reading": {"quantiles_s": [1]}}}}, "2 to 1000 numbers"),
        ({"server": {"host": "linux", "times": {"reading": {"quantiles_s": [0, 11]}}}}, "a list of numbers, each"),
        ({"path": [{"kind": "device", "down": {"median_s": 11}}]}, "path[0].down.median_s must be"),
    ],
)
def test_times_that_cannot_be_are_refused_in_one_sentence(ends: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        made(None, **ends)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def least_handshake_s(scenario: Scenario, directory: Path) -> float:
    capture = open_capture(str(simulate(scenario, directory).captures["mobile"]))
    return min(one.handshake_syn_ack_ns for one in capture.connections if one.handshake_syn_ack_ns) * 1e-9


def test_a_split_point_takes_the_times_that_it_is_given(tmp_path: Path) -> None:
    def handshake_s(times: dict[str, Any]) -> float:
        proxy = {"kind": "split-proxy", "takes_time": True, "times": times, "opening": "far-end-first"}
        return least_handshake_s(made(None, path=[LINE, proxy, LINE]), tmp_path / str(len(times)))

    slow = {"opening": time_of(20_000, 20_000, 0), "cold_opening": 1}
    assert handshake_s(slow) - handshake_s({}) == pytest.approx(0.04, abs=2e-3)  # the SYN and the SYN-ACK wait


def test_a_device_delays_what_it_is_given_a_time_for(tmp_path: Path) -> None:
    device = {"kind": "device", "down": time_of(3000, 3000, 0)}
    with_one = least_handshake_s(made(None, path=[device, LINE]), tmp_path / "with")
    assert with_one - least_handshake_s(made(None), tmp_path / "without") == pytest.approx(0.003, abs=2e-4)


def test_a_scenario_takes_times_from_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "times.toml").write_text("machine_spread = 0.1\nreading = { least_s = 1e-6, median_s = 2e-6 }\n")
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(
        'name = "a"\nduration_s = 1\n[server]\nhost = "linux"\ntimes = { file = "times.toml", machine_spread = 0.2 }\n'
    )
    times = Scenario.from_toml(scenario).server["times"]
    assert isinstance(times, Mapping)
    assert (times["machine_spread"], times["reading"]["median_s"]) == (0.2, 2e-6)
    (tmp_path / "times.toml").write_text("not toml")
    with pytest.raises(ScenarioError, match=r"times\.toml must be TOML"):
        Scenario.from_toml(scenario)


# What is measured.


@settings(max_examples=25, deadline=None)
@given(
    least=st.floats(0, 20), above=st.floats(1, 50), spread=st.floats(0.2, 1.5), seed=st.integers(0, 1000),
    late=st.sampled_from([0.0, 0.02]),
)  # fmt: skip
def test_a_log_normal_distribution_is_found_by_its_quantiles(
    least: float, above: float, spread: float, seed: int, late: float
) -> None:
    chance = np.random.default_rng(seed)
    drawn = least + above * np.exp(spread * chance.normal(size=4000))
    drawn[chance.random(4000) < late] = 1e4  # what waited for something else
    found = fit_log_normal(drawn)
    assert found.median_s == pytest.approx(least + above, rel=0.08)
    expected = least + above * np.exp(spread * np.array([-1.0, 1.0]))
    quantiles = found.least_s + (found.median_s - found.least_s) * np.exp(found.spread * np.array([-1.0, 1.0]))
    np.testing.assert_allclose(quantiles, expected, rtol=0.15)


@settings(max_examples=15, deadline=None)
@given(full=st.floats(0.005, 0.1), exponent=st.floats(0.4, 1.4), most=st.floats(3, 20), seed=st.integers(0, 1000))
def test_the_law_of_pauses_is_found(full: float, exponent: float, most: float, seed: int) -> None:
    chance = np.random.default_rng(seed)
    pauses = 10 ** chance.uniform(-4, -0.5, 3000)
    factors = 1 + (most - 1) * np.minimum(pauses / full, 1) ** exponent
    found = fit_cooling(5e-6 * factors * np.exp(0.3 * chance.normal(size=3000)), pauses)
    assert found is not None
    shown = np.geomspace(2e-4, 0.3, 12)
    truth = 1 + (most - 1) * np.minimum(shown / full, 1) ** exponent
    # What counts is how much longer things take beside one another: a constant factor is the time's.
    ratio = found.factors(shown) / truth
    assert ratio.max() / ratio.min() < 1.35


@settings(max_examples=10, deadline=None)
@given(shortest=st.floats(-4.5, -2.5), seed=st.integers(0, 1000))
def test_times_that_no_pause_changes_stay_what_they_are(shortest: float, seed: int) -> None:
    chance = np.random.default_rng(seed)
    pauses = 10 ** chance.uniform(shortest, shortest + 2, 2000)
    found = fit_cooling(5e-6 * np.exp(0.4 * chance.normal(size=2000)), pauses)
    assert found is not None
    np.testing.assert_allclose(found.factors(pauses), 1, atol=0.15)


def test_pauses_that_are_alike_have_no_law() -> None:
    assert fit_cooling(np.full(500, 5e-6), np.full(500, 1e-3)) is None
    assert fit_cooling(np.full(50, 5e-6), np.geomspace(1e-4, 1, 50)) is None


def test_two_kinds_of_acts_are_told_apart_and_one_is_not_split() -> None:
    chance = np.random.default_rng(1)
    one = np.log(5.0) + 0.3 * chance.normal(size=1000)
    two = np.log(40.0) + 0.4 * chance.normal(size=500)
    slower = slower_mode(np.concatenate([one, two]))
    assert np.count_nonzero(slower[:1000]) < 20
    assert np.count_nonzero(~slower[1000:]) < 20
    assert not slower_mode(one).any()


@settings(max_examples=4, deadline=None)
@given(
    receiving=st.tuples(st.floats(2, 10), st.floats(2, 20), st.floats(0.2, 0.7)),
    waking=st.tuples(st.floats(50, 300), st.floats(50, 400), st.floats(0.2, 0.6)),
    sending=st.tuples(st.floats(1, 4), st.floats(1, 4), st.floats(0.2, 0.7)),
    seed=st.integers(0, 100),
)
def test_captures_give_back_the_times_that_made_them(
    tmp_path_factory: pytest.TempPathFactory,
    receiving: tuple[float, float, float], waking: tuple[float, float, float], sending: tuple[float, float, float],
    seed: int,
) -> None:  # fmt: skip
    """To 15 % of the median of what the kernel does, 25 % of what a program does."""

    def shown(numbers: tuple[float, float, float]) -> dict[str, float]:
        return time_of(numbers[0], numbers[0] + numbers[1], numbers[2])

    times = {
        **PLAIN, "receiving": shown(receiving), "waking": shown(waking), "sending_in_burst": shown(sending),
        "closing": time_of(30, 90, 0.4), "connected": time_of(100, 200, 0.4), "accepted": time_of(300, 500, 0.4),
    }  # fmt: skip
    directory = tmp_path_factory.mktemp("given")
    scenario = made(times, seed=seed)
    found = measured_in(scenario, directory).times
    for name, tolerance in (("receiving", 0.15), ("sending_in_burst", 0.15), ("waking", 0.25)):
        assert found[name].median_s == pytest.approx(times[name]["median_s"], rel=tolerance), name
    assert found["receiving"].spread == pytest.approx(receiving[2], abs=0.2)
    client = measure_host_times([(open_capture(str(directory / "mobile.pcapng")), End.CLIENT)]).times
    assert client["connected"].median_s == pytest.approx(200e-6, rel=0.25)


def test_acknowledgements_of_data_out_of_order_are_no_programs_reading(tmp_path: Path) -> None:
    """A kernel holds ACKs of data out of order back by a timer, and answers the first ones without waking a program."""
    lossy = {**LINE, "down": {**LINE["down"], "loss": {"kind": "independent", "probability": 0.01}}}
    times = {
        **PLAIN, "receiving": time_of(4, 5, 0.2), "receiving_data": time_of(8, 10, 0.2),
        "receiving_out_of_order": time_of(2, 3, 0.2), "reading": time_of(10, 20, 0.3),
    }  # fmt: skip
    traffic = [{"kind": "upload", "bytes": 1_000_000, "count": 8, "spacing_s": 1.0}]
    found = measured_in(made(times, path=[lossy], traffic=traffic), tmp_path)
    assert found.samples["receiving_out_of_order"] > 40
    assert found.times["receiving_out_of_order"].median_s == pytest.approx(3e-6, rel=0.2)
    assert found.times["receiving_data"].median_s == pytest.approx(10e-6, rel=0.2)
    reading = found.times.get("reading")
    assert reading is None or reading.median_s < 60e-6  # a timer holds ACKs back for 1 ms
    assert made(found.table()).server["times"] is not None


def test_the_second_packet_of_a_burst_is_told_from_later_ones(tmp_path: Path) -> None:
    times = {**PLAIN, "sending_second": time_of(1, 1.5, 0.2), "sending_in_burst": time_of(0.4, 0.6, 0.2)}
    # Bursts are of more than two packets where a millisecond has room for more at the rate of the connection.
    fast = {"kind": "wired", "down": {"rate_bit_s": 500_000_000, "delay_s": 0.002, "queue_packets": 500}}
    traffic = [{"kind": "download", "bytes": 1_500_000, "count": 8, "spacing_s": 1.0}]
    found = measured_in(made(times, path=[fast], traffic=traffic), tmp_path).times
    assert found["sending_second"].median_s == pytest.approx(1.5e-6, rel=0.15)
    assert found["sending_in_burst"].median_s == pytest.approx(0.6e-6, rel=0.15)


@settings(max_examples=6, deadline=None)
@given(persistence=st.floats(0, 0.7), seed=st.integers(0, 100))
def test_neighbouring_acts_are_found_as_alike_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, persistence: float, seed: int
) -> None:
    quantiles = [round(3e-6 * 1.06**step, 10) for step in range(33)]
    times = {**PLAIN, "receiving": {"quantiles_s": quantiles}, "persistence": persistence}
    found = measured_in(made(times, seed=seed), tmp_path_factory.mktemp("alike"))
    assert found.persistence == pytest.approx(persistence, abs=0.15)


def test_a_client_that_only_reads_on_does_not_wait_as_one_that_acts(tmp_path: Path) -> None:
    """Between two pages it reads and then waits, so that its ACKs come when it has read."""
    times = {**PLAIN, "reading": time_of(10, 20, 0.1), "waking": time_of(5000, 5000, 0)}
    pages = [{"kind": "http", "page_bytes": 1000, "pages": 6, "think_time_mean_s": 0.3, "count": 4, "spacing_s": 3.0}]
    scenario = made(None, mobile={"host": "linux", "times": times}, traffic=pages)
    acts = acts_of(open_capture(str(simulate(scenario, tmp_path).captures["mobile"])), End.CLIENT)
    closes_ns = acts[Act.WAKING].time_ns
    assert len(closes_ns) == 4
    assert min(closes_ns) > 4_900_000


def test_a_program_that_gets_the_end_with_the_last_data_takes_its_time_to_close(tmp_path: Path) -> None:
    times = {**PLAIN, "reading": time_of(10, 20, 0.1), "closing": time_of(3000, 3000, 0)}
    traffic = [{"kind": "upload", "bytes": 100_000, "count": 12, "spacing_s": 0.5}]
    capture = open_capture(str(simulate(made(times, traffic=traffic), tmp_path).captures["server"]))
    closes_ns = acts_of(capture, End.SERVER)[Act.CLOSING].time_ns
    assert len(closes_ns) == 12
    assert min(closes_ns) >= 3_000_000


def test_numbers_in_any_order_have_no_persistence() -> None:
    chance = np.random.default_rng(1)
    runs = [chance.exponential(size=40) for _ in range(50)]
    found = fit_persistence(runs)
    assert found is not None
    assert found < 0.1
    sorted_runs = fit_persistence([np.sort(run) for run in runs])
    assert sorted_runs is not None
    assert sorted_runs > 0.7
    assert fit_persistence(runs[:2]) is None


def test_times_of_two_kinds_come_back_as_their_quantiles(tmp_path: Path) -> None:
    two = {"quantiles_s": [4e-6] + 8 * [5e-6] + 8 * [30e-6] + [40e-6]}
    found = measured_in(made({**PLAIN, "receiving": two}), tmp_path).table()["receiving"]["quantiles_s"]
    # Medians of bins of pauses jump between the two kinds, so that a part of the difference may pass for a pause's.
    assert found[8] == pytest.approx(5e-6, rel=0.3)
    assert found[24] == pytest.approx(30e-6, rel=0.3)
    assert sum(10e-6 < one < 20e-6 for one in found) <= 5


def test_a_machine_with_other_times_is_told_from_one_with_these(tmp_path: Path) -> None:
    fast = measured_in(made({**PLAIN, "receiving": time_of(2, 4, 0.3)}), tmp_path / "fast").times["receiving"]
    slow = measured_in(made({**PLAIN, "receiving": time_of(20, 40, 0.3)}), tmp_path / "slow").times["receiving"]
    assert slow.median_s > 6 * fast.median_s


def test_runs_that_differ_as_a_whole_are_not_acts_that_differ(tmp_path: Path) -> None:
    times = {**PLAIN, "receiving": time_of(3, 9, 0.3), "machine_spread": 0.5}
    captures = []
    for seed in range(16):
        traffic = [{"kind": "download", "bytes": 600_000}]
        run = simulate(made(times, seed=seed, traffic=traffic), tmp_path / str(seed))
        captures.append((open_capture(str(run.captures["server"])), End.SERVER))
    found = measure_host_times(captures)
    assert found.samples["machine_spread"] == 16
    # Of sixteen runs a standard deviation is known to about 20 %.
    assert found.machine_spread == pytest.approx(0.5, rel=0.5)
    assert found.times["receiving"].spread == pytest.approx(0.3, abs=0.2)


def test_the_first_opening_of_a_run_is_told_from_later_ones(tmp_path: Path) -> None:
    times = {**PLAIN, "opening": time_of(18, 20, 0.2), "first_opening": time_of(40, 50, 0.1)}
    traffic = [{"kind": "download", "bytes": 20_000, "count": 3, "spacing_s": 0.5}]
    captures = []
    for seed in range(14):
        run = simulate(made(times, seed=seed, traffic=traffic), tmp_path / str(seed))
        captures.append((open_capture(str(run.captures["server"])), End.SERVER))
    found = measure_host_times(captures)
    assert (found.samples["first_opening"], found.samples["opening"]) == (14, 28)
    assert found.times["first_opening"].median_s == pytest.approx(50e-6, rel=0.05)
    # Later ones came after long pauses, too, after which times are twice as long where nothing else is known.
    assert found.times["opening"].quantiles_s[-1] < 30e-6


def test_too_few_samples_leave_the_default_and_say_so(tmp_path: Path) -> None:
    few = [{"kind": "download", "bytes": 300_000}]
    found = measured_in(made(None, traffic=few), tmp_path)
    assert {"waking", "opening", "accepted", "machine_spread"} <= set(found.not_measured())
    assert "waking" not in found.table()
    assert "Too few samples, or pauses too much alike, so that a scenario's defaults hold: " in as_text(found)
    assert "waking (0)" in as_toml(found)
    assert tomllib.loads(as_toml(found)) == found.table()
    times = made(found.table()).server["times"]
    assert isinstance(times, Mapping)
    assert times["receiving"]["median_s"] == found.table()["receiving"]["median_s"]


def test_the_end_that_was_captured_is_found(tmp_path: Path) -> None:
    run = simulate(made(None), tmp_path)
    assert captured_end(open_capture(str(run.captures["server"])), "x") is End.SERVER
    assert captured_end(open_capture(str(run.captures["mobile"])), "x") is End.CLIENT
    middle = made(None, path=[LINE, LINE], record={"taps": [{"name": "middle", "after_hop": 1}]})
    capture = open_capture(str(simulate(middle, tmp_path / "middle").captures["middle"]))
    with pytest.raises(UsageError, match=r"middle\.pcapng must be captured at an end"):
        captured_end(capture, "middle.pcapng")


def test_answers_that_the_path_delays_are_none_of_the_machines(tmp_path: Path) -> None:
    run = simulate(made(None), tmp_path)
    acts = acts_of(open_capture(str(run.captures["server"])), End.SERVER)
    least_ns = 2 * LINE["down"]["delay_s"] * 1e9
    for act in Act:
        assert all(time_ns < least_ns for time_ns in acts[act].time_ns), act


@pytest.mark.parametrize(("name", "end"), [("reg_dl_cubic_lte.srv", End.SERVER), ("reg_bidir.mob", End.CLIENT)])
def test_real_captures_give_times_that_machines_have(name: str, end: End, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.pcap"
    with gzip.open(CORPUS / f"{name}.pcap.gz") as packed, path.open("wb") as unpacked:
        shutil.copyfileobj(packed, unpacked)
    capture = open_capture(str(path))
    assert captured_end(capture, name) is end
    found = measure_host_times([(capture, end)])
    assert found.samples["receiving"] > 100
    receiving = found.times["receiving"]
    assert 2e-7 < receiving.median_s < 2e-4
    assert receiving.least_s <= receiving.median_s
    assert made(found.table()).server["times"] is not None


def test_a_constant_time_is_one() -> None:
    assert fit_log_normal(np.full(100, 5e-6)) == LogNormal(5e-6, 5e-6, 0.0)
