"""How sure a pairing is: by what it was made on, and by what comparing the payload showed afterwards.

The numbers are judgements, held against the corpus: of its pairs none is wrong on any ground, so they promise less than
was seen; and captures of different runs put together, which have the same objects in common and no transfer, find
pairs on payload alone only where runs overlap in time. Those end below one half, where no verdict is given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from detector.pair import DatagramLeg, StreamAlignment
from detector.pairing.match import Ground
from pepscope.captures.packets import Direction
from pepscope.results.hypotheses import log_odds, logistic

#: Most confidence where no payload was compared: nothing but numbers and times, and addresses may be used twice.
NUMBERS_AND_TIMES = 0.9

#: Confidence by ground before the payload is compared: what could have been mistaken grows down the list.
CONFIDENCE = {
    Ground.SEQUENCE_NUMBERS: 0.99,
    # Tools that make captures give every connection the same numbers; where both show one transfer of real hosts and
    # a clock is wrong, the packets in common prove it.
    Ground.SEQUENCE_NUMBERS_OTHER_TIME: 0.45,
    Ground.PACKETS: 0.99,
    Ground.END_POINTS: 0.98,
    Ground.END_POINTS_OTHER_TIME: 0.45,
    Ground.PAYLOAD: 0.95,
    Ground.PAYLOAD_AND_TIME: 0.8,
    Ground.PAYLOAD_OF_SEVERAL_HOSTS: 0.8,
    Ground.OWN_LENGTHS: 0.8,
    Ground.PAYLOAD_OTHER_TIME: 0.4,
    Ground.LENGTHS_AND_STARTS: NUMBERS_AND_TIMES,
    Ground.LENGTHS_AND_TIME: 0.8,
    Ground.LENGTHS: 0.5,
    Ground.LENGTHS_OTHER_TIME: 0.3,
    Ground.LAST_LEFT: 0.3,
    # Only with `--same-transfers`, and where no other connection has these sizes and times.
    Ground.ENCRYPTED: 0.8,
    Ground.ALONE: 1.0,
}


#: Grounds that are content alone. Two connections with neither an address nor a request in common, of which one
#: direction agrees and the other does not, are two fetches of one object rather than one fetch through a proxy.
CONTENT = (
    Ground.PAYLOAD,
    Ground.PAYLOAD_AND_TIME,
    Ground.PAYLOAD_OF_SEVERAL_HOSTS,
    Ground.PAYLOAD_OTHER_TIME,
    Ground.OWN_LENGTHS,
    Ground.LENGTHS_AND_STARTS,
    Ground.LENGTHS_AND_TIME,
    Ground.LENGTHS,
)
STRANGERS = 0.3

#: Most confidence where hosts have no address in common: content is all that pairs them, and others may say it.
UNRELATED = 0.8
#: The same where they have one, before times of all pairs together are asked.
RELATED = 0.95

#: Less than this in both directions together is what programs say to everybody: greetings, polls, empty answers. That
#: two connections with no address in common say it is no sign of one transfer.
SMALL_BYTES = 512

#: Least confidence where the same object was asked for at the same time.
SAME_REQUEST = 0.7

#: Grounds that another transfer of the same object has as well.
_OTHER_TIME = (
    Ground.SEQUENCE_NUMBERS_OTHER_TIME,
    Ground.PAYLOAD_OTHER_TIME,
    Ground.END_POINTS_OTHER_TIME,
    Ground.LENGTHS_OTHER_TIME,
)

#: The grounds that these are where the user says that the transfers are the same: then a clock is wrong.
WHEN_THE_SAME = {
    Ground.SEQUENCE_NUMBERS_OTHER_TIME: Ground.SEQUENCE_NUMBERS,
    Ground.PAYLOAD_OTHER_TIME: Ground.PAYLOAD,
    Ground.END_POINTS_OTHER_TIME: Ground.END_POINTS,
}

#: Where other connections have the same content, or may have, comparing it is no further evidence.
_CONTENT_REPEATS = (Ground.PAYLOAD_AND_TIME, Ground.PAYLOAD_OF_SEVERAL_HOSTS, *_OTHER_TIME)

#: Share of compared pieces above which a direction's payload agrees.
AGREES = 0.9

#: Least confidence where one direction's payload agrees and no more than as much of the other's does not: HTTP proxies
#: rewrite the beginning of a request.
ONE_DIRECTION_AGREES = 0.8

#: A UDP flow with the bytes of both directions; what is missing to certainty is a relay of the application's own.
BOTH_DIRECTIONS_CARRIED = 0.97
ONE_DIRECTION_CARRIED = 0.9

#: Reduction where no traffic relates the capture clocks.
CLOCKS_UNRELATED = 0.02


#: Most confidence where another pairing is nearly as good: below one half, so that there is no verdict without looking
#: at the rivals.
RIVALLED = 0.45


#: What starts must say together (nats) to raise the least confidence of equal lengths to `NUMBERS_AND_TIMES`.
STARTS_AGREE_NATS = log_odds(NUMBERS_AND_TIMES) - log_odds(CONFIDENCE[Ground.LENGTHS_OTHER_TIME])


class Transfers(Protocol):
    """What two connections that may be one show of each other. Heads of messages are read where this is asked."""

    @property
    def are_the_same(self) -> bool:
        """Whether the user says that they are one."""

    @property
    def are_related(self) -> bool:
        """Whether they have an address in common."""

    @property
    def asked_alike(self) -> bool:
        """Whether they begin with the same request."""

    @property
    def has_another_answer(self) -> bool:
        """Whether their answers were generated at different times."""

    @property
    def is_small(self) -> bool:
        """Whether both directions together carry less than `SMALL_BYTES`."""

    @property
    def is_beside_identified_ones(self) -> bool:
        """Whether sequence numbers or packets identify other connections of this client to this server, and the
        server's side may be another client's: it names other hosts."""

    @property
    def turns_nats(self) -> float:
        """What their turns show against two transfers (`starts.turns_within`)."""


def pairing_confidence(
    ground: Ground, alignments: Iterable[StreamAlignment], seen: Transfers, one_transfer_nats: float = 0.0
) -> float:
    """The ground's confidence, raised or lowered by what comparing the payload showed.

    `one_transfer_nats` is what all pairs between the same servers show together against strangers, where content is
    the ground (`starts.one_clock`).
    """
    if seen.are_the_same:
        return _by_payload(WHEN_THE_SAME.get(ground, ground), alignments, seen)
    if ground not in CONTENT:
        return _by_payload(ground, alignments, seen)
    if seen.is_beside_identified_ones:
        # Few middleboxes end some of a client's connections to a server and pass others on. Where one of several
        # machines behind the server's address was captured, its other clients say the same, often by one timetable.
        return min(CONFIDENCE[ground], STRANGERS)
    prior, most = RELATED, 1.0
    if not seen.are_related:
        if seen.has_another_answer or seen.is_small:
            return min(CONFIDENCE[ground], STRANGERS)
        # Several hosts say the same: that strangers do as well is no sign, and time alone chose between them.
        prior = STRANGERS if ground is Ground.PAYLOAD_OF_SEVERAL_HOSTS else UNRELATED
        most = UNRELATED
    together = logistic(log_odds(prior) + one_transfer_nats + seen.turns_nats)
    return min(_by_payload(ground, alignments, seen), together, most)


def _by_payload(ground: Ground, alignments: Iterable[StreamAlignment], seen: Transfers) -> float:
    """The ground's confidence by what comparing the payload showed."""
    start = CONFIDENCE[ground]
    if ground is Ground.PACKETS:
        return start  # the same packets are the same transfer, whatever else differs
    compared = [(item.compared, item.matched) for item in alignments if item.compared]
    if not compared:
        return min(start, NUMBERS_AND_TIMES)
    share = sum(count * matched for count, matched in compared) / sum(count for count, _ in compared)
    disagrees = any(matched <= AGREES for _, matched in compared)
    if disagrees and ground in CONTENT and not seen.are_related and not seen.asked_alike:
        return min(start, STRANGERS)
    if share > AGREES:
        return start if ground in _CONTENT_REPEATS else max(start, 0.95)
    if ground not in _CONTENT_REPEATS and share >= 0.5 and any(matched > AGREES for _, matched in compared):
        return max(start, ONE_DIRECTION_AGREES)
    doubtful = start * (0.5 + 0.5 * share)
    # Proxies change headers and shift what follows, so that little need agree where it is looked for.
    return max(doubtful, SAME_REQUEST) if ground not in _OTHER_TIME and seen.asked_alike else doubtful


def leg_confidence(leg: DatagramLeg) -> float:
    """How sure it is that a UDP flow carries the connection that it was paired with."""
    both = len(leg.streams) == len(Direction)
    return (BOTH_DIRECTIONS_CARRIED if both else ONE_DIRECTION_CARRIED) - (0.0 if leg.clock_known else CLOCKS_UNRELATED)
