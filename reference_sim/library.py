"""The scenarios and campaigns that come with pepscope, by name."""

from __future__ import annotations

from pathlib import Path

from pepscope.errors import ScenarioError
from reference_sim.scenario import SCENARIOS, Scenario

_CAMPAIGNS = Path(__file__).parent / "campaigns"


def scenario_names() -> tuple[str, ...]:
    """Names of all scenarios here, sorted."""
    return _names(SCENARIOS)


def campaign_names() -> tuple[str, ...]:
    """Names of all campaigns here, sorted."""
    return _names(_CAMPAIGNS)


def load_scenario(name_or_path: str | Path) -> Scenario:
    """The scenario of that name, or in that TOML file. Raises ScenarioError, OSError."""
    return Scenario.from_toml(scenario_path(name_or_path))


def scenario_path(name_or_path: str | Path) -> Path:
    """Where the scenario of that name is, or the path itself. Raises ScenarioError where there is neither."""
    return _find(SCENARIOS, name_or_path, "scenario")


def campaign_path(name_or_path: str | Path) -> Path:
    """Where the campaign of that name is, or the path itself. Raises ScenarioError where there is neither."""
    return _find(_CAMPAIGNS, name_or_path, "campaign")


def _names(directory: Path) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in directory.glob("*.toml")))


def _find(directory: Path, name_or_path: str | Path, kind: str) -> Path:
    text = str(name_or_path)
    if text in _names(directory):
        return directory / f"{text}.toml"
    path = Path(name_or_path)
    if path.is_file():
        return path
    raise ScenarioError(
        f"{text} is neither a file nor a {kind} that comes with pepscope; `pepscope simulate --list` names those"
    )
