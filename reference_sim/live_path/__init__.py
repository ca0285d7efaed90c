"""A scenario's path in real time: namespaces, TUN devices and traffic between real kernels.

Public names are here: `emulate` runs a command or the scenario's own traffic, `live_path` keeps a path up, `compare`
runs a scenario simulated and live. Modules are loaded when a name of theirs is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reference_sim.live_path.comparison import Comparison as Comparison
    from reference_sim.live_path.comparison import Measures as Measures
    from reference_sim.live_path.comparison import check_comparable as check_comparable
    from reference_sim.live_path.comparison import compare as compare
    from reference_sim.live_path.emulation import LiveEmulation as LiveEmulation
    from reference_sim.live_path.emulation import LiveRun as LiveRun
    from reference_sim.live_path.emulation import LiveSettings as LiveSettings
    from reference_sim.live_path.emulation import emulate as emulate
    from reference_sim.live_path.emulation import live_path as live_path
    from reference_sim.live_path.network import CELL_DEVICE as CELL_DEVICE
    from reference_sim.live_path.network import FIRST_MOBILE as FIRST_MOBILE
    from reference_sim.live_path.network import MIDDLE as MIDDLE
    from reference_sim.live_path.network import SERVER as SERVER
    from reference_sim.live_path.network import WIRED_DEVICE as WIRED_DEVICE

#: Public names by the module that has them.
_MODULES = {
    **dict.fromkeys(("Comparison", "Measures", "check_comparable", "compare"), "comparison"),
    **dict.fromkeys(("LiveEmulation", "LiveRun", "LiveSettings", "emulate", "live_path"), "emulation"),
    **dict.fromkeys(("CELL_DEVICE", "FIRST_MOBILE", "MIDDLE", "SERVER", "WIRED_DEVICE"), "network"),
}

__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    """Load a public name."""
    if name not in _MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    loaded = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = loaded
    return loaded
