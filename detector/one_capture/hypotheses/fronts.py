"""Fronts inside a server's own site: what stands there at the server's address, with a leg to the server behind it.

A *balancer* relays everything, whatever is spoken. A *front end* answers TLS handshakes itself, or fetches pages from
afar, so that it stands only before what speaks TLS or HTTP. Both are split points of the site's own, and the network is
not to be accused of them.

Of one host alone the place cannot be told. A leg in the network and one inside the site give the same answers, over the
same access link, so that nothing but priors and references is left: pings and datagrams that a front answers, and a
split point in the network lets pass. Of several hosts each has its own front, and the network has one split point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.hypotheses.habits.crossing_habits import any_habit
from detector.one_capture.hypotheses.natures import WIRED, Crossing, Paths, end_nats
from detector.one_capture.hypotheses.sums import any_leg, log, sum_nats
from detector.one_capture.likelihoods.exchange_nats import ExchangeNats
from detector.one_capture.likelihoods.priors import Priors
from detector.one_capture.likelihoods.timing_tables import HIDDEN_S, LEG_NATS, Floats
from detector.one_capture.likelihoods.waiting_handshakes import WaitingNats
from detector.one_capture.members import Ints

#: Where a balancer connects first each handshake waits for what it balances, so that few have that further away than
#: 5,000 km of fibre and back (s): legs beyond are a twentieth as probable as others, which is assumed.
_WITHIN_SITE_S = 0.05
_WAITING_FRONT_NATS: Floats = np.where(HIDDEN_S < _WITHIN_SITE_S, 0.0, np.log(0.05))
_WAITING_FRONT_NATS -= np.log(np.exp(_WAITING_FRONT_NATS + LEG_NATS).mean())


class FrontNats(Struct, frozen=True):
    """Log-likelihoods by member behind a front of its site, priors included.

    `any`: of any sort, where a balancer's leg is a wire. `wired`: one behind which answers vary no more than a wire to
    what it balances, or fetches from, lets them; where they vary more, that may be all that makes them late, so that no
    leg shows. `as_split`: of any sort, where answers vary behind a balancer as they do behind split points in the
    network: access links and applications are the same.
    """

    any: Floats
    wired: Floats
    as_split: Floats

    def of(self, members: Ints) -> FrontNats:
        """Those of some members."""
        return FrontNats(self.any[members], self.wired[members], self.as_split[members])

    def where_alone(self, alone: npt.NDArray[np.bool_]) -> FrontNats:
        """The same where members that answer `alone` in their groups have fronts that vary as split points do."""
        found = np.where(alone, self.as_split, self.any)
        return FrontNats(found, np.minimum(self.wired, found), self.as_split)

    def or_waiting(self, legs: Floats, waiting: WaitingNats, priors: Priors) -> FrontNats:
        """Or behind balancers that connect to what they balance before they answer a handshake, as often as split
        points in the network do; known where acknowledgements show the balancer itself. `legs` are log-likelihoods of
        legs that everything crosses: what answers take beyond tells neither from the other."""
        every = log(priors.balancer * priors.connects_first) + legs + waiting.legs
        anywhere, within_site = (
            np.where(waiting.known, any_leg(each), -np.inf) for each in (every, every + _WAITING_FRONT_NATS)
        )
        return FrontNats(
            any=np.logaddexp(self.any, within_site),
            wired=np.logaddexp(self.wired, within_site),
            as_split=np.logaddexp(self.as_split, anywhere),
        )


def front_nats(
    nats: ExchangeNats, crossing: Crossing, speaks_web: npt.NDArray[np.bool_], priors: Priors, paths: Paths
) -> FrontNats:
    """What members' exchanges say of fronts, which have such habits as split points have if these are told apart
    (`crossing`). `speaks_web` is whether a member speaks TLS or HTTP."""
    if not priors.balancer + priors.front_end:
        return FrontNats(*[np.full(len(speaks_web), -np.inf)] * 3)
    with np.errstate(divide="ignore"):  # no front end
        of_front_ends = np.log(priors.front_ends(speaks_web))
    found = _by_habit(nats, crossing, of_front_ends, priors, paths)
    if found.any.ndim == 1:
        return found
    return FrontNats(*(any_habit(getattr(found, name)) for name in FrontNats.__struct_fields__))


def joined_fronts(every: Sequence[FrontNats]) -> FrontNats:
    """Those of members one after the other."""
    return FrontNats(*(np.concatenate([getattr(each, name) for each in every]) for name in FrontNats.__struct_fields__))


def _by_habit(nats: ExchangeNats, crossing: Crossing, of_front_ends: Floats, priors: Priors, paths: Paths) -> FrontNats:
    everything, application = crossing.all, crossing.application + paths.natures[:, None]
    of_balancer = log(priors.balancer * (1 - priors.connects_first))
    wire = of_balancer + any_leg(sum_nats(everything[..., :WIRED]) - np.log(WIRED))
    as_split = of_balancer + any_leg(sum_nats(everything + paths.natures[:, None]) + LEG_NATS)
    at_front, by_leg = of_front_ends + end_nats(nats.handshake, paths), sum_nats(application)
    return FrontNats(
        any=np.logaddexp(wire, at_front + any_leg(by_leg)),
        wired=np.logaddexp(wire, at_front + any_leg(sum_nats(application[..., :WIRED]))),
        as_split=np.logaddexp(as_split, at_front + any_leg(by_leg + LEG_NATS)),
    )
