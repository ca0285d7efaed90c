"""Handshakes that something answers for others: SYN proxies and SYN cookies, which split nothing.

Where host and handshake are one, data are acknowledged as fast as the SYN was, or a delayed acknowledgement later. A
box that answers SYNs only and then lets data pass makes the handshake shorter than any acknowledgement of data, by
whatever the path behind it takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.members import Ints

#: Where one host answers both: acknowledgements as fast as the handshake, delayed by Linux's timer, or by another's.
_ALIKE, _DELAYED, _OTHERWISE = 0.75, 0.2, 0.05
_DELAYED_S = (0.038, 0.046)

#: All of several acknowledgements must be delayed otherwise for the least one to be; no share is below this one.
_LEAST_OTHERWISE = 0.02

#: No host delays an acknowledgement longer (RFC 9293 section 3.8.6.3).
LONGEST_DELAY_S = 0.5

#: Behind an answered handshake, the share whose path behind the box is too short to show.
_NEARBY = 0.02

#: How often a handshake's hop limit or shut window shows another sender: of hosts (their route or stack changes), and
#: where something answers for them (unless it stands beside the host, as cookies of its own stack do).
_SHOWN_BY_HOSTS, _SHOWN_IF_ANSWERED = 0.01, 0.9

#: Share of a member's handshakes from which they show another sender.
_MOSTLY = 0.5

#: Density (per second) of round trips that no hypothesis expects.
_NEVER = 1e-6

#: Paths behind the box (s), log-uniform.
_LEAST_S, _MOST_S = 0.001, 1.0


@dataclass(frozen=True, slots=True)
class HandshakeNats:
    """Log-likelihoods by member; what is unknown says nothing (0).

    `as_fast` and `faster`: of the least plain round trip of data, given the least handshake, where one host makes both,
    and where something nearer makes the handshake. `same_sender` and `other_sender`: of the share of handshakes that
    show another sender than data do.
    """

    as_fast: Floats
    faster: Floats
    same_sender: Floats
    other_sender: Floats


def handshake_nats(
    handshake_s: Floats, plain_s: Floats, plain_counts: Ints, variation_s: Floats, answered_share: Floats
) -> HandshakeNats:
    """Compare the handshakes of each member with its data; NaN stands for what is unknown. `plain_s` is the least of
    `plain_counts` round trips of data."""
    beyond_s = plain_s - handshake_s
    known = ~np.isnan(beyond_s)
    beyond_s = np.where(known, beyond_s, 0.0)
    blur_s = _LEAST_S + np.nan_to_num(variation_s)
    alike = np.exp(-np.abs(beyond_s) / blur_s) / (2 * blur_s)
    least_s, most_s = _DELAYED_S
    delayed = np.where((beyond_s > least_s) & (beyond_s < most_s), 1 / (most_s - least_s), 0.0)
    further_s = np.maximum(beyond_s, _LEAST_S)
    anything = np.where(beyond_s > _LEAST_S, 1 / (further_s * np.log(_MOST_S / _LEAST_S)), 0.0)
    otherwise = np.maximum(_OTHERWISE ** np.maximum(plain_counts, 1), _LEAST_OTHERWISE)
    within = np.where(beyond_s < LONGEST_DELAY_S, anything, 0.0)
    one_host = _ALIKE * alike + _DELAYED * delayed + otherwise * within + _NEVER
    answered = (1 - _NEARBY) * anything + _NEARBY * alike + _NEVER
    seen, shown = ~np.isnan(answered_share), np.nan_to_num(answered_share) > _MOSTLY
    return HandshakeNats(
        np.where(known, np.log(one_host), 0.0), np.where(known, np.log(answered), 0.0),
        _of_sign(shown, seen, _SHOWN_BY_HOSTS), _of_sign(shown, seen, _SHOWN_IF_ANSWERED),
    )  # fmt: skip


def _of_sign(shown: npt.NDArray[np.bool_], seen: npt.NDArray[np.bool_], share: float) -> Floats:
    return np.where(seen, np.log(np.where(shown, share, 1 - share)), 0.0)
