"""What an unsplittable reference says of a hidden leg: round trips outside TCP to the same host, in the same capture.

A TCP split point does not answer ICMP echo or UDP for a host, so that the reference crosses near leg and hidden leg
where the transport crosses the near leg alone: their difference is the hidden leg's round trip, or zero end to end. Low
quantiles are compared, because queues and slow answers only ever add. A balancer at the host's own address answers the
reference itself: there it says nothing (Goel et al., PAM 2016, compare latencies of layers in this way).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from detector.one_capture.likelihoods.exchange_timing import ExchangeTiming
from detector.one_capture.likelihoods.near.near_ends import UNKNOWN_VARIATION_S, all_slow_share
from detector.one_capture.likelihoods.timing_tables import HIDDEN_S, Floats
from detector.one_capture.members import Ints, quantiles
from detector.one_capture.networks import Places
from pepscope.captures.references import ReferenceKind, References
from pepscope.captures.tables.addresses import address_texts

#: Kinds whose answer takes the host no time. DNS answers may have to ask others first.
PROMPT_KINDS = (ReferenceKind.ICMP_ECHO, ReferenceKind.UDP_ECHO, ReferenceKind.NTP, ReferenceKind.STUN)

#: A QUIC handshake takes cryptography and datagrams of 1,200 bytes: late more often than not.
_LATE = (ReferenceKind.QUIC_INITIAL, ReferenceKind.QUIC_RETURN)

#: How often the least of several references is late, by class: of hosts that answer echo when they have nothing else to
#: do, and of QUIC.
_PROMPT_LATE_SHARE, _QUIC_LATE_SHARE = 0.03, 0.6

#: How often a balancer answers the reference, and what TCP reaches stands further away.
_SITE_SHARE = 0.05

#: Late by (s): from the least that shows to the longest that a program waits.
_LEAST_LATE_S, _MOST_LATE_S = 0.001, 1.0

#: What hosts blur the difference of two low quantiles by (s), beside what the path varies.
_BLUR_S = 0.0015

#: How often all of several are as slow as one at the server's side; at the client's see `near_ends.all_slow_share`.
_ALL_SLOW = 0.3

_LOW = 0.0


class ReferenceNats(Struct, frozen=True):
    """What references say of members: `nats` are log-likelihoods by member (rows) without a leg, then with each of
    `HIDDEN_S`.

    `round_trip_s` is the reference's own, NaN where there is none.
    """

    nats: Floats
    round_trip_s: Floats

    def of(self, members: Ints) -> ReferenceNats:
        """What they say of these members, in this order."""
        return ReferenceNats(self.nats[members], self.round_trip_s[members])


def no_references(members: int) -> ReferenceNats:
    """What nothing says of so many members."""
    return ReferenceNats(np.zeros((members, 1 + len(HIDDEN_S))), np.full(members, np.nan))


def reference_nats(references: References, places: Places, timing: ExchangeTiming, *, at_client: bool) -> ReferenceNats:
    """Compare the references in a capture with the transport's round trips to the same hosts.

    At the server's side several are as slow as one in the share of cases that is assumed, however many they are.
    """
    hosts, host = np.unique(np.asarray(places.member_address), return_inverse=True)
    answering = _hosts_of(tied := references.tied(), hosts.tolist())
    nats, near_s = np.zeros((len(host), 1 + len(HIDDEN_S))), timing.near_s
    shown_s = np.full(len(host), np.nan)
    varies_s = member_variation_s(timing, places)
    for kinds, late_share in ((_LATE, _QUIC_LATE_SHARE), (PROMPT_KINDS, _PROMPT_LATE_SHARE)):
        round_trip_s = np.where(np.isin(tied.kind, kinds), tied.round_trip_ns / 1e9, np.nan)
        low_s = quantiles(round_trip_s, answering, len(hosts), _LOW)[host]
        counted = (answering >= 0) & ~np.isnan(round_trip_s)
        both = np.minimum(np.bincount(answering[counted], minlength=len(hosts))[host], timing.timed_connections)
        shown_s = np.where(np.isnan(low_s), shown_s, low_s)
        known = np.flatnonzero(~np.isnan(low_s) & ~np.isnan(near_s))
        late = np.full(len(known), late_share)
        all_slow = all_slow_share(both[known]) if at_client else np.full(len(known), _ALL_SLOW)
        nats[known] = beyond_nats(low_s[known] - near_s[known], varies_s[known], both[known], late, all_slow)
    return ReferenceNats(nats, shown_s)


def member_variation_s(timing: ExchangeTiming, places: Places) -> Floats:
    """How much the round trips of each member vary, or those of its group's others, which share the near leg."""
    of_groups_s = timing.of_groups(timing.variation_s, places.member_group, len(places.network))[places.member_group]
    known_s = np.where(np.isnan(timing.variation_s), of_groups_s, timing.variation_s)
    return np.where(np.isnan(known_s), np.fmin(UNKNOWN_VARIATION_S, timing.near_s), known_s)


def _hosts_of(references: References, hosts: Sequence[str]) -> Ints:
    """The place in `hosts` of the host that answered each reference; -1 where it is none of them."""
    place = {address: number for number, address in enumerate(hosts)}
    return np.asarray([place.get(str(text), -1) for text in address_texts(references.host_address)], np.int64)


def beyond_nats(beyond_s: Floats, varies_s: Floats, count: Ints, late_share: Floats, all_slow: Floats) -> Floats:
    """Log-likelihoods by member of what its reference takes beyond the transport, without a leg, then with each of
    `HIDDEN_S`; all arguments are by member.

    The least of `count` varies less than one does, unless something slowed them `all_slow` (how often); `late_share` is
    how often it is late by itself.
    """
    legs_s = np.concatenate([[0.0], HIDDEN_S])
    away_s = beyond_s[:, None] - legs_s[None]
    each = [
        np.exp(-np.abs(away_s) / blur) / (2 * blur)
        for blur in (_BLUR_S + varies_s[:, None] / np.maximum(count, 1)[:, None], _BLUR_S + varies_s[:, None])
    ]
    late_share, all_slow = late_share[:, None], all_slow[:, None]
    prompt = (1 - all_slow) * each[0] + all_slow * each[1]
    late_s = np.maximum(away_s, _LEAST_LATE_S)
    late = np.where(away_s > 0, 1 / (late_s * np.log(_MOST_LATE_S / _LEAST_LATE_S)), 0.0)
    # A reference that is shorter than the transport's round trip was lucky: its path was idle.
    never = 1 / (_MOST_LATE_S * 1e3)
    # Behind a split point the leg may go on inside the site, from the balancer that answers the reference.
    short_s = np.maximum(-away_s, _LEAST_LATE_S)
    site = np.where((away_s < 0) & (legs_s > 0), 1 / (short_s * np.log(_MOST_LATE_S / _LEAST_LATE_S)), 0.0)
    prompt_share = 1 - late_share - _SITE_SHARE
    nats = np.log(prompt_share * prompt + late_share * late + _SITE_SHARE * site + never)
    best: Floats = nats - nats.max(axis=1, keepdims=True)
    return best
