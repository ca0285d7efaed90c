"""Detection methods: one file each, one public function `examine(pair, clock) -> Evidence`, one line here."""

from __future__ import annotations

from collections.abc import Callable

from detector.clock import ClockRelation
from detector.methods import (
    ack_timing,
    content,
    delayed_ack,
    early_fin,
    handshake,
    identity,
    progress,
    receive_window,
    single_vantage,
    teardown,
)
from detector.pair import Pair
from pepscope.results import Evidence

Method = Callable[[Pair, ClockRelation], Evidence]

#: In the order in which they are told.
METHODS: tuple[Method, ...] = (
    identity.examine,
    handshake.examine,
    ack_timing.examine,
    delayed_ack.examine,
    progress.examine,
    receive_window.examine,
    content.examine,
    teardown.examine,
    early_fin.examine,
    single_vantage.examine,
)
