"""Metadata of a run, kept in its archive: offset of the clocks, both hosts, the network device, the user's notes."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import msgspec

from pepscope.errors import UsageError
from pepscope.strict_reading import between
from prober.host.host_description import describe_host
from prober.measurement.measured import Count
from prober.protocol.json_documents import Json

if TYPE_CHECKING:
    from prober.client.control_client import ControlClient
    from prober.protocol.control_messages import About

SCHEMA = 1
#: Exchanges for one estimate; the fastest counts, whose offset is bounded best.
EXCHANGES = 5
_MOST_NOTES = 50
_NOTE_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,60}")
_LONGEST_NOTE = 500


class ClockSample(msgspec.Struct, frozen=True):
    """How far the server's clock was ahead of the mobile's, in one exchange over the control channel.

    The true offset is within `uncertainty_s` of `offset_s` (half the round trip; RFC 5905, section 8, with the server's
    two times equal), however unlike the two ways are.
    """

    at_unix_ns: Count
    offset_s: Annotated[float, between(-1e12, 1e12)]
    uncertainty_s: Annotated[float, between(0, 1e18)]
    server_synchronised: bool


def sample_clocks(control: ControlClient, exchanges: int = EXCHANGES) -> ClockSample:
    """Ask the server's clock several times, and keep the answer that came fastest. Raises ControlError."""
    samples = []
    for _ in range(exchanges):
        # The wall clock may be set meanwhile, so that only the monotonic one measures how long the exchange took.
        sent_unix_ns, sent_ns = time.time_ns(), time.monotonic_ns()
        clock = control.clock()
        taken_ns = time.monotonic_ns() - sent_ns
        offset_ns = clock.unix_ns - (sent_unix_ns + taken_ns // 2)
        samples.append(ClockSample(sent_unix_ns, offset_ns / 1e9, taken_ns / 2e9, clock.synchronised))
    return min(samples, key=lambda sample: sample.uncertainty_s)


def parse_note(text: str) -> tuple[str, str]:
    """`KEY=VALUE` of the command line. Raises UsageError."""
    name, mark, value = text.partition("=")
    if not mark or _NOTE_NAME.fullmatch(name) is None or not 0 < len(value) <= _LONGEST_NOTE:
        raise UsageError(f"a note must be KEY=VALUE, such as operator=CDMA-I, got {text[:60]!r}")
    return name, value


def parse_notes(texts: tuple[str, ...]) -> dict[str, str]:
    """All notes of a command line. Raises UsageError."""
    notes = dict(parse_note(text) for text in texts)
    if len(texts) > _MOST_NOTES or len(notes) < len(texts):
        raise UsageError(f"notes must have different keys, and be at most {_MOST_NOTES}")
    return notes


def describe_ends(device: str | None, about: About) -> dict[str, Json]:
    """What is known of both ends before anything was measured."""
    return {
        "mobile": describe_host(device),
        "server": {"version": about.version, **dict(about.host)},
        "server_can": about.can.to_json(),
        "server_ports": about.ports.to_json(),
    }


def metadata_document(
    known: Mapping[str, Json], clocks: list[ClockSample], notes: Mapping[str, str]
) -> dict[str, Json]:
    """The document `facts.json` of an archive."""
    return {
        "schema": SCHEMA,
        **known,
        "clock": [msgspec.structs.asdict(sample) for sample in clocks],
        "notes": dict(notes),
    }
