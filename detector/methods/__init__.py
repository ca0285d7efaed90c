"""The registry of detection methods: one line each, in the order in which pages and JSON show what they found.

Other distributions add methods by entry points of the group `pepscope.methods` that name a `detector.method.Method`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from detector.method import Method
from detector.methods import (
    ack_timing,
    content,
    delayed_ack,
    early_fin,
    handshake,
    identity,
    one_place,
    progress,
    receive_window,
    single_vantage,
    teardown,
)
from detector.options import METHOD_PLUG_INS
from pepscope.errors import PepscopeError
from pepscope.plugins import loaded
from pepscope.results.finding import Finding, weighted_findings

METHODS: tuple[Method, ...] = (
    one_place.METHOD,
    content.UNPAIRED,
    handshake.WITHOUT_SERVER,
    content.ENCRYPTION,
    identity.TRANSPORT,
    identity.METHOD,
    handshake.METHOD,
    ack_timing.METHOD,
    delayed_ack.METHOD,
    progress.METHOD,
    receive_window.METHOD,
    content.METHOD,
    teardown.METHOD,
    early_fin.METHOD,
    single_vantage.METHOD,
)


@cache
def methods() -> tuple[Method, ...]:
    """Every method: ours, then those of other distributions by the name of their entry point.

    Raises PepscopeError for an entry point that cannot be used.
    """
    others = loaded(METHOD_PLUG_INS, Method)
    for method in others:
        if any(method.name == own.name for own in METHODS):
            raise PepscopeError(
                f"a plug-in of {METHOD_PLUG_INS} must have a name that no method of pepscope has: {method.name}"
            )
    every = (*METHODS, *others)
    try:
        _weighted(every)
    except ValueError as error:
        raise PepscopeError(f"a plug-in of {METHOD_PLUG_INS} must have findings of its own: {error}") from error
    return every


def findings() -> dict[str, Finding]:
    """Every finding of a method that has a weight, by its key in JSON."""
    return _weighted(methods())


def _weighted(of: Iterable[Method]) -> dict[str, Finding]:
    return weighted_findings(kind for method in of for kind in method.findings)
