"""What an experiment of a check found at one port, and what it recognised that splits nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Cause(StrEnum):
    """What acknowledges or answers in other hosts' names, or hides who does, and is no split that the network makes."""

    THIS_HOST = "this-host"
    TUNNEL = "tunnel"
    CAPTIVE_PORTAL = "captive-portal"
    SYN_PROXY = "syn-proxy"
    SERVER_SITE = "server-site"
    SLOW_SERVER = "slow-server"
    HTTP_PROXY = "http-proxy"
    TLS_INTERCEPTION = "tls-interception"


class Says(StrEnum):
    """How a finding counts."""

    #: Decides alone that the port is split.
    SPLIT = "split"
    #: Decides the same together with one of another experiment: hosts of one site may answer from several places. All
    #: findings of a capture are one experiment's here, since one harmless cause may explain them together.
    SPLIT_SUPPORT = "split-support"
    #: Several machines answer these hosts' connections: that they take one time accuses no middlebox.
    SEVERAL = "several"
    #: Connections of these hosts are end to end as far as the sentence says.
    REGULAR = "regular"
    #: It must be out of the way before the network can be judged.
    FIRST = "first"
    #: Named, and moves no verdict.
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One finding at a port over one version of IP."""

    name: str
    says: Says
    #: A whole sentence.
    sentence: str
    #: Hosts that show it, sorted.
    hosts: tuple[str, ...] = ()
    cause: Cause | None = None
    #: The router count at which data are acknowledged, and the router before that place, where they are known.
    box_hops: int | None = None
    router_before: str = ""
    #: Counts, and times in seconds.
    numbers: Mapping[str, float | int | None] = field(default_factory=dict)


def counted(count: int, noun: str, ending: str = "s") -> str:
    """A number with its noun."""
    return f"{count} {noun}{'' if count == 1 else ending}"


def milliseconds(times_s: Sequence[float]) -> str:
    """Times in whole milliseconds, from the least to the largest; one where both are the same."""
    least, most = f"{min(times_s) * 1e3:.0f}", f"{max(times_s) * 1e3:.0f}"
    return f"{least} ms" if least == most else f"{least} to {most} ms"
