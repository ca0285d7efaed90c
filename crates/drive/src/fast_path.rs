//! The fast path of the driver, for chains of one to three links between the two hosts.
//!
//! While single packets arrive one after the other and nothing else is due, the driver takes each from line to line and
//! from the last line to the host itself, without polling every part for its next event. It stops before anything
//! else: two arrivals at one time, a timer, a sample, the end of the run. What happens, and at each host in which order,
//! is what the general loop of [`crate::simulation`] would do; over one link, hosts take turns. `tests/fast_path.rs`
//! compares both loops for every congestion control over every kind of link, and the tests of this module over random
//! chains.

use pepscope_path::{Direction, Hop, Nanoseconds, Passage};
use pepscope_tcp::{Host, Packet};

use crate::chain::{Chain, Observers};
use crate::element::PathElement;
use answers::Answers;
use arrivals::{earliest, first_arrivals};
use ends::End;
use turns::may_take_turns;

/// How far the fast path may go.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// It handles arrivals later than this.
    pub(crate) after: Nanoseconds,
    /// It handles arrivals earlier than this.
    pub(crate) before: Nanoseconds,
    /// It stops after about this many events.
    pub(crate) events: u64,
    /// It stops when both hosts have finished; the run then goes on for so long.
    pub(crate) stop_after_finish_ns: Option<Nanoseconds>,
}

impl Bounds {
    /// Nothing looks at the whole before then, whatever happens at `now`.
    #[inline(always)]
    fn unobserved_until(&self, now: Nanoseconds) -> Nanoseconds {
        self.stop_after_finish_ns.map_or(self.before, |after_ns| self.before.min(now.saturating_add(after_ns)))
    }
}

/// How far the fast path went.
pub(crate) struct Progress {
    pub(crate) now: Nanoseconds,
    /// Wake-ups and packets.
    pub(crate) events: u64,
    /// Parts that have something to hand on now, as bits.
    pub(crate) waiting: u64,
    /// When the last host finished, if one did meanwhile.
    pub(crate) finished_ns: Nanoseconds,
}

impl Chain {
    /// Runs the fast path as far as it goes; `None` if it can do nothing. It is a function of its own because the loop
    /// below runs a few per cent slower inside that of the simulation.
    #[inline(never)]
    pub(crate) fn run_fast_path(
        &mut self,
        wake_ups: &mut [Nanoseconds],
        observers: &mut Observers,
        bounds: Bounds,
    ) -> Option<Progress> {
        if !self.has_fast_path {
            return None;
        }
        let hosts = Hosts { server: &mut self.server, mobile: &mut self.mobile, wake_ups, observers, bounds };
        if self.hops.iter_mut().any(|hop| hop.lines().is_none()) {
            return hosts.run_through_passages(&mut self.hops);
        }
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
type Lines<L, const LINKS: usize> = [L; LINKS];

impl Hosts<'_> {
    /// [`Chain::run_fast_path`] through hops some of which are more than lines.
    #[inline(never)]
    fn run_through_passages(self, hops: &mut [PathElement]) -> Option<Progress> {
        match hops {
            [first] => {
                let (down, up) = first.passages()?;
                self.run([down], [up])
            }
            [first, second] => {
                let ((down_1, up_1), (down_2, up_2)) = (first.passages()?, second.passages()?);
                self.run([down_1, down_2], [up_2, up_1])
            }
            [first, second, third] => {
                let ((down_1, up_1), (down_2, up_2)) = (first.passages()?, second.passages()?);
                let (down_3, up_3) = third.passages()?;
                self.run([down_1, down_2, down_3], [up_3, up_2, up_1])
            }
            _ => None,
        }
    }

    fn run<L: Passage<Packet>, const LINKS: usize>(
        mut self,
        mut down: Lines<L, LINKS>,
        mut up: Lines<L, LINKS>,
    ) -> Option<Progress> {
        let ends = End::both(self.observers, &down, &up);
        self.server.refresh_timeouts();
        self.mobile.refresh_timeouts();
        let progress = if may_take_turns(&ends, LINKS, &self.bounds) {
            self.take_turns(&ends, &mut down, &mut up)
        } else {
            self.go_in_order(&ends, &mut down, &mut up)
        };
        if progress.events == 0 {
            return None;
        }
        let Self { server, mobile, wake_ups, .. } = self;
        server.refresh_timeouts();
        mobile.refresh_timeouts();
        for link in 0..LINKS {
            wake_ups[link + 1] = down[link].first_arrival().min(up[LINKS - 1 - link].first_arrival());
        }
        (wake_ups[0], wake_ups[LINKS + 1]) = (server.poll_timeout(), mobile.poll_timeout());
        Some(progress)
    }

    /// Goes from one event to the next one, whichever host's it is.
    fn go_in_order<L: Passage<Packet>, const LINKS: usize>(
        &mut self,
        [at_server, at_mobile]: &[End; 2],
        down: &mut Lines<L, LINKS>,
        up: &mut Lines<L, LINKS>,
    ) -> Progress {
        let (server_takes_time, mobile_takes_time) = (self.server.takes_time(), self.mobile.takes_time());
        let takes_time = server_takes_time || mobile_takes_time;
        let Self { server, mobile, observers, bounds, .. } = self;
        let mut progress = Progress { now: bounds.after, events: 0, waiting: 0, finished_ns: 0 };
        progress.pass_on_early(at_server.passes_until(bounds.after, bounds), down);
        progress.pass_on_early(at_mobile.passes_until(bounds.after, bounds), up);
        while progress.events < bounds.events && progress.waiting == 0 {
            let before = bounds.before.min(server.earliest_timeout()).min(mobile.earliest_timeout());
            let next = if LINKS > 2 || at_server.is_observed_behind {
                progress.next_arrival_observed(before, down, up, observers)
            } else {
                progress.next_arrival(before, down, up)
            };
            match next {
                Some((now, Direction::Down)) if mobile_takes_time => {
                    let lines = (&mut down[LINKS - 1], &mut *up);
                    let until = now.saturating_add(at_mobile.least_delay_ns);
                    progress.arrive_at_machine(now, at_mobile, lines, until, mobile, observers, bounds);
                }
                Some((now, Direction::Up)) if server_takes_time => {
                    let lines = (&mut up[LINKS - 1], &mut *down);
                    let until = now.saturating_add(at_server.least_delay_ns);
                    progress.arrive_at_machine(now, at_server, lines, until, server, observers, bounds);
                }
                Some((now, Direction::Down)) => {
                    let lines = (&mut down[LINKS - 1], &mut *up);
                    progress.arrive(now, at_mobile, lines, mobile, observers, bounds);
                }
                Some((now, Direction::Up)) => {
                    let lines = (&mut up[LINKS - 1], &mut *down);
                    progress.arrive(now, at_server, lines, server, observers, bounds);
                }
                None if takes_time => {
                    let due = [server.earliest_timeout(), mobile.earliest_timeout()];
                    if before == bounds.before || !progress.is_alone(before, &due, down, up) {
                        break;
                    }
                    if due[0] < due[1] {
                        let lines = (&mut up[LINKS - 1], &mut *down);
                        let until = before.saturating_add(at_server.least_delay_ns);
                        progress.wake(before, at_server, lines, until, server, observers, bounds);
                    } else {
                        let lines = (&mut down[LINKS - 1], &mut *up);
                        let until = before.saturating_add(at_mobile.least_delay_ns);
                        progress.wake(before, at_mobile, lines, until, mobile, observers, bounds);
                    }
                }
                None => {
                    // The timeouts of a host on its fast path may be too early: look again with the right ones.
                    server.refresh_timeouts();
                    mobile.refresh_timeouts();
                    if before == bounds.before.min(server.earliest_timeout()).min(mobile.earliest_timeout()) {
                        break;
                    }
                }
            }
            if bounds.stop_after_finish_ns.is_some() && server.is_finished() && mobile.is_finished() {
                progress.finished_ns = progress.now;
                break;
            }
        }
        progress
    }
}

impl Progress {
    /// Whether one of the timeouts `due` is at `now`, and nothing arrives by then.
    #[inline(always)]
    fn is_alone<L: Passage<Packet>, const LINKS: usize>(
        &self,
        now: Nanoseconds,
        due: &[Nanoseconds; 2],
        down: &Lines<L, LINKS>,
        up: &Lines<L, LINKS>,
    ) -> bool {
        now > self.now && due[0] != due[1] && earliest(&first_arrivals(down)).min(earliest(&first_arrivals(up))) > now
    }

    /// Lets `host` do what is due, and hands what leaves it to the lines `back`. What is not under way on the line `there`
    /// does not arrive before `until`.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn wake<L: Passage<Packet>, const LINKS: usize>(
        &mut self,
        now: Nanoseconds,
        end: &End,
        (there, back): (&mut L, &mut Lines<L, LINKS>),
        until: Nanoseconds,
        host: &mut Host,
        observers: &mut Observers,
        bounds: &Bounds,
    ) {
        if !host.is_due(now) {
            return;
        }
        self.now = now;
        let next_ns = there.first_arrival().min(until);
        let mut answers = Answers { events: 0, end, now, next_ns, bounds, observers, lines: back };
        host.wake(now, &mut answers);
        self.events = self.events.wrapping_add(1).wrapping_add(answers.events);
        if !end.has_delay && back[0].first_arrival() <= now {
            self.waiting = end.link;
        }
    }

    /// Hands the first packet of the line `there` to `host`, and the host's answers to the lines `back`.
    #[inline(never)]
    fn arrive<L: Passage<Packet>, const LINKS: usize>(
        &mut self,
        now: Nanoseconds,
        end: &End,
        (there, back): (&mut L, &mut Lines<L, LINKS>),
        host: &mut Host,
        observers: &mut Observers,
        bounds: &Bounds,
    ) {
        let Some((packet, following)) = there.first() else { return };
        self.now = now;
        if following.arrival == now {
            self.arrive_together(now, end, (there, back), host, observers, bounds);
            return;
        }
        observers.note_at(end.arriving, now, packet);
        let mut answers = Answers { events: 0, end, now, next_ns: now, bounds, observers, lines: back };
        host.answer(now, packet, &mut answers);
        self.events = self.events.wrapping_add(2).wrapping_add(answers.events);
        there.drop_first(following);
        if !end.has_delay && back[0].first_arrival() <= now {
            self.waiting = end.link;
        }
    }

    /// [`Progress::arrive`] at a machine that takes time, which serves the packet later, but at once where nothing comes
    /// before. What is not under way on the line `there` does not arrive before `until`.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn arrive_at_machine<L: Passage<Packet>, const LINKS: usize>(
        &mut self,
        now: Nanoseconds,
        end: &End,
        (there, back): (&mut L, &mut Lines<L, LINKS>),
        until: Nanoseconds,
        host: &mut Host,
        observers: &mut Observers,
        bounds: &Bounds,
    ) {
        let Some((packet, following)) = there.first() else { return };
        self.now = now;
        let next_ns = following.arrival.min(until);
        if following.arrival == now {
            self.arrive_together(now, end, (there, back), host, observers, bounds);
            return;
        }
        observers.note_at(end.arriving, now, packet);
        let undisturbed_until = end.leaves_until(now, next_ns, bounds).min(next_ns);
        let mut answers = Answers { events: 0, end, now, next_ns, bounds, observers, lines: back };
        let is_served = host.receive(now, packet, undisturbed_until, &mut answers);
        self.events = self.events.wrapping_add(2 + u64::from(is_served)).wrapping_add(answers.events);
        there.drop_first(following);
    }

    /// [`Progress::arrive`] of several packets: all that arrive at one time do so before the host answers.
    #[inline(never)]
    fn arrive_together<L: Passage<Packet>, const LINKS: usize>(
        &mut self,
        now: Nanoseconds,
        end: &End,
        (there, back): (&mut L, &mut Lines<L, LINKS>),
        host: &mut Host,
        observers: &mut Observers,
        bounds: &Bounds,
    ) {
        self.events += 1;
        while there.first_arrival() == now {
            let Some((packet, following)) = there.first() else { break };
            self.events += 1;
            observers.note_at(end.arriving, now, packet);
            host.handle_packet(now, packet);
            there.drop_first(following);
        }
        let mut answers = Answers { events: 0, end, now, next_ns: now, bounds, observers, lines: back };
        host.transmit_together(now, &mut answers);
        self.events += answers.events;
        if !end.has_delay && back[0].first_arrival() <= now {
            self.waiting = end.link;
        }
    }
}

mod answers;
mod arrivals;
mod ends;
#[cfg(test)]
mod tests;
mod turns;
