"""Handshakes that wait for the far leg: relays that connect to the server before they answer the client.

Such a relay answers a SYN one hidden leg later than it acknowledges data, and so seems a box that lets handshakes pass
and acknowledges data in the host's name. Handshakes are as long as the whole path, and what the server answers
afterwards takes as long as they do: only acknowledgements without payload show the near leg. So handshakes, and answers
at their speed, say nothing against such a relay; data that are acknowledged as late as the SYN was do. End to end a
handshake is later than data where something held up every one that was seen (a radio that wakes up).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.likelihoods.near.near_ends import UNKNOWN_VARIATION_S
from detector.one_capture.likelihoods.timing_tables import HIDDEN_S, Floats, variation_class
from detector.one_capture.members import Ints

#: Handshakes are later than data by more than what hosts blur where they are so by more than this (s).
LATER_S = 0.01

#: How often something held up the only handshake of a member end to end, and the least of n one n-th as often, by how
#: much round trips vary (s): below each of `_VARIES_S`, above all, and where that is unknown. Counted on 3,000 members
#: (seeds 5401 to 5403): 11, 22, 23 and 65 % with one handshake, 3, 12, 20 and 33 % with two.
_VARIES_S: Floats = np.array([0.0015, 0.006, 0.02])
_HELD_UP: Floats = np.array([0.1, 0.22, 0.3, 0.65, 0.15])

#: Paths that take less (s), and vary as little, cross no access network: no radio wakes up there, and lost SYNs and ARP
#: remain. None of the members that were counted has such a path.
_BESIDE_S, _HELD_UP_BESIDE = 0.001, 0.02

#: Where the handshake waits, how often the difference is not the leg: data were acknowledged by a timer.
_DELAYED = 0.2

#: What hosts blur the difference of two least times by (s), beside what the path varies.
_BLUR_S = 0.001

#: Times that hold a handshake up (s), log-uniform; density (per second) of what nothing explains.
_LEAST_S, _MOST_S = 0.001, 1.0
_NEVER = 1e-6


class WaitingNats(Struct, frozen=True):
    """What least handshakes say beside the least round trips of data, by member.

    `known`: whether both were seen. `legs`: log-likelihood ratio of a handshake that waits for each of `HIDDEN_S`,
    against one that does not wait; of those that are not known it says only that no leg is longer than the handshake.
    """

    known: npt.NDArray[np.bool_]
    legs: Floats

    def of(self, members: Ints) -> WaitingNats:
        """What they say of these members, in this order."""
        return WaitingNats(self.known[members], self.legs[members])


def waiting_nats(handshake_s: Floats, plain_s: Floats, variation_s: Floats, handshakes: Floats) -> WaitingNats:
    """Compare by member the least of so many `handshakes` with the least of its data that packets without payload
    acknowledged (`plain_s`); NaN stands for what is unknown, `variation_s` is how much round trips vary."""
    later_s = handshake_s - plain_s
    known = later_s > -LATER_S  # otherwise data were acknowledged by a timer
    later_s, blur_s = np.nan_to_num(later_s), _BLUR_S + np.nan_to_num(variation_s, nan=UNKNOWN_VARIATION_S)
    is_beside = (plain_s < _BESIDE_S) & ~(variation_s >= _VARIES_S[0])
    beside = _HELD_UP_BESIDE / np.maximum(handshakes, 1)
    held_up = np.where(is_beside, beside, held_up_shares(variation_s, handshakes))
    anything = np.where(
        later_s > _LEAST_S, 1 / (np.maximum(later_s, _LEAST_S) * np.log(_MOST_S / _LEAST_S)), 0.0
    )  # fmt: skip
    end = (1 - held_up) * _around(later_s, blur_s) + held_up * anything + _NEVER
    short_s = HIDDEN_S[None] - later_s[:, None]
    delayed = np.where(short_s > 0, 1 / HIDDEN_S[None], 0.0)
    legs = (1 - _DELAYED) * _around(short_s, blur_s[:, None]) + _DELAYED * delayed + _NEVER
    fits = np.where(HIDDEN_S[None] > handshake_s[:, None], np.log(_NEVER), 0.0)
    return WaitingNats(known, np.where(known[:, None], np.log(legs) - np.log(end)[:, None], fits))


def held_up_shares(variation_s: Floats, handshakes: Floats | Ints) -> Floats:
    """How often something held up the least of so many `handshakes` of a member end to end."""
    shares: Floats = _HELD_UP[variation_class(_VARIES_S, variation_s)] / np.maximum(handshakes, 1)
    return shares


def waits(handshake_s: Floats, plain_s: Floats) -> npt.NDArray[np.bool_]:
    """Whether these least handshakes are later than these least round trips of data, so that they time no leg alone."""
    return np.asarray(handshake_s > plain_s + LATER_S)


def _around(away_s: Floats, blur_s: Floats) -> Floats:
    density: Floats = np.exp(-np.abs(away_s) / blur_s) / (2 * blur_s)
    return density
