"""Encryption at one end only: TLS that ends on the way, or a tunnel of streams. Part of content.

Where both ends of a transfer are paired by shape (`detector.encrypted_legs`) the bytes cannot be compared; that they
are others says by itself that something reads the one stream and writes the other. Where they are not, the candidates
are named.
"""

from __future__ import annotations

from collections.abc import Sequence

from detector.encrypted_legs import Guise, guise
from detector.pair import Pair
from pepscope.connections import Connection
from pepscope.packets import Direction
from pepscope.results import Evidence, Number, Outcome

METHOD = "content"

#: The finding of `name_candidates`.
CANDIDATE = "encrypted-candidate"

_LOOKS = {Guise.TLS: "TLS", Guise.RANDOM: "encrypted", Guise.PLAIN: "not encrypted"}


def examine(pair: Pair) -> Evidence:
    """Say of a pair made by its shape what is encrypted where.

    Findings: `tls-ended` (split: TLS at one end), `encrypted-leg` (split: another encryption at one end).
    """
    client, server = pair.vantages
    looks = [guise(side.payload[Direction.UP]) for side in (client, server)]
    numbers: dict[str, Number] = {
        f"{direction.name.lower()}_{name}_side_bytes": side.flow(direction).stream_bytes
        for direction in Direction
        for name, side in (("client", client), ("server", server))
    }
    finding = "tls-ended" if max(looks) is Guise.TLS else "encrypted-leg"
    what = "TLS ends there" if finding == "tls-ended" else "streams are put into an encrypted tunnel there"
    return Evidence(
        METHOD, Outcome.SPLIT, finding, pair.pairing_confidence,
        f"At the client's side the connection is {_LOOKS[looks[0]]}, at the server's it is {_LOOKS[looks[1]]} and "
        f"carries as much but for what encryption adds: something in between reads one and writes the other; {what}.",
        numbers,
        (
            "Sizes and times made the pair, on the user's word that both captures show the same transfers.",
            "TLS may end at a load balancer that belongs to the server.",
        ),
    )  # fmt: skip


def name_candidates(alone: Pair, candidates: Sequence[tuple[Connection, Guise]]) -> tuple[Evidence, ...]:
    """Name what may be the other leg of a connection without counterpart, and say why that is not enough.

    Finding: `encrypted-candidate` (inapplicable); none without candidates.
    """
    if not candidates:
        return ()
    other, looks = candidates[0]
    more = f" ({len(candidates) - 1} others fit as well)" if len(candidates) > 1 else ""
    lack = (
        "other connections fit as well, or its size says too little"
        if alone.options.same_transfers
        else "other transfers may be of that size at that time, so it takes your word that both captures show the same "
        "transfers (--same-transfers)"
    )
    found = Evidence(
        METHOD, Outcome.INAPPLICABLE, CANDIDATE, 0.0,
        f"In the other capture {other.client} to {other.server} is {_LOOKS[looks]} and carries as much at the same "
        f"time, but for what encryption adds{more}: it may be the other leg of a split that encrypts, but {lack}.",
        {"candidates": len(candidates), "candidate_client": other.client, "candidate_server": other.server},
    )  # fmt: skip
    return (found,)
