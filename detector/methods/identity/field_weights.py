"""The log-likelihood ratio of each header field among an evidence's numbers: written there, read back to be pooled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from detector.methods.identity.agreement import ClassComparison
from pepscope.results.evidence.columns import Figure, rounded
from pepscope.results.verdicts import Number

_PREFIX = "nats_"


class ClassField(NamedTuple):
    """A header field in one class of segments."""

    of: str  # "data" or "acks", pure acknowledgements
    field: str


def class_field_name(field: ClassField) -> str:
    """The field's name among an evidence's numbers."""
    return _name(*field)


@cache
def _name(of: str, field: str) -> str:
    return f"{_PREFIX}{of}_{field.replace('-', '_')}"


def field_figures(of: str, comparison: ClassComparison) -> list[Figure]:
    """Natural-log likelihood ratios for same packets in one class of segments, summed over directions (its rows)."""
    return [
        Figure(_name(of, name), rounded(agreement.nats[0] + agreement.nats[1], 2), agreement.is_compared.any(axis=0))
        for name, agreement in comparison.fields.items()
    ]


def field_nats(numbers: Mapping[str, Number]) -> dict[ClassField, float]:
    """The ratios that `field_figures` wrote; empty where nothing was compared."""
    return {
        ClassField(of, name.replace("_", "-")): float(nats)
        for of in ("data", "acks")
        for written, nats in numbers.items()
        if isinstance(nats, int | float) and (name := written.removeprefix(f"{_PREFIX}{of}_")) != written
    }
