"""What each command needs, use by use: the first use of a command is the one without which it does not run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pepscope.command_line.doctor.checks import Check


@dataclass(frozen=True, slots=True)
class Use:
    """A use of a command, and the names of the checks that must pass for it."""

    purpose: str
    needs: tuple[str, ...]


class Availability(Enum):
    """How much of a command runs here."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    UNAVAILABLE = "unavailable"


_JUDGED = ("base", "core")
_PAGES = Use("pages (--html)", ("extra html",))
_CSV = Use("CSV (--csv)", ("extra frames",))
_PARQUET = Use("Parquet (--parquet)", ("extra parquet",))
_FILTERS = Use("filters (--filter)", ("libpcap",))

_LIVE = Use("capture an interface (-i)", ("Linux", "libpcap", "CAP_NET_RAW"))

USES: dict[str, tuple[Use, ...]] = {
    "annotate": (Use("copy captures with comments", _JUDGED), _FILTERS),
    "audit": (
        Use("judge archives", _JUDGED),
        Use("run a plan", (*_JUDGED, "Linux")),
        Use("capture at the mobile", ("libpcap", "CAP_NET_RAW")),
        Use("hold acknowledgements back", ("CAP_NET_ADMIN", "ip", "firewall")),
        _PAGES,
    ),
    "audit-captures": (
        Use("judge many captures", (*_JUDGED, "extra corpora")),
        Use("read s3:// addresses", ("extra s3",)),
        Use("read http:// addresses", ("extra web",)),
    ),
    "check": (Use("contact hosts", (*_JUDGED, "Linux")),),
    "detect": (Use("judge captures", _JUDGED), _FILTERS, _LIVE, _PAGES, _PARQUET),
    "emulate": (
        Use("run a path", (*_JUDGED, "Linux", "CAP_NET_ADMIN", "namespaces", "TUN", "ip")),
        Use("join segments as offloads do", ("extra emulate",)),
        _PAGES,
    ),
    "explain": (Use("explain verdicts", ("base",)),),
    "host-times": (Use("measure times in captures", _JUDGED),),
    "inspect": (Use("list connections", _JUDGED), _FILTERS, _LIVE, _PAGES, _CSV, _PARQUET),
    "model": (Use("compute", ("base",)),),
    "probe": (
        Use("write a plan", ("base",)),
        Use("serve, anonymise", ("Linux", "extra probe")),
        Use("capture at the server", ("libpcap", "CAP_NET_RAW")),
        Use("serve on ports below 1024", ("CAP_NET_BIND_SERVICE",)),
        Use("hold acknowledgements back", ("CAP_NET_ADMIN", "ip", "firewall")),
    ),
    "proxy": (
        Use("relay", ("base", "Linux", "extra proxy")),
        Use("intercept transparently", ("CAP_NET_ADMIN", "ip", "firewall")),
    ),
    "query": (Use("ask tables", ("base", "extra corpora")),),
    "reproduce": (Use("run experiments", (*_JUDGED, "extra simulate")), _PAGES),
    "simulate": (Use("simulate a path", _JUDGED), Use("campaigns, series", ("extra simulate",)), _PAGES),
    "site": (Use("write a site", (*_JUDGED, "extra corpora", "extra html")),),
    "trace": (Use("convert traces", ("base",)), Use("read captures", _JUDGED)),
    "validate": (Use("score verdicts", _JUDGED), _PAGES),
    "watch": (Use("watch a directory", _JUDGED), _LIVE, Use("metrics (--metrics)", ("extra watch",))),
}


def missing(use: Use, checks: dict[str, Check]) -> list[Check]:
    """The checks of a use that did not pass."""
    return [checks[name] for name in use.needs if not checks[name].passed]


def availability(command: str, checks: dict[str, Check]) -> Availability:
    """How much of a command runs here."""
    lacking = [bool(missing(use, checks)) for use in USES[command]]
    if lacking[0]:
        return Availability.UNAVAILABLE
    return Availability.PARTIAL if any(lacking) else Availability.COMPLETE
