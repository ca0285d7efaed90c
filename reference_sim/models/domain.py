"""The domain in which a model is valid."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from pepscope.errors import PepscopeError

P = ParamSpec("P")
R = TypeVar("R")


class OutsideDomainError(PepscopeError):
    """An argument outside a model's domain; the message names it, its allowed range and its value."""


def computable(model: Callable[P, R]) -> Callable[P, R]:
    """A model that refuses arguments for which its arithmetic leaves the range of floating-point numbers."""

    @wraps(model)
    def compute(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            found = model(*arguments, **named)
        except ArithmeticError:
            found = None
        if found is None or (isinstance(found, float) and not math.isfinite(found)):
            raise OutsideDomainError("arguments must be within the range of floating-point numbers")
        return found

    return compute


def require_positive(name: str, value: float) -> None:
    """Refuse what is not above 0 and finite. Raises OutsideDomainError."""
    _require(name, value, math.isfinite(value) and value > 0.0, "above 0")


def require_at_least_one(name: str, value: float) -> None:
    """Refuse what is below 1. Raises OutsideDomainError."""
    _require(name, value, value >= 1.0, "at least 1")


def require_probability(name: str, value: float, most: float | None = None, reason: str = "") -> None:
    """Refuse what is not above 0 and below 1, or above `most` for a `reason`. Raises OutsideDomainError."""
    if most is None:
        _require(name, value, 0.0 < value < 1.0, "above 0 and below 1")
    else:
        _require(name, value, 0.0 < value <= most, f"above 0 and at most {most:g}, since {reason}")


def _require(name: str, value: float, holds: bool, allowed: str) -> None:
    if not holds:
        raise OutsideDomainError(f"{name} must be {allowed}, got {value:g}")
