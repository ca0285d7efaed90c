//! A short cut through the commonest chain, one wired link between the hosts: as long as one packet after the other
//! arrives at a host and nothing else is due, no part has to be asked when it wants to be woken. What happens, and in which
//! order, is what [`crate::simulation`] says.

use pepscope_path::{Direction, Hop, Nanoseconds, WiredLine};
use pepscope_tcp::{Host, Outlet, Packet};

use crate::chain::{stamp, Chain, Observers};
use crate::element::PathElement;

const SERVER: u64 = 1 << 0;
const LINK: u64 = 1 << 1;
const MOBILE: u64 = 1 << 2;

/// How far the short cut may be taken.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// Only arrivals later than that are looked at,
    pub(crate) after: Nanoseconds,
    /// and earlier than that,
    pub(crate) before: Nanoseconds,
    /// and about so many events.
    pub(crate) events: u64,
    /// It matters when both hosts have finished.
    pub(crate) stops_when_finished: bool,
}

/// What was done.
pub(crate) struct Lane {
    pub(crate) now: Nanoseconds,
    /// Wake-ups and packets.
    pub(crate) events: u64,
    /// Parts that have something to hand on now, as bits.
    pub(crate) waiting: u64,
}

impl Chain {
    /// Takes the short cut as far as it goes; `None` if that is nowhere.
    #[inline]
    pub(crate) fn run_lane(
        &mut self,
        wake_ups: &mut [Nanoseconds],
        observers: &mut Observers,
        bounds: Bounds,
    ) -> Option<Lane> {
        #[cfg(test)]
        if !self.takes_short_cut {
            return None;
        }
        let ([PathElement::Wired(link)], [server_ns, link_ns, mobile_ns]) = (self.hops.as_mut_slice(), wake_ups) else {
            return None;
        };
        let (server, mobile) = (&mut *self.server, &mut *self.mobile);
        let (down, up) = link.lines();
        let mut lane = Lane { now: bounds.after, events: 0, waiting: 0 };
        while lane.events < bounds.events && lane.waiting == 0 {
            let (down_ns, up_ns) = (down.first_arrival(), up.first_arrival());
            let now = down_ns.min(up_ns);
            let before = bounds.before.min(*server_ns).min(*mobile_ns);
            if now <= lane.now || now >= before || down_ns == up_ns {
                break;
            }
            lane.now = now;
            if down_ns < up_ns {
                lane.step::<DOWN>(down, up, mobile, observers);
                *mobile_ns = mobile.poll_timeout();
            } else {
                lane.step::<UP>(up, down, server, observers);
                *server_ns = server.poll_timeout();
            }
            if bounds.stops_when_finished && server.is_finished() && mobile.is_finished() {
                break;
            }
        }
        *link_ns = link.poll_timeout();
        (lane.events > 0).then_some(lane)
    }
}

const DOWN: bool = true;
const UP: bool = false;

/// Of the direction in which packets arrive: where they do, and which way.
const fn end_of(is_down: bool) -> (usize, Direction) {
    if is_down {
        (1, Direction::Down)
    } else {
        (0, Direction::Up)
    }
}

impl Lane {
    /// Lets the first packet of the line `there` arrive at `host` and sends what it answers down the line `back`.
    #[inline(always)]
    fn step<const IS_DOWN: bool>(
        &mut self,
        there: &mut WiredLine<Packet>,
        back: &mut WiredLine<Packet>,
        host: &mut Host,
        observers: &mut Observers,
    ) {
        let now = self.now;
        self.events += 1;
        if there.second_arrival() == now {
            // All that arrive at one time do so before the host answers.
            self.events += arrive_together::<IS_DOWN>(now, there, host, observers);
            self.waiting = if IS_DOWN { MOBILE } else { SERVER };
            return;
        }
        let Some(packet) = there.first() else { return };
        let (position, direction) = end_of(IS_DOWN);
        observers.note(position, now, direction, packet);
        let mut way = WayBack::<IS_DOWN> { events: 1, now, observers, line: back };
        host.answer(now, packet, &mut way);
        self.events += way.events;
        there.drop_first();
        if back.first_arrival() <= now {
            self.waiting = LINK;
        }
    }
}

/// From a host at which a packet arrived that was on its way down, or up.
struct WayBack<'a, const IS_DOWN: bool> {
    events: u64,
    now: Nanoseconds,
    observers: &'a mut Observers,
    line: &'a mut WiredLine<Packet>,
}

impl<const IS_DOWN: bool> Outlet for WayBack<'_, IS_DOWN> {
    #[inline(always)]
    fn send(&mut self, mut packet: Packet) {
        let (position, direction) = end_of(IS_DOWN);
        self.events += 1;
        stamp(self.now, &mut packet);
        self.observers.note(position, self.now, direction.opposite(), &packet);
        self.line.take(self.now, packet);
    }
}

/// All packets of a line that arrive at `host` now; how many.
#[cold]
fn arrive_together<const IS_DOWN: bool>(
    now: Nanoseconds,
    line: &mut WiredLine<Packet>,
    host: &mut Host,
    observers: &mut Observers,
) -> u64 {
    let (position, direction) = end_of(IS_DOWN);
    let mut packets = 0;
    while line.first_arrival() == now {
        let Some(packet) = line.first() else { break };
        packets += 1;
        observers.note(position, now, direction, packet);
        host.handle_packet(now, packet);
        line.drop_first();
    }
    packets
}

#[cfg(test)]
mod tests;
