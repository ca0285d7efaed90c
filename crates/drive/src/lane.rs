//! A short cut through chains of links between the two hosts: as long as one packet after the other arrives somewhere and
//! nothing else is due, no part has to be asked when it wants to be woken. What happens, and in which order, is what
//! [`crate::simulation`] says.

use pepscope_path::{Direction, Line, Nanoseconds, NEVER};
use pepscope_tcp::{Host, Outlet, Packet};

use crate::chain::{stamp, Chain, Observers};

const SERVER: u64 = 1 << 0;

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
        let hosts = Hosts { server: &mut self.server, mobile: &mut self.mobile, wake_ups, observers, bounds };
        match self.hops.as_mut_slice() {
            [first] => {
                let (down, up) = first.lines()?;
                hosts.run([down], [up])
            }
            [first, second] => {
                let ((down_1, up_1), (down_2, up_2)) = (first.lines()?, second.lines()?);
                hosts.run([down_1, down_2], [up_2, up_1])
            }
            [first, second, third] => {
                let ((down_1, up_1), (down_2, up_2)) = (first.lines()?, second.lines()?);
                let (down_3, up_3) = third.lines()?;
                hosts.run([down_1, down_2, down_3], [up_3, up_2, up_1])
            }
            _ => None,
        }
    }
}

/// Everything but the links.
struct Hosts<'a> {
    server: &'a mut Host,
    mobile: &'a mut Host,
    wake_ups: &'a mut [Nanoseconds],
    observers: &'a mut Observers,
    bounds: Bounds,
}

/// The lines of one direction, in the order in which packets go through them.
type Way<'a, const LINKS: usize> = [&'a mut Line<Packet>; LINKS];

const DOWN: bool = true;
const UP: bool = false;

/// Number of the gap between two parts, counted from the server, behind the link that packets go through as number `link`.
#[inline(always)]
const fn gap_behind<const IS_DOWN: bool, const LINKS: usize>(link: usize) -> usize {
    if IS_DOWN {
        link + 1
    } else {
        LINKS - 1 - link
    }
}

const fn direction<const IS_DOWN: bool>() -> Direction {
    if IS_DOWN {
        Direction::Down
    } else {
        Direction::Up
    }
}

impl Hosts<'_> {
    fn run<const LINKS: usize>(self, mut down: Way<'_, LINKS>, mut up: Way<'_, LINKS>) -> Option<Lane> {
        let Self { server, mobile, wake_ups, observers, bounds } = self;
        let (mut server_ns, mut mobile_ns) = (wake_ups[0], wake_ups[LINKS + 1]);
        let mut lane = Lane { now: bounds.after, events: 0, waiting: 0 };
        while lane.events < bounds.events && lane.waiting == 0 {
            let (down_ns, up_ns) = (first_arrivals(&down), first_arrivals(&up));
            let now = earliest(&down_ns).min(earliest(&up_ns));
            let is_too_late = now >= bounds.before.min(server_ns).min(mobile_ns);
            if now <= lane.now || is_too_late || count(now, &down_ns) + count(now, &up_ns) > 1 {
                break;
            }
            let is_done = if down_ns[LINKS - 1] == now {
                lane.arrive::<DOWN, LINKS>(now, &mut down, &mut up, mobile, observers);
                mobile_ns = mobile.poll_timeout();
                true
            } else if up_ns[LINKS - 1] == now {
                lane.arrive::<UP, LINKS>(now, &mut up, &mut down, server, observers);
                server_ns = server.poll_timeout();
                true
            } else {
                lane.pass_on::<DOWN, LINKS>(now, &mut down, observers)
                    || lane.pass_on::<UP, LINKS>(now, &mut up, observers)
            };
            if !is_done || bounds.stops_when_finished && server.is_finished() && mobile.is_finished() {
                break;
            }
        }
        if lane.events == 0 {
            return None;
        }
        for link in 0..LINKS {
            wake_ups[link + 1] = down[link].first_arrival().min(up[LINKS - 1 - link].first_arrival());
        }
        (wake_ups[0], wake_ups[LINKS + 1]) = (server_ns, mobile_ns);
        Some(lane)
    }
}

#[inline(always)]
fn first_arrivals<const LINKS: usize>(way: &Way<'_, LINKS>) -> [Nanoseconds; LINKS] {
    std::array::from_fn(|link| way[link].first_arrival())
}

#[inline(always)]
fn earliest<const LINKS: usize>(times: &[Nanoseconds; LINKS]) -> Nanoseconds {
    times.iter().fold(NEVER, |earliest, &time| earliest.min(time))
}

#[inline(always)]
fn count<const LINKS: usize>(now: Nanoseconds, times: &[Nanoseconds; LINKS]) -> u32 {
    times.iter().map(|&time| u32::from(time == now)).sum()
}

impl Lane {
    /// Lets the first packet on the way `there` arrive at `host` and sends what it answers on the way `back`.
    #[inline(always)]
    fn arrive<const IS_DOWN: bool, const LINKS: usize>(
        &mut self,
        now: Nanoseconds,
        there: &mut Way<'_, LINKS>,
        back: &mut Way<'_, LINKS>,
        host: &mut Host,
        observers: &mut Observers,
    ) {
        self.now = now;
        self.events += 1;
        let line = &mut *there[LINKS - 1];
        let gap = gap_behind::<IS_DOWN, LINKS>(LINKS - 1);
        if line.second_arrival() == now {
            // All that arrive at one time do so before the host answers.
            self.events += arrive_together::<IS_DOWN>(gap, now, line, host, observers);
            self.waiting = if IS_DOWN { 1 << (LINKS + 1) } else { SERVER };
            return;
        }
        let Some(packet) = line.first() else { return };
        observers.note(gap, now, direction::<IS_DOWN>(), packet);
        let mut way_back = WayBack::<IS_DOWN> { events: 1, gap, now, observers, line: &mut *back[0] };
        host.answer(now, packet, &mut way_back);
        self.events += way_back.events;
        line.drop_first();
        if back[0].first_arrival() <= now {
            self.waiting = if IS_DOWN { 1 << LINKS } else { 1 << 1 };
        }
    }

    /// Lets the packet that arrives between two links `now` go from one into the other; `false`, with nothing done, if
    /// there is none on this way or if there are several.
    #[inline(always)]
    fn pass_on<const IS_DOWN: bool, const LINKS: usize>(
        &mut self,
        now: Nanoseconds,
        way: &mut Way<'_, LINKS>,
        observers: &mut Observers,
    ) -> bool {
        for link in 1..LINKS {
            let [before, behind] = &mut way[link - 1..=link] else { return false };
            if before.first_arrival() != now {
                continue;
            }
            if before.second_arrival() == now {
                return false;
            }
            let Some(packet) = before.first() else { return false };
            let gap = gap_behind::<IS_DOWN, LINKS>(link - 1);
            observers.note(gap, now, direction::<IS_DOWN>(), packet);
            behind.take(now, *packet);
            before.drop_first();
            self.now = now;
            self.events += 2;
            if behind.first_arrival() <= now {
                // It takes no time on the next link either.
                self.waiting = 1 << if IS_DOWN { link + 1 } else { LINKS - link };
            }
            return true;
        }
        false
    }
}

/// From a host at which a packet arrived that was on its way down, or up.
struct WayBack<'a, const IS_DOWN: bool> {
    events: u64,
    gap: usize,
    now: Nanoseconds,
    observers: &'a mut Observers,
    line: &'a mut Line<Packet>,
}

impl<const IS_DOWN: bool> Outlet for WayBack<'_, IS_DOWN> {
    #[inline(always)]
    fn send(&mut self, mut packet: Packet) {
        self.events += 1;
        stamp(self.now, &mut packet);
        self.observers.note(self.gap, self.now, direction::<IS_DOWN>().opposite(), &packet);
        self.line.take(self.now, packet);
    }
}

/// All packets of a line that arrive at `host` now; how many.
#[cold]
fn arrive_together<const IS_DOWN: bool>(
    gap: usize,
    now: Nanoseconds,
    line: &mut Line<Packet>,
    host: &mut Host,
    observers: &mut Observers,
) -> u64 {
    let mut packets = 0;
    while line.first_arrival() == now {
        let Some(packet) = line.first() else { break };
        packets += 1;
        observers.note(gap, now, direction::<IS_DOWN>(), packet);
        host.handle_packet(now, packet);
        line.drop_first();
    }
    packets
}

#[cfg(test)]
mod tests;
