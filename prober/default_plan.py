"""The plan that `pepscope probe plan` writes: the tables every plan has, and all experiments there are."""

from __future__ import annotations

import json
import textwrap
from importlib.resources import files

from prober.experiment import Experiment, Json
from prober.experiments import EXPERIMENTS

_WIDTH = 118


def default_plan() -> str:
    """A commented plan as TOML, with every experiment at its own defaults."""
    head = files("prober").joinpath("assets", "default_plan.toml").read_text(encoding="utf-8")
    return head + "".join(_table(experiment) for experiment in EXPERIMENTS)


def _table(experiment: Experiment) -> str:
    lines = [f"# {line}" for line in textwrap.wrap(experiment.summary, _WIDTH)]
    lines.append(f"[experiments.{experiment.name}]")
    lines += [f"{name} = {_toml(value)}" for name, value in experiment.defaults.items()]
    return "\n" + "\n".join(lines) + "\n"


def _toml(value: Json) -> str:
    """Numbers, texts, truth values and lists of them: TOML writes them as JSON does."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000:
        return f"{value:_}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return json.dumps(value, ensure_ascii=False)
