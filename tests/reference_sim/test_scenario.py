"""Scenarios: read, checked, changed, never altered."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepscope.errors import ScenarioError
from reference_sim.library import load_scenario, scenario_names
from reference_sim.scenario import Scenario


def test_defaults_are_filled_in(small: Path) -> None:
    scenario = Scenario.from_toml(small)
    assert scenario.name == "small"
    assert scenario.server["control"] == "cubic"
    assert scenario.path[1]["name"] == "radio"
    assert scenario.record["series_interval_s"] is None


def test_a_scenario_cannot_be_altered(small: Path) -> None:
    scenario = Scenario.from_toml(small)
    with pytest.raises(FrozenInstanceError):
        scenario.seed = 4  # type: ignore[misc]
    with pytest.raises(TypeError):
        scenario.server["control"] = "bbr"  # type: ignore[index]
    with pytest.raises(TypeError):
        scenario.path[0]["kind"] = "lte"  # type: ignore[index]


def test_other_values_make_another_scenario(small: Path) -> None:
    scenario = Scenario.from_toml(small)
    other = scenario.with_values({"path[1].down.delay_s": 0.5, "mobile.timestamps": False, "seed": 8})
    radio = json.loads(other.to_json())["path"][1]
    assert (radio["down"]["delay_s"], other.mobile["timestamps"], other.seed) == (0.5, False, 8)
    assert json.loads(scenario.to_json())["path"][1]["down"]["delay_s"] == 0.03


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("path[7].down", "path[7].down must name a field that exists"),
        ("path.core", "path.core must name a field that exists"),
        ("", "the name of a field must be like"),
        ("path[1", "the name of a field must be like"),
        ("path[1].down.rate", "path[1].down.rate is not a field; fields are rate_bit_s"),
    ],
)
def test_a_name_without_an_address_is_reported(small: Path, name: str, reported: str) -> None:
    with pytest.raises(ScenarioError) as refusal:
        Scenario.from_toml(small).with_values({name: 1})
    assert reported in str(refusal.value)


@given(st.text(max_size=30))
def test_no_name_breaks_anything(name: str) -> None:
    scenario = Scenario.from_mapping({"name": "a", "duration_s": 1.0})
    accepted = {"seed", "duration_s", "stop_after_finish_s"}
    if name not in accepted:
        with pytest.raises(ScenarioError):
            scenario.with_values({name: 1})


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("name = ", "must be TOML"),
        ("duration_s = 1.0", "name is missing"),
        ('name = "a"', "duration_s is missing"),
        ('name = "a"\nduration_s = -1', "duration_s must be a number from 0.001"),
        ('name = "a"\nduration_s = nan', "duration_s must be a finite number, got nan"),
        ('name = "a"\nduration_s = 2026-11-29', "duration_s must be a number, a text, true or false, got 2026-11-29"),
        ('name = "a"\nduration_s = 1\n[[path]]\nx = [inf]', "path[0].x[0] must be a finite number, got inf"),
        ('name = "a"\nduration_s = 1\ncolour = "red"', "colour is not a field"),
        ('name = "a"\nduration_s = 1\n[server]\ncontrol = "vegas"', "server.control must be one of"),
    ],
)
def test_refusals_name_the_field(tmp_path: Path, text: str, reported: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as refusal:
        Scenario.from_toml(path)
    assert reported in str(refusal.value)
    assert "\n" not in str(refusal.value).removesuffix("\n")


def test_a_trace_beside_the_scenario_is_read(tmp_path: Path) -> None:
    (tmp_path / "link.trace").write_text("".join(f"{time}\n" for time in range(0, 1000, 4)))
    path = tmp_path / "traced.toml"
    path.write_text(
        'name = "traced"\nduration_s = 5\n[[path]]\nkind = "variable-rate"\n'
        '[path.down.rates]\nkind = "mahimahi"\nfile = "link.trace"\n'
    )
    assert "text" in json.loads(Scenario.from_toml(path).to_json())["path"][0]["down"]["rates"]
    (tmp_path / "link.trace").unlink()
    with pytest.raises(FileNotFoundError):
        Scenario.from_toml(path)


@pytest.mark.parametrize("name", scenario_names())
def test_every_scenario_here_is_sound(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.name == name
    assert scenario.description


def test_an_unknown_name_is_refused_with_the_place_of_names() -> None:
    with pytest.raises(ScenarioError, match="--list"):
        load_scenario("no-such-scenario")
