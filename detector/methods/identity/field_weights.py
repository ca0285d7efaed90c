"""What each field says of a connection, as numbers of its evidence: written there, and read back to be added up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from detector.methods.identity.agreement import ClassComparison
from pepscope.results import Number

_PREFIX = "nats_"


class Voice(NamedTuple):
    """A field of one class of segments."""

    of: str  # "data" or "acks", pure acknowledgements
    field: str


def voice_name(voice: Voice) -> str:
    """The voice as a name in an evidence's numbers."""
    return f"{_PREFIX}{voice.of}_{voice.field.replace('-', '_')}"


def field_numbers(data: Iterable[ClassComparison], acks: Iterable[ClassComparison]) -> dict[str, Number]:
    """Natural-log likelihood ratios for same packets by class of segments and field, summed over directions."""
    sums: dict[Voice, float] = {}
    for of, parts in (("data", data), ("acks", acks)):
        for part in parts:
            for name, agreement in part.fields.items():
                sums[Voice(of, name)] = sums.get(Voice(of, name), 0.0) + agreement.nats
    return {voice_name(voice): round(nats, 2) for voice, nats in sums.items()}


def field_nats(numbers: Mapping[str, Number]) -> dict[Voice, float]:
    """What `field_numbers` wrote; empty where nothing was compared."""
    return {
        Voice(of, name.replace("_", "-")): float(nats)
        for of in ("data", "acks")
        for written, nats in numbers.items()
        if isinstance(nats, int | float) and (name := written.removeprefix(f"{_PREFIX}{of}_")) != written
    }
