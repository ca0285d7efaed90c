//! A short cut through chains of links between the two hosts: as long as one packet after the other arrives somewhere and
//! nothing else is due, no part has to be asked when it wants to be woken. What happens, and in which order, is what
//! [`crate::simulation`] says.

use pepscope_path::{Direction, Line, Nanoseconds, NEVER};
use pepscope_tcp::{Host, Outlet, Packet};

use crate::chain::{stamp, Chain, Observers, Watch};

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
        let at_server = End {
            arriving: observers.watch(0, Direction::Up),
            leaving: observers.watch(0, Direction::Down),
            host: 1 << 0,
            link: 1 << 1,
        };
        let at_mobile = End {
            arriving: observers.watch(LINKS, Direction::Down),
            leaving: observers.watch(LINKS, Direction::Up),
            host: 1 << (LINKS + 1),
            link: 1 << LINKS,
        };
        server.settle_times();
        mobile.settle_times();
        let mut lane = Lane { now: bounds.after, events: 0, waiting: 0 };
        let is_seen = (1..LINKS).any(|gap| observers.watches(gap));
        while lane.events < bounds.events && lane.waiting == 0 {
            let before = bounds.before.min(server.earliest_timeout()).min(mobile.earliest_timeout());
            let next = if LINKS > 2 || is_seen {
                lane.next_arrival_seen(before, &mut down, &mut up, observers)
            } else {
                lane.next_arrival(before, &mut down, &mut up)
            };
            match next {
                Some((now, DOWN)) => {
                    lane.arrive(now, &at_mobile, &mut *down[LINKS - 1], &mut *up[0], mobile, observers)
                }
                Some((now, UP)) => lane.arrive(now, &at_server, &mut *up[LINKS - 1], &mut *down[0], server, observers),
                None => {
                    // Perhaps only because a host told too early a time.
                    server.settle_times();
                    mobile.settle_times();
                    if before == bounds.before.min(server.earliest_timeout()).min(mobile.earliest_timeout()) {
                        break;
                    }
                }
            }
            if bounds.stops_when_finished && server.is_finished() && mobile.is_finished() {
                break;
            }
        }
        if lane.events == 0 {
            return None;
        }
        server.settle_times();
        mobile.settle_times();
        for link in 0..LINKS {
            wake_ups[link + 1] = down[link].first_arrival().min(up[LINKS - 1 - link].first_arrival());
        }
        (wake_ups[0], wake_ups[LINKS + 1]) = (server.poll_timeout(), mobile.poll_timeout());
        Some(lane)
    }
}

/// Where packets leave the links.
#[derive(Clone, Copy)]
struct End {
    /// Who notes them, and those that leave the host there.
    arriving: Watch,
    leaving: Watch,
    /// The host there and the link before it, as bits.
    host: u64,
    link: u64,
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
    /// Lets the first packet of the line `there` arrive at `host` and sends what it answers down the line `back`.
    #[inline(never)]
    fn arrive(
        &mut self,
        now: Nanoseconds,
        end: &End,
        there: &mut Line<Packet>,
        back: &mut Line<Packet>,
        host: &mut Host,
        observers: &mut Observers,
    ) {
        let Some((packet, following)) = there.first() else { return };
        self.now = now;
        if following.arrival == now {
            // All that arrive at one time do so before the host answers.
            self.events += 1 + arrive_together(now, end, there, host, observers);
            self.waiting = end.host;
            return;
        }
        observers.note_at(end.arriving, now, packet);
        let mut way_back = WayBack { packets: 0, end, now, observers, line: back };
        host.answer(now, packet, &mut way_back);
        self.events = self.events.wrapping_add(2).wrapping_add(way_back.packets);
        there.drop_first(following);
        if back.first_arrival() <= now {
            self.waiting = end.link;
        }
    }

    /// When the next packet arrives at a host, and on which way; where there are two links, packets go from one into the
    /// other until then. `None` if that is not before `before`, or if something else happens at the same time.
    #[inline(always)]
    fn next_arrival<const LINKS: usize>(
        &mut self,
        before: Nanoseconds,
        down: &mut Way<'_, LINKS>,
        up: &mut Way<'_, LINKS>,
    ) -> Option<(Nanoseconds, bool)> {
        loop {
            let (down_ns, up_ns) = (down[LINKS - 1].first_arrival(), up[LINKS - 1].first_arrival());
            let last = down_ns.min(up_ns);
            if let ([down_1, down_2], [up_1, up_2]) = (&mut down[..], &mut up[..]) {
                let is_down = down_1.first_arrival() < up_1.first_arrival();
                let now = down_1.first_arrival().min(up_1.first_arrival());
                if now <= last {
                    let is_tied = now == last || down_1.first_arrival() == up_1.first_arrival();
                    if is_tied || now >= before || now <= self.now {
                        return None;
                    }
                    let (line, next): (&mut Line<Packet>, &mut Line<Packet>) =
                        if is_down { (&mut **down_1, &mut **down_2) } else { (&mut **up_1, &mut **up_2) };
                    if !line.pass_first_alone(now, next) {
                        return None;
                    }
                    self.now = now;
                    self.events = self.events.wrapping_add(2);
                    if next.first_arrival() <= now {
                        // It takes no time on the next link either.
                        self.waiting = if is_down { 1 << 2 } else { 1 << 1 };
                        return None;
                    }
                    continue;
                }
            }
            let is_next = last < before && last > self.now && down_ns != up_ns;
            return is_next.then_some((last, down_ns < up_ns));
        }
    }

    /// The same for any number of links, and where somebody looks on between them.
    #[inline(never)]
    fn next_arrival_seen<const LINKS: usize>(
        &mut self,
        before: Nanoseconds,
        down: &mut Way<'_, LINKS>,
        up: &mut Way<'_, LINKS>,
        observers: &mut Observers,
    ) -> Option<(Nanoseconds, bool)> {
        loop {
            let (down_ns, up_ns) = (first_arrivals(down), first_arrivals(up));
            let now = earliest(&down_ns).min(earliest(&up_ns));
            if now <= self.now || now >= before || count(now, &down_ns) + count(now, &up_ns) > 1 {
                return None;
            }
            if down_ns[LINKS - 1] == now || up_ns[LINKS - 1] == now {
                return Some((now, down_ns[LINKS - 1] == now));
            }
            let passes =
                self.pass_on::<DOWN, LINKS>(now, down, observers) || self.pass_on::<UP, LINKS>(now, up, observers);
            if !passes || self.waiting != 0 {
                return None;
            }
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
            let Some((packet, following)) = before.first() else { return false };
            if following.arrival > now {
                observers.note(gap_behind::<IS_DOWN, LINKS>(link - 1), now, direction::<IS_DOWN>(), packet);
            }
            if !before.pass_first_alone(now, behind) {
                return false;
            }
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

/// From a host back into the links.
struct WayBack<'a> {
    packets: u64,
    end: &'a End,
    now: Nanoseconds,
    observers: &'a mut Observers,
    line: &'a mut Line<Packet>,
}

impl Outlet for WayBack<'_> {
    #[inline(always)]
    fn send(&mut self, mut packet: Packet) {
        self.packets = self.packets.wrapping_add(1);
        stamp(self.now, &mut packet);
        self.observers.note_at(self.end.leaving, self.now, &packet);
        self.line.take(self.now, packet);
    }

    #[inline(always)]
    fn send_stamped(&mut self, bytes: u32, packet: &Packet) {
        self.packets = self.packets.wrapping_add(1);
        self.observers.note_at(self.end.leaving, self.now, packet);
        self.line.take_made(self.now, bytes, || *packet);
    }
}

/// All packets of a line that arrive at `host` now; how many.
#[cold]
fn arrive_together(
    now: Nanoseconds,
    end: &End,
    line: &mut Line<Packet>,
    host: &mut Host,
    observers: &mut Observers,
) -> u64 {
    let mut packets = 0;
    while line.first_arrival() == now {
        let Some((packet, following)) = line.first() else { break };
        packets += 1;
        observers.note_at(end.arriving, now, packet);
        host.handle_packet(now, packet);
        line.drop_first(following);
    }
    packets
}

#[cfg(test)]
mod tests;
