"""What the server and its helper say to each other: one JSON document a message, on a pair of sockets.

The helper does these things and nothing else. No message has a path, a filter or a command: the helper knows from its
start which packets may be captured into which directory, and of which ports ACKs may be held back.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from pepscope.strict_reading import Table, WholeNumber, between
from prober.protocol.control_messages import HoldReport

#: No message is longer.
MOST_BYTES = 1 << 14

_Number: TypeAlias = WholeNumber
_Name: TypeAlias = Annotated[str, Meta(min_length=16, max_length=16)]
#: IFNAMSIZ of linux/if.h, with its zero.
_Device: TypeAlias = Annotated[str, Meta(min_length=1, max_length=15)]
_Port: TypeAlias = Annotated[int, between(1, 65_535)]


class BeginCapture(Table, frozen=True, tag="capture"):
    """Capture on a device."""

    number: _Number
    device: _Device
    snap_bytes: Annotated[int, between(0, 262_144)]


class FinishCapture(Table, frozen=True, tag="finish"):
    """End a capture."""

    number: _Number
    name: _Name


class BeginHold(Table, frozen=True, tag="hold"):
    """Hold ACKs of ports back."""

    number: _Number
    ports: Annotated[tuple[tuple[_Port, _Port], ...], Meta(min_length=1, max_length=4)]
    delay_s: Annotated[float, between(0.001, 1e6)]


class EndHold(Table, frozen=True, tag="release"):
    """Let ACKs go."""

    number: _Number
    name: _Name


class Try(Table, frozen=True, tag="try"):
    """Say why captures on a device, or holds where none is named, cannot be made."""

    number: _Number
    device: _Device | None = None


class Silence(Table, frozen=True, tag="silence"):
    """Have the socket that comes with it drop every SYN, or take them again."""

    number: _Number
    is_silent: bool


Request = BeginCapture | FinishCapture | BeginHold | EndHold | Try | Silence


class Answer(Table, frozen=True):
    """What came of a request."""

    number: _Number
    #: One sentence; empty where it was done.
    error: Annotated[str, Meta(max_length=4000)] = ""
    kind: Literal["", "capture", "impossible", "measurement"] = ""
    #: Of what was begun.
    name: str = ""
    missed: int = -1
    held: HoldReport | None = None
    lacking: Annotated[str, Meta(max_length=4000)] = ""


class HelperSettings(Table, frozen=True):
    """What the helper may do, given at its start."""

    directory: str
    state: str
    filter_expression: str
    ports: tuple[tuple[_Port, _Port], ...]
    trial_port: _Port
    captures: WholeNumber
    holds: WholeNumber
    hold_delay_s: float


def encode(message: Request | Answer) -> bytes:
    """As it is sent."""
    return msgspec.json.encode(message)


def read_request(data: bytes) -> Request:
    """Raises msgspec.DecodeError for what is none."""
    request: Request = msgspec.json.decode(data, type=Request)
    return request


def read_answer(data: bytes) -> Answer:
    """Raises msgspec.DecodeError for what is none."""
    return msgspec.json.decode(data, type=Answer)
