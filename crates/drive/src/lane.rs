//! A short cut through the commonest chain, one wired link between the hosts: as long as one packet after the other
//! arrives at a host and nothing else is due, no part has to be asked when it wants to be woken. What happens, and in which
//! order, is what [`crate::simulation`] says.

use pepscope_path::{Direction, Hop, Nanoseconds, Wired};
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
        let mut lane = Lane { now: bounds.after, events: 0, waiting: 0 };
        while lane.events < bounds.events && lane.waiting == 0 {
            let (down, up) = (link.next_arrival(Direction::Down), link.next_arrival(Direction::Up));
            let now = down.min(up);
            let is_clear = now > lane.now && now < bounds.before.min(*server_ns).min(*mobile_ns) && down != up;
            if !is_clear {
                break;
            }
            lane.now = now;
            if down < up {
                lane.step::<DOWN>(link, mobile, observers);
                *mobile_ns = mobile.poll_timeout();
            } else {
                lane.step::<UP>(link, server, observers);
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

impl Lane {
    /// Lets one packet arrive at `host` and sends off what it answers.
    #[inline(always)]
    fn step<const IS_DOWN: bool>(&mut self, link: &mut Wired<Packet>, host: &mut Host, observers: &mut Observers) {
        let now = self.now;
        let there = if IS_DOWN { Direction::Down } else { Direction::Up };
        let position = usize::from(IS_DOWN);
        let Some(packet) = link.take_arrival(there) else { return };
        self.events += 2;
        observers.note(position, now, there, &packet);
        if link.next_arrival(there) == now {
            // Another one comes at the same time: all of them arrive before the host answers.
            host.handle_packet(now, &packet);
            self.events += arrive_together(now, there, position, link, host, observers);
            self.waiting = if IS_DOWN { MOBILE } else { SERVER };
            return;
        }
        let mut way = WayBack::<IS_DOWN> { events: 0, now, observers, link };
        host.answer(now, &packet, &mut way);
        self.events += way.events;
        if link.next_arrival(there.opposite()) <= now {
            self.waiting = LINK;
        }
    }
}

/// From a host at which a packet arrived that was on its way down, or up.
struct WayBack<'a, const IS_DOWN: bool> {
    events: u64,
    now: Nanoseconds,
    observers: &'a mut Observers,
    link: &'a mut Wired<Packet>,
}

impl<const IS_DOWN: bool> Outlet for WayBack<'_, IS_DOWN> {
    #[inline(always)]
    fn send(&mut self, mut packet: Packet) {
        let (position, back) = if IS_DOWN { (1, Direction::Up) } else { (0, Direction::Down) };
        self.events += 1;
        stamp(self.now, &mut packet);
        self.observers.note(position, self.now, back, &packet);
        self.link.handle_packet(self.now, back, packet);
    }
}

/// The rest of the packets that arrive at `host` now; how many.
#[cold]
fn arrive_together(
    now: Nanoseconds,
    direction: Direction,
    position: usize,
    link: &mut Wired<Packet>,
    host: &mut Host,
    observers: &mut Observers,
) -> u64 {
    let mut packets = 0;
    while link.next_arrival(direction) == now {
        let Some(packet) = link.take_arrival(direction) else { break };
        packets += 1;
        observers.note(position, now, direction, &packet);
        host.handle_packet(now, &packet);
    }
    packets
}

#[cfg(test)]
mod tests;
