"""The plan that `pepscope probe plan` writes: the tables every plan has, and all experiments there are."""

from __future__ import annotations

import json
import textwrap
from importlib.resources import files
from typing import Any

import msgspec

from prober.experiments.registry import experiments
from prober.measurement.experiment import Experiment
from prober.protocol.json_documents import Json

_WIDTH = 118


def default_plan() -> str:
    """A commented plan as TOML, with every experiment at its own defaults."""
    head = files("prober").joinpath("assets", "default_plan.toml").read_text(encoding="utf-8")
    return head + "".join(_table(experiment) for experiment in experiments())


def _table(experiment: Experiment[Any, Any]) -> str:
    lines = [f"# {line}" for line in textwrap.wrap(experiment.summary, _WIDTH)]
    lines.append(f"[experiments.{experiment.name}]")
    lines += [f"{name} = {_toml(value)}" for name, value in msgspec.to_builtins(experiment.options()).items()]
    return "\n" + "\n".join(lines) + "\n"


def _toml(value: Json) -> str:
    """Numbers, texts, truth values and lists of them: TOML writes them as JSON does."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000:
        return f"{value:_}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return json.dumps(value, ensure_ascii=False)
