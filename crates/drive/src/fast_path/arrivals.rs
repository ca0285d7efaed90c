//! The next packet that arrives at a host, and those that arrive between two links until then.

use pepscope_path::{Datagram, Direction, Nanoseconds, Passage, NEVER};
use pepscope_tcp::Packet;

use super::{Lines, Progress};
use crate::chain::Observers;

#[inline(always)]
pub(super) fn first_arrivals<L: Passage<Packet>, const LINKS: usize>(lines: &Lines<L, LINKS>) -> [Nanoseconds; LINKS] {
    std::array::from_fn(|link| lines[link].first_arrival())
}

#[inline(always)]
pub(super) fn earliest<const LINKS: usize>(times: &[Nanoseconds; LINKS]) -> Nanoseconds {
    times.iter().fold(NEVER, |earliest, &time| earliest.min(time))
}

#[inline(always)]
fn count<const LINKS: usize>(now: Nanoseconds, times: &[Nanoseconds; LINKS]) -> u32 {
    times.iter().map(|&time| u32::from(time == now)).sum()
}

impl Progress {
    /// When the next packet arrives at a host, and in which direction it travels. With two links, packets go from one
    /// into the other until then. `None` if that is not before `before`, or if something else happens at the same time.
    #[inline(always)]
    pub(super) fn next_arrival<L: Passage<Packet>, const LINKS: usize>(
        &mut self,
        before: Nanoseconds,
        down: &mut Lines<L, LINKS>,
        up: &mut Lines<L, LINKS>,
    ) -> Option<(Nanoseconds, Direction)> {
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
                    let (line, next) = if is_down { (down_1, down_2) } else { (up_1, up_2) };
                    if !line.pass_first_alone(now, next) {
                        return None;
                    }
                    self.now = now;
                    self.events = self.events.wrapping_add(2);
                    if next.first_arrival() <= now {
                        // The packet takes no time on the next link either.
                        self.waiting = if is_down { 1 << 2 } else { 1 << 1 };
                        return None;
                    }
                    continue;
                }
            }
            let is_next = last < before && last > self.now && down_ns != up_ns;
            return is_next.then_some((last, if down_ns < up_ns { Direction::Down } else { Direction::Up }));
        }
    }

    /// Passes on what is under way on all links but the last one, as [`super::answers`] does with what enters later.
    pub(super) fn pass_on_early<L: Passage<Packet>, const LINKS: usize>(
        &mut self,
        until: Nanoseconds,
        lines: &mut Lines<L, LINKS>,
    ) {
        for link in 1..LINKS {
            let [before, behind] = &mut lines[link - 1..=link] else { return };
            while before.keeps_order() && (self.now + 1..until).contains(&before.first_arrival()) {
                let arrives_ns = before.first_arrival();
                let Some((packet, following)) = before.first() else { break };
                behind.take_with(arrives_ns, packet.length_bytes(), || *packet);
                before.drop_first(following);
                self.events = self.events.wrapping_add(2);
            }
        }
    }

    /// [`Progress::next_arrival`] for any number of links, and where taps or delays observe packets between them.
    #[inline(never)]
    pub(super) fn next_arrival_observed<L: Passage<Packet>, const LINKS: usize>(
        &mut self,
        before: Nanoseconds,
        down: &mut Lines<L, LINKS>,
        up: &mut Lines<L, LINKS>,
        observers: &mut Observers,
    ) -> Option<(Nanoseconds, Direction)> {
        loop {
            let (down_ns, up_ns) = (first_arrivals(down), first_arrivals(up));
            let now = earliest(&down_ns).min(earliest(&up_ns));
            if now <= self.now || now >= before || count(now, &down_ns) + count(now, &up_ns) > 1 {
                return None;
            }
            if down_ns[LINKS - 1] == now {
                return Some((now, Direction::Down));
            }
            if up_ns[LINKS - 1] == now {
                return Some((now, Direction::Up));
            }
            let passes =
                self.pass_on(now, Direction::Down, down, observers) || self.pass_on(now, Direction::Up, up, observers);
            if !passes || self.waiting != 0 {
                return None;
            }
        }
    }

    /// Moves the packet that arrives between two links `now` from one into the other. Returns `false` and does nothing
    /// if no packet travels in `direction` there or several do.
    #[inline(always)]
    fn pass_on<L: Passage<Packet>, const LINKS: usize>(
        &mut self,
        now: Nanoseconds,
        direction: Direction,
        lines: &mut Lines<L, LINKS>,
        observers: &mut Observers,
    ) -> bool {
        for link in 1..LINKS {
            let [before, behind] = &mut lines[link - 1..=link] else { return false };
            if before.first_arrival() != now {
                continue;
            }
            let Some((packet, following)) = before.first() else { return false };
            // Positions and parts are counted from the server on.
            let (position, part) = match direction {
                Direction::Down => (link, link + 1),
                Direction::Up => (LINKS - link, LINKS - link),
            };
            if following.arrival > now {
                observers.note(position, now, direction, packet);
            }
            if !before.pass_first_alone(now, behind) {
                return false;
            }
            self.now = now;
            self.events += 2;
            if behind.first_arrival() <= now {
                // The packet takes no time on the next link either.
                self.waiting = 1 << part;
            }
            return true;
        }
        false
    }
}
