"""The plan that can decide from this host, for a run that names none: every experiment that can run here."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from prober.client import capabilities
from prober.client.capabilities import Capability
from prober.experiments.delayed_ack import DelayedAck, DelayedAckOptions
from prober.experiments.registry import experiments
from prober.host import network_devices
from prober.plan import Plan
from prober.run.runner import planned_tasks, required_capabilities
from prober.run.server_address import resolve

#: Uploads under held acknowledgements decide where nothing was captured: once for chance, once more for certainty.
_UPLOAD_REPEATS = 2


@dataclass(frozen=True, slots=True)
class ChosenPlan:
    """A plan, and why it is this one."""

    plan: Plan
    #: A sentence for the user.
    why: str


def choose_plan(server: Plan) -> ChosenPlan:
    """The full audit where this host may capture and hold acknowledgements; else what decides without.

    `server` is a plan without experiments that names the server. Raises ControlError, PlanError, OSError.
    """
    full = replace(server, experiments={item.name: item.options() for item in experiments()})
    address = resolve(full.server.host, 0.0)
    device = network_devices.device_of(network_devices.local_address_towards(address))
    tasks = planned_tasks(full)
    lacking = capabilities.lacking_at_mobile(device, address, required_capabilities(tasks))
    if not lacking:
        return ChosenPlan(full, "The plan is the full audit, with captures and held acknowledgements at both ends.")
    runs = {experiment.name for experiment, task in tasks if not capabilities.unmet(task.requires, lacking)}
    possible = {name: options for name, options in full.experiments.items() if name in runs}
    if Capability.MOBILE_HOLD in lacking and isinstance(held := possible.get(DelayedAck.name), DelayedAckOptions):
        possible[DelayedAck.name] = msgspec.structs.replace(held, repeats=_UPLOAD_REPEATS)
    return ChosenPlan(replace(full, experiments=possible), _reduced(lacking))


def _reduced(lacking: dict[Capability, str]) -> str:
    words = {
        Capability.MOBILE_CAPTURE: "captures",
        Capability.MOBILE_HOLD: "held acknowledgements",
        Capability.ERROR_QUEUE: "ICMP errors",
    }
    known = [want for want in words if want in lacking]
    reasons = "; ".join(dict.fromkeys(lacking[want] for want in known))
    text = f"The plan does without {' and '.join(words[want] for want in known)} on this host ({reasons})"
    if Capability.MOBILE_HOLD in lacking:
        text += (
            f". Uploads are decided by acknowledgements that the server holds back ({_UPLOAD_REPEATS} runs each); "
            "downloads by dead ports, slow readers, caches and aborts, which may leave them inconclusive"
        )
    return text + "."
