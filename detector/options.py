"""Options of a detection with their defaults: the user's information about the captures, and thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from pepscope.errors import UsageError

#: Below this probability of the leading class (end to end, or split in any way) the verdict is inconclusive.
DECISION_PROBABILITY = 0.95

#: Below this confidence that both captures show one transfer there is no verdict. Of the pairs with a lower confidence,
#: more than one in twenty is wrong (docs/methods/pairing.md).
LEAST_PAIRING_CONFIDENCE = 0.7

#: The fastest relative drift of two capture clocks that methods allow for, in parts per million.
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
    #: True: the first capture was taken at the clients; False: at the servers; None: the detector infers it.
    first_at_client: bool | None = None
    #: Both captures show the same transfers: a pair is not doubted because only its payload agrees.
    same_transfers: bool = False
    #: A connection gets a verdict only if its class (end to end, or split) is at least this probable.
    least_probability: float = DECISION_PROBABILITY
    #: Two connections get a verdict only if it is at least this sure that they are one transfer.
    least_pairing_confidence: float = LEAST_PAIRING_CONFIDENCE


#: Options that have no meaning for the captures of one vantage point.
_OF_TWO_ENDS = ("clocks", "same_transfers", "drift_limit_ppm", "least_pairing_confidence")


def refuse_for_one_vantage(
    options: DetectOptions, given: str = "one capture", named: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Raise UsageError if an option about two captures differs from its default. `given` says what the user gave
    instead of two captures, and `named` maps options to the names that the user knows."""
    usual = DetectOptions()
    for name in _OF_TWO_ENDS:
        if getattr(options, name) != getattr(usual, name):
            raise UsageError(f"{named.get(name, name)} is for the captures of two ends, got {given}")
