"""Labelled captures: what is judged together, and what is true of its connections and groups."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from pepscope.errors import PepscopeError
from pepscope.results.verdicts import GroupSide, SplitPlace, Verdict

#: What a label may say is true.
CLASSES = (Verdict.REGULAR, Verdict.SPLIT_TCP, Verdict.TCP_PROXY)

#: A circumstance by which accuracy is counted: a number or a word.
Factor: TypeAlias = float | str


class LabelError(PepscopeError, ValueError):
    """Labels, or a baseline, that cannot be used; the message names the place."""


@dataclass(frozen=True, slots=True, order=True)
class Ends:
    """Both ends of a connection as a capture shows them, `address:port`, an IPv6 address in brackets."""

    client: str
    server: str

    def __str__(self) -> str:
        return f"{self.client} > {self.server}"

    @property
    def either_way(self) -> frozenset[str]:
        """Both, whichever was the client: a capture without the SYN does not show it."""
        return frozenset((self.client, self.server))


@dataclass(frozen=True, slots=True)
class GroupName:
    """A group of one capture: a network of clients and a port, of one far host or of all; `side` None is either."""

    network: str
    port: int
    host: str | None = None
    side: GroupSide | None = None

    def __str__(self) -> str:
        side = "" if self.side is None else f"{self.side.value} side: "
        return f"{side}{self.network} port {self.port}" + ("" if self.host is None else f" host {self.host}")


@dataclass(frozen=True, slots=True)
class Case:
    """One label: what is true of one connection, of a group, or (without either) of every connection.

    `accepted` are verdicts that count as right, the truth among them: a relay and a store cannot always be told apart.
    `where` says of a split whether it stands in the network or at the server's site.
    """

    truth: Verdict
    accepted: frozenset[Verdict]
    #: As the first capture and as the second one shows them.
    ends: tuple[Ends | None, Ends | None] = (None, None)
    group: GroupName | None = None
    where: SplitPlace | None = None
    factors: Mapping[str, Factor] = field(default_factory=dict)

    @property
    def is_of_every_connection(self) -> bool:
        """Whether the label holds for all that the captures hold."""
        return self.group is None and self.ends == (None, None)

    @property
    def name(self) -> str:
        """What it is about, in words."""
        if self.group is not None:
            return str(self.group)
        return " | ".join(dict.fromkeys(str(ends) for ends in self.ends if ends is not None)) or "every connection"


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """One capture, or two of one transfer, which are judged together, with their labels."""

    name: str
    captures: tuple[Path, ...]
    cases: tuple[Case, ...]


def end_point(text: str) -> str:
    """`address:port` in one form, whatever form of an IPv6 address it was. Raises ValueError."""
    address, separator, port = text.strip().rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65_535:
        raise ValueError(text)
    parsed = ipaddress.ip_address(address.removeprefix("[").removesuffix("]"))
    return f"[{parsed}]:{int(port)}" if parsed.version == 6 else f"{parsed}:{int(port)}"
