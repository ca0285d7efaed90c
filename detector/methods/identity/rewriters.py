"""Middleboxes that change packets without splitting connections: which of them show in packets that are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from pepscope.captures.tables.texts import are_same
from pepscope.results.evidence.columns import BoolArray, Figure
from pepscope.results.verdicts import FloatArray

if TYPE_CHECKING:
    from detector.methods.identity.comparison import Comparison

#: Below this share of equal windows or IP IDs in packets that are otherwise the same, a middlebox rewrites them.
_REWRITTEN = 0.5
#: ACKs that left and did not arrive, beyond this share: more than ordinary loss.
_THINNED = 0.2


class Rewriter(Struct, frozen=True):
    """A harmless rewriter: its short name and what an engineer should know of it."""

    key: str
    caveat: str


def rewriter_figures(compared: Comparison, asked: BoolArray) -> tuple[Figure, list[Figure]]:
    """The keys of every harmless rewriter that shows between the captures of the asked connections, and what
    `named_rewriters` needs beside them."""
    present = {**_handshake_rewriters(compared), **_segment_rewriters(compared)}
    thinned, shares = _thinned(compared)
    translated = _translated(compared, asked)
    shown = {"nat": np.array([text != "" for text in translated], np.bool_), **present, "ack-thinning": thinned != ""}
    beside = [
        Figure("translated", translated), Figure("thinned", thinned.tolist()), Figure("thinned_share", shares)
    ]  # fmt: skip
    return Figure("rewriters", _joined(shown)), beside


def _translated(compared: Comparison, asked: BoolArray) -> Sequence[str]:
    """Which end points the asked connections have in one capture and in the other, where these differ."""
    near, far = (side.end_points() for side in compared.summaries)
    if all(map(are_same, near, far)):
        return [""] * len(asked)
    ends = zip(*near, *far, asked.tolist(), strict=True)
    return [
        f"{one} appears as {two}" if is_asked and (one != two or to != at) else ""
        for one, to, two, at, is_asked in ends
    ]


def _joined(shown: Mapping[str, BoolArray]) -> list[str]:
    """The keys that are shown of each connection, one behind the other: few combinations occur."""
    codes = sum(are.astype(np.int64) << place for place, are in enumerate(shown.values()))
    different, rows = np.unique(codes, return_inverse=True)
    texts = [", ".join([key for place, key in enumerate(shown) if code >> place & 1]) for code in different.tolist()]
    return [texts[row] for row in rows.tolist()]


#: The figures that name rewriters.
REWRITER_FIGURES = ("rewriters", "translated", "thinned", "thinned_share")


def named_rewriters(figures: Mapping[str, Any]) -> tuple[Rewriter, ...]:
    """The rewriters of one connection."""
    keys = figures["rewriters"].split(", ") if figures["rewriters"] else []
    return tuple([Rewriter(key, _caveat(key, figures)) for key in keys])


def _caveat(key: str, figures: Mapping[str, Any]) -> str:
    if key == "nat":
        return f"A NAT translates addresses or ports: {figures['translated']}."
    if key == "ack-thinning":
        share, way = figures["thinned_share"], figures["thinned"]
        return f"{100 * share:.0f} % of acknowledgements sent {way} do not arrive (thinned or lost)."
    return _CAVEATS[key]


_CAVEATS = {
    "mss-clamping": "A middlebox lowers the MSS option of the handshake.",
    "isn-randomising": "A firewall shifts sequence numbers by a constant.",
    "sack-stripping": "A middlebox removes the SACK option of the handshake.",
    "timestamp-modulating": "A firewall shifts TCP timestamps by a constant.",
    "window-regulator": "A middlebox lowers the advertised receive windows.",
    "window-rewriting": "A middlebox rewrites the advertised receive windows.",
    "ip-id-rewriting": "A middlebox rewrites IP IDs.",
    "offload": "A capturing host shows offload super-packets, not the segments on the wire.",
}


def _handshake_rewriters(compared: Comparison) -> dict[str, BoolArray]:
    """What was changed of the handshake's segments, as they left and as they arrived, where both captures hold them."""

    def at(name: str) -> tuple[FloatArray, FloatArray]:
        near, far = compared.client[name], compared.server[name]
        return np.array([near[0], far[1]]), np.array([far[0], near[1]])

    (numbers_out, numbers_in), (sizes_out, sizes_in) = at("initial_sequence_number"), at("maximum_segment_size")
    known = ~np.isnan(numbers_out) & ~np.isnan(numbers_in)
    sizes_out, sizes_in = np.nan_to_num(sizes_out), np.nan_to_num(sizes_in)
    sack_out, sack_in = at("sack_permitted")
    removed = (sack_out > 0) & (at("options_captured")[1] > 0) & (sack_in == 0)
    return {
        "mss-clamping": (known & (sizes_out > sizes_in) & (sizes_in > 0)).any(axis=0),
        "isn-randomising": (known & (numbers_out != numbers_in)).any(axis=0),
        "sack-stripping": (known & removed).any(axis=0),
    }


def _segment_rewriters(compared: Comparison) -> dict[str, BoolArray]:
    timestamps = ip_ids = lengths = rewritten = np.zeros(len(compared), np.bool_)
    narrowest = np.full(len(compared), np.inf)  # share of the windows that are smaller, where they are others
    for part in compared.classes.values():
        there = part.with_candidate > 0
        ids, windows = part.fields["ip-id"], there & (part.fields["window"].agreeing < _REWRITTEN)
        timestamps = timestamps | (there & ((part.tsval_shift != 0) | (part.tsecr_shift != 0)))
        ip_ids = ip_ids | (there & ids.is_compared & (ids.agreeing < _REWRITTEN))
        lengths = lengths | (there & (part.length_changes > 0.01))
        rewritten = rewritten | windows
        narrowest = np.where(windows, np.minimum(narrowest, part.narrowed_windows), narrowest)
    regulated = rewritten & (narrowest > _REWRITTEN)
    return {
        "timestamp-modulating": timestamps,
        "window-regulator": regulated,
        "window-rewriting": rewritten & ~regulated,
        "ip-id-rewriting": ip_ids,
        "offload": lengths,
    }


def _thinned(compared: Comparison) -> tuple[npt.NDArray[np.str_], FloatArray]:
    """The direction in which acknowledgements were thinned, the first of two, and the share that does not arrive."""
    emitted = compared.counts.emitted_acknowledgements
    share = 1 - compared.acknowledgements.arrived / np.maximum(emitted, 1)
    is_thinned = (emitted >= 20) & (share > _THINNED)
    ways = np.where(is_thinned[0], "up", np.where(is_thinned[1], "down", ""))
    return ways, np.where(is_thinned[0], share[0], share[1])
