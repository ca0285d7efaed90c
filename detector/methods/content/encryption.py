"""Encryption at one end only: TLS that ends on the way, or a tunnel of streams. Part of content.

Where both ends of a transfer are paired by shape (`detector.other_transport.encrypted_legs`) the bytes cannot be
compared; different bytes alone prove that a middlebox reads the one stream and writes the other. Where they are
not, the candidates are named.
"""

from __future__ import annotations

from collections.abc import Sequence

from detector.method import Observation
from detector.methods.content.findings import NAME
from detector.other_transport.encrypted_legs import Guise, guise
from detector.pair import Pair
from pepscope.captures.connections import Connection
from pepscope.captures.packets import Direction
from pepscope.results.finding import CERTAIN, Finding, Weight, inapplicable, split
from pepscope.results.verdicts import Evidence, Mechanism, Number

_LOOKS = {Guise.TLS: "TLS", Guise.RANDOM: "encrypted", Guise.PLAIN: "not encrypted"}


class EncryptionFinding(Finding):
    """Encryption at one end only: other bytes in both directions. The strength holds the doubt of the pairing."""

    TLS_ENDED = split(
        "tls-ended",
        Weight(
            "content", -6.0, 0.0, 0.0, CERTAIN,
            "TLS at one end, other bytes of that size at the other: a middlebox terminates TLS.",
            Mechanism.TLS_INTERCEPTION,
        ),
    )  # fmt: skip
    ENCRYPTED_LEG = split(
        "encrypted-leg",
        Weight(
            "content", -6.0, 0.0, 0.0, CERTAIN,
            "Encrypted at one end, other bytes of that size at the other: a tunnel of streams.", Mechanism.TUNNEL,
        ),
    )  # fmt: skip
    ENCRYPTED_CANDIDATE = inapplicable("encrypted-candidate", is_missing=True)


def applies(observation: Observation) -> bool:
    """Whether one leg of the connection is encrypted, or may be."""
    return observation.pair.encrypted or bool(observation.candidates)


def examine(observation: Observation) -> Evidence | None:
    """Find which leg of a pair made by its shape is encrypted, or name the candidates for a connection's other leg."""
    if observation.pair.encrypted:
        return _compare(observation.pair)
    if observation.candidates:
        return _name_candidates(observation.pair, observation.candidates)
    return None


def _compare(pair: Pair) -> Evidence:
    client, server = pair.vantages
    looks = [guise(side.payload[Direction.UP]) for side in (client, server)]
    numbers: dict[str, Number] = {
        f"{direction.name.lower()}_{name}_side_bytes": side.flow(direction).stream_bytes
        for direction in Direction
        for name, side in (("client", client), ("server", server))
    }
    is_tls = max(looks) is Guise.TLS
    finding = EncryptionFinding.TLS_ENDED if is_tls else EncryptionFinding.ENCRYPTED_LEG
    what = "TLS ends there" if is_tls else "streams are put into an encrypted tunnel there"
    return finding.evidence(
        NAME, pair.pairing_confidence,
        f"At the client's side the connection is {_LOOKS[looks[0]]}, at the server's it is {_LOOKS[looks[1]]} and "
        f"carries as much but for what encryption adds: a middlebox reads one and writes the other; {what}.",
        numbers,
        (
            "Only sizes and times made the pair: the user stated that both captures show the same transfers.",
            "A load balancer that belongs to the server may terminate TLS.",
        ),
    )  # fmt: skip


def _name_candidates(alone: Pair, candidates: Sequence[tuple[Connection, Guise]]) -> Evidence:
    """Name the candidates for the other leg of a connection without counterpart, and why that is not enough."""
    other, looks = candidates[0]
    more = f" ({len(candidates) - 1} others fit as well)" if len(candidates) > 1 else ""
    lack = (
        "other connections fit as well, or its size is too common"
        if alone.options.same_transfers
        else "other transfers may have that size at that time, so --same-transfers is needed: the statement that both "
        "captures show the same transfers"
    )
    return EncryptionFinding.ENCRYPTED_CANDIDATE.undecided(
        NAME,
        f"In the other capture {other.client} to {other.server} is {_LOOKS[looks]} and carries as much at the same "
        f"time, but for what encryption adds{more}: it may be the other leg of a split that encrypts, but {lack}.",
        {"candidates": len(candidates), "candidate_client": other.client, "candidate_server": other.server},
    )  # fmt: skip
