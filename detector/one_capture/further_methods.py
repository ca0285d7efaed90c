"""Methods of the registry that have something to say of one capture, connection by connection.

Of pepscope's own only delayed acknowledgements do, where the user gives the delay; those of other distributions are
asked for every connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from detector.options import METHOD_PLUG_INS, DetectOptions
from pepscope.plugins import is_offered

if TYPE_CHECKING:
    from detector.method import Method, Observation
    from detector.pair import Pair
    from detector.pairing.captures import PairedCaptures
    from pepscope.captures.capture import Capture
    from pepscope.results.verdicts import Evidence


class ConnectionsAlone:
    """The connections of one vantage point, counted through its captures, each as a pair of which one side is there."""

    def __init__(self, captures: Sequence[Capture], options: DetectOptions) -> None:
        from detector.pairing.captures import pair_captures

        self._paired: list[PairedCaptures] = [pair_captures(capture, None, options) for capture in captures]

    def pair(self, number: int) -> Pair:
        """One connection with its packets."""
        for paired in self._paired:
            if number < len(paired):
                return paired.pair(paired.matches[number])
            number -= len(paired)
        raise IndexError(f"there is no connection {number}")


def further_methods(options: DetectOptions) -> Sequence[Method]:
    """These methods."""
    if options.ack_delay_s is None and not is_offered(METHOD_PLUG_INS):
        return ()
    from detector.methods import METHODS, delayed_ack, methods

    return [*([delayed_ack.METHOD] if options.ack_delay_s is not None else []), *methods()[len(METHODS) :]]


def further_evidence(
    captures: Sequence[Capture], options: DetectOptions, asked: Sequence[Method]
) -> Callable[[int], tuple[Evidence, ...]] | None:
    """What methods find of a connection, by its number; None where there is no method."""
    if not asked:
        return None
    from detector.method import Observation

    alone = ConnectionsAlone(captures, options)
    return lambda number: _examined(asked, Observation(alone.pair(number)))


def _examined(asked: Sequence[Method], observation: Observation) -> tuple[Evidence, ...]:
    found = [method.alone(observation) for method in asked if method.applies(observation)]
    return tuple(item for item in found if item is not None)
