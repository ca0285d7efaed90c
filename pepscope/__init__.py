"""pepscope: does a middlebox in the network split my TCP connections, and how?

`pepscope.detect("server.pcap", "mobile.pcap")` judges, `pepscope.inspect("server.pcap")` reads a capture and
`pepscope.simulate("bulk-100mbit-40ms")` runs a scenario; what else the entry point group `pepscope.api` names is found
here too. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from detector.detection import detect as detect
    from pepscope.captures.capture import open_capture as inspect
    from reference_sim.simulation import simulate as simulate

__all__ = ["__version__", "detect", "inspect", "simulate"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load what the entry point group `pepscope.api` offers under this name."""
    if not name.startswith("_"):
        from pepscope.plugins import find

        entry = find("pepscope.api", name)
        if entry is not None:
            loaded = entry.load()
            globals()[name] = loaded
            return loaded
    raise AttributeError(f"module 'pepscope' has no attribute '{name}'")


def __dir__() -> list[str]:
    """The names of this module and of the entry points."""
    from pepscope.plugins import names

    return sorted({*globals(), *names("pepscope.api")})
