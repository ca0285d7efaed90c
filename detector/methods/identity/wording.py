"""The sentences of identity, made of the figures of one connection when they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from detector.methods.identity.agreement import ADDED_STAMPS, PIECES
from detector.methods.identity.comparison import Comparison
from detector.methods.identity.rewriters import REWRITER_FIGURES, named_rewriters
from pepscope._core import row_codes
from pepscope.captures.tables.texts import SlicedTexts, joined
from pepscope.results.evidence.columns import Figure, Words, alike, value_at
from pepscope.results.evidence.growing import Coded

#: Fewer arrived segments than this in the common span are not compared at all: one agrees or differs by chance in what
#: is counted from it (offsets, shifts), and from two on the likelihood ratio itself decides whether they are enough.
FEWEST_SEGMENTS = 2
#: Fields that a sentence names: those of largest weight.
_NAMED_FIELDS = 3
#: What is kept of each.
_LEADING = ("field", "share")
#: Figures with the segments that were compared.
_SEGMENTS = tuple(f"{label}_segments" for label in ("up_data", "up_acks", "down_data", "down_acks"))
#: Fields that are about having an option at all, or about being cut, and what those segments do that differ in it.
_PRESENCE = {
    ADDED_STAMPS: "arrive with timestamps that they left without",
    "timestamps-present": "have timestamps at one end only",
    PIECES: "arrive in pieces",
}
#: Fields and shares that are put into words once: of most connections all segments agree.
_REMEMBERED = 1024


def leading_fields(compared: Comparison, *, agreeing: bool) -> list[Figure]:
    """The fields that support the conclusion, those of largest weight first, with the share that agrees."""
    names = list(dict.fromkeys([*compared.data.fields, *compared.acknowledgements.fields]))
    shape = len(names), len(compared)
    weights, compared_in, equal = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    first = np.full(shape, np.inf)  # of equal weights the field that comes first
    for number, part in enumerate(compared.classes.values()):
        for place, (name, agreement) in enumerate(part.fields.items()):
            field = names.index(name)
            supports = agreement.nats > 0 if agreeing else agreement.nats < 0
            weights[field] += np.where(supports, np.abs(agreement.nats), 0.0)
            compared_in[field] += np.where(supports, agreement.compared, 0)
            equal[field] += np.where(supports, agreement.compared * agreement.agreeing, 0.0)
            first[field] = np.minimum(first[field], np.where(supports, number * len(names) + place, np.inf))
    order = np.lexsort((first, -weights), axis=0)[:_NAMED_FIELDS]
    figures, texts = [], [*names, ""]
    for rank, fields in enumerate(order):
        columns = np.arange(shape[1])
        named = [texts[field] for field in np.where(weights[fields, columns] != 0, fields, len(names)).tolist()]
        shares = equal[fields, columns] / np.maximum(compared_in[fields, columns], 1)
        figures += [Figure(f"leading_field_{rank}", named), Figure(f"leading_share_{rank}", shares)]
    return figures


def _differing(figures: Mapping[str, Any]) -> str:
    """What the leading fields show of segments that differ."""
    named = [(figures[f"leading_field_{rank}"], figures[f"leading_share_{rank}"]) for rank in range(_NAMED_FIELDS)]
    fields = _agreeing(tuple([value for each in named if each[0] not in _PRESENCE for value in each]))
    parts = [f"{fields} differ"] if fields else []
    parts += [f"{100 * (1 - share):.0f} % {_PRESENCE[name]}" for name, share in named if name in _PRESENCE]
    return ", and ".join(parts)


@lru_cache(_REMEMBERED)
def _agreeing(fields: tuple[Any, ...]) -> str:
    """Names of fields, each with the share that agrees, in words; an empty name stands for none."""
    named = zip(fields[::2], fields[1::2], strict=True)
    return ", ".join([f"{name.replace('-', ' ')} ({100 * share:.0f} % equal)" for name, share in named if name])


def _segments(figures: Mapping[str, Any]) -> int:
    """Segments that were compared, in all classes."""
    return sum(figures.get(name, 0) for name in _SEGMENTS)


def too_few(figures: Mapping[str, Any]) -> Words:
    """`too-few-segments`."""
    return Words(
        f"The captures share {figures['arrived']} comparable segments of this connection; {FEWEST_SEGMENTS} are needed."
    )


def acks_nobody_sent(_: Mapping[str, Any]) -> Words:
    """Why data is proven but acknowledgements are not: a middlebox makes or rewrites them."""
    return Words(
        "Data segments arrive as the far end made them, but acknowledgements arrive that the far end never sent: a "
        "middlebox makes or rewrites ACKs."
    )


def acks_ahead(figures: Mapping[str, Any]) -> Words:
    """`acks-ahead-of-receiver`."""
    ahead, of_client = figures["acks_ahead"], figures["ahead_of_client"]
    if 0 < of_client < ahead:
        names, itself, own = "both hosts' names", "these", "their own"
    else:
        host = "client" if of_client else "server"
        names, itself, own = f"the {host}'s name", f"the {host} itself", "its own"
    return Words(
        f"A middlebox acknowledges in {names}: {ahead:,} acknowledgements arrived for bytes that {itself} had not "
        f"acknowledged yet, as later timestamps of {own} show."
    )


def partly_same(_: Mapping[str, Any]) -> Words:
    """`partly-same`."""
    return Words(
        "The far end made the acknowledgements, but not the data segments: a middlebox may resegment the data, or "
        "the captures do not belong together."
    )


def same_segments(figures: Mapping[str, Any]) -> Words:
    """`same-packets` and `same-data`, with what rewrites packets on the way."""
    (summary,), (caveats,) = same_segments_of_many({name: (value,) for name, value in figures.items()})
    return Words(summary, caveats)


def same_segments_of_many(figures: Mapping[str, Any]) -> tuple[SlicedTexts, Coded[tuple[str, ...]]]:
    """The same of many connections, each figure a column."""
    leading = [figures[f"leading_{what}_{rank}"] for rank in range(_NAMED_FIELDS) for what in _LEADING]
    rewriters = figures["rewriters"]
    counted = [np.asarray(figures[name], np.int64) for name in _SEGMENTS if name in figures]
    segments = np.sum([np.zeros(len(rewriters), np.int64), *counted], axis=0)
    fields, boxes, counts = _different(*leading), _different(rewriters), _different(segments)
    summaries = joined(
        len(rewriters),
        ["The segments that arrive are the segments that left: ", " agree over ", " segments", "."],
        [
            (fields.codes, [_agreeing(each) for each in fields.values]),
            (counts.codes, [f"{count:,}" for (count,) in counts.values]),
            (boxes.codes, [f" (on the way: {each})" if each else "" for (each,) in boxes.values]),
        ],
    )
    known: dict[tuple[str, ...], int] = {(): 0}
    codes = np.zeros(len(rewriters), np.uint32)
    are_named = np.array([each != "" for (each,) in boxes.values], np.bool_)
    for row in np.flatnonzero(are_named[boxes.codes]).tolist():
        named = named_rewriters({name: figures[name][row] for name in REWRITER_FIGURES})
        codes[row] = known.setdefault(tuple([each.caveat for each in named]), len(known))
    return summaries, Coded(codes, [*known])


def _different(*columns: Sequence[Any]) -> Coded[tuple[Any, ...]]:
    """The rows of columns, of which each that occurs is listed once."""
    codes, first = row_codes([*map(alike, columns)])
    rows = [tuple([value_at(column, row) for column in columns]) for row in first.tolist()]
    return Coded(codes.astype(np.uint32), rows)


def other_segments(figures: Mapping[str, Any]) -> Words:
    """`other-packets` and `other-acknowledgements`."""
    what = "The same bytes" if figures["same_bytes"] else "Bytes"
    sure = figures["pairing_confidence"] >= 0.99
    return Words(
        f"{what} arrive in segments that the far end never sent: of {_segments(figures):,} segments, "
        f"{_differing(figures)}.",
        () if sure else ("The pairing of the two connections is not certain.",),
    )


def too_alike(figures: Mapping[str, Any]) -> Words:
    """`too-alike`."""
    return Words(
        f"{_segments(figures)} segments were compared, but they could be the same packets as well as a relay's own; "
        "TCP timestamps or a longer transfer would decide."
    )
