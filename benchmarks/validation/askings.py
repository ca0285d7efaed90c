"""Ways of asking about the same two captures: their order, one of them alone, what is assumed of the clocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Run = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asking:
    """Which captures are given in which order, with which options, and for which runs that is a fair question."""

    ends: tuple[str, ...] = ("server", "mobile")
    options: Mapping[str, Any] = field(default_factory=dict)
    fair: Callable[[Run], bool] = lambda _: True


def _constant_offset(run: Run) -> bool:
    return not run["clock"].get("mobile_skew_ppm") and not run["clock"].get("steps")


def _synchronised(run: Run) -> bool:
    return _constant_offset(run) and not run["clock"].get("mobile_offset_s")


def _terminates(run: Run) -> bool:
    """Whether what splits ends connections, if anything does: one capture does not show who acknowledges beyond it."""
    return not run["id"].startswith("spl-localack")


AS_RECORDED = "as recorded"

ASKINGS: Mapping[str, Asking] = {
    AS_RECORDED: Asking(),
    "other order": Asking(("mobile", "server")),
    "mobile's capture alone": Asking(("mobile",), fair=_terminates),
    "server's capture alone": Asking(("server",), fair=_terminates),
    "--clocks offset": Asking(options={"clocks": "offset"}, fair=_constant_offset),
    "--clocks synchronised": Asking(options={"clocks": "synchronised"}, fair=_synchronised),
}
