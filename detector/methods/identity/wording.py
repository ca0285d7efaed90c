"""The sentences of identity, made of the figures of one connection when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from detector.methods.identity.comparison import Comparison
from detector.methods.identity.rewriters import named_rewriters
from pepscope.results.evidence.columns import Figure, Words

#: Fewer arrived segments than this in the common span are not compared at all: one agrees or differs by chance in what
#: is counted from it (offsets, shifts), and from two on the likelihood ratio itself decides whether they are enough.
FEWEST_SEGMENTS = 2
#: Fields that a sentence names: those of largest weight.
_NAMED_FIELDS = 3


def leading_fields(compared: Comparison, *, agreeing: bool) -> list[Figure]:
    """The fields that support the conclusion, those of largest weight first, with the share that agrees."""
    names = list(dict.fromkeys([*compared.data.fields, *compared.acknowledgements.fields]))
    shape = len(names), len(compared.aligned)
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
    figures = []
    for rank, fields in enumerate(order):
        columns = np.arange(shape[1])
        named = [
            names[field] if weights[field, column] else ""
            for column, field in zip(columns.tolist(), fields.tolist(), strict=True)
        ]
        shares = equal[fields, columns] / np.maximum(compared_in[fields, columns], 1)
        figures += [Figure(f"leading_field_{rank}", named), Figure(f"leading_share_{rank}", shares)]
    return figures


def _field_words(figures: Mapping[str, Any]) -> str:
    """The leading fields with the share that agrees."""
    named = [
        (name, figures[f"leading_share_{rank}"])
        for rank in range(_NAMED_FIELDS)
        if (name := figures[f"leading_field_{rank}"])
    ]
    return ", ".join([f"{name.replace('-', ' ')} ({share:.0%} equal)" for name, share in named])


def _segments(figures: Mapping[str, Any]) -> int:
    """Segments that were compared, in all classes."""
    return sum(figures.get(f"{label}_segments", 0) for label in ("up_data", "up_acks", "down_data", "down_acks"))


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


def partly_same(_: Mapping[str, Any]) -> Words:
    """`partly-same`."""
    return Words(
        "The far end made the acknowledgements, but not the data segments: a middlebox may resegment the data, or "
        "the captures do not belong together."
    )


def same_segments(figures: Mapping[str, Any]) -> Words:
    """`same-packets` and `same-data`, with what rewrites packets on the way."""
    rewriters = named_rewriters(figures)
    but = f" (on the way: {', '.join([r.key for r in rewriters])})" if rewriters else ""
    return Words(
        f"The segments that arrive are the segments that left: {_field_words(figures)} agree over {_segments(figures)} "
        f"segments{but}.",
        tuple([r.caveat for r in rewriters]),
    )


def other_segments(figures: Mapping[str, Any]) -> Words:
    """`other-packets` and `other-acknowledgements`."""
    what = "The same bytes" if figures["same_bytes"] else "Bytes"
    sure = figures["pairing_confidence"] >= 0.99
    return Words(
        f"{what} arrive in segments that the far end never sent: of {_segments(figures)} segments, "
        f"{_field_words(figures)} differ.",
        () if sure else ("The pairing of the two connections is not certain.",),
    )


def too_alike(figures: Mapping[str, Any]) -> Words:
    """`too-alike`."""
    return Words(
        f"{_segments(figures)} segments were compared, but they could be the same packets as well as a relay's own; "
        "TCP timestamps or a longer transfer would decide."
    )
