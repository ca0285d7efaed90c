"""Options of a detection with their defaults: the user's information about the captures, and thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from pepscope.errors import UsageError

#: Below this probability of the leading class (end to end, or split in any way) the verdict is inconclusive.
DECISION_PROBABILITY = 0.95

#: Below this confidence that both captures show one transfer there is no verdict. Of pairs whose confidence is lower,
#: more than one in twenty is a wrong one (docs/methods/pairing.md).
LEAST_PAIRING_CONFIDENCE = 0.7

#: The fastest clock drift that is allowed for.
DRIFT_LIMIT_PPM = 500.0

#: Networks of clients that one rule governs: no smaller ones are announced between operators (RFC 7454 section 6.1.3).
PREFIX_IPV4 = 24
PREFIX_IPV6 = 48

#: Entry points that name methods of other distributions.
METHOD_PLUG_INS = "pepscope.methods"


class ClockMode(StrEnum):
    """What is assumed of the two capture clocks."""

    SYNCHRONISED = "synchronised"  # Method 1
    OFFSET = "offset"  # Method 2 as published: constant offset, first datum
    GENERAL = "general"  # offset, bounded drift, steps


@dataclass(frozen=True, slots=True)
class DetectOptions:
    """The user's information about the captures, and thresholds."""

    clocks: ClockMode = ClockMode.GENERAL
    ack_delay_s: float | None = None  # T of Method 3, put on every ACK by the receiver
    drift_limit_ppm: float = DRIFT_LIMIT_PPM
    #: Whether the first capture was taken at the clients, or else at the servers; None where it is to be found out.
    first_at_client: bool | None = None
    #: The captures show the same transfers: that payload makes a pair of strangers is no reason to doubt it.
    same_transfers: bool = False
    #: Below this probability of its class (end to end, or split) a connection gets no verdict.
    least_probability: float = DECISION_PROBABILITY
    #: Below this confidence that two connections are one transfer they get no verdict.
    least_pairing_confidence: float = LEAST_PAIRING_CONFIDENCE


#: What one capture, or several of one vantage point, leave without a meaning.
_OF_TWO_ENDS = ("clocks", "same_transfers", "drift_limit_ppm", "least_pairing_confidence")


def refuse_for_one_vantage(
    options: DetectOptions, given: str = "one capture", named: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Raise UsageError if an option differs from its default that is about two captures, where one vantage point is
    `given`; `named` has what the user knows options by."""
    usual = DetectOptions()
    for name in _OF_TWO_ENDS:
        if getattr(options, name) != getattr(usual, name):
            raise UsageError(f"{named.get(name, name)} is for the captures of two ends, got {given}")
