//! The fast path of the driver, for chains of one to three links between the two hosts.
//!
//! While single packets arrive one after the other and nothing else is due, the driver takes each from line to line and
//! from the last line to the host itself, without polling every part for its next event. It stops before anything
//! else: two arrivals at one time, a timer, a sample, the end of the run. What happens, and in which order, is what the
//! general loop of [`crate::simulation`] would do; `tests/fast_path.rs` compares both for every congestion control over
//! every kind of link, and the tests of this module over random chains.

use pepscope_path::{Datagram, Direction, Hop, Nanoseconds, Passage};
use pepscope_tcp::{Host, Packet, PacketSink};

use crate::chain::{stamp, Chain, Observers, Watch};
use crate::element::PathElement;
use arrivals::{earliest, first_arrivals};

/// How far the fast path may go.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// It handles arrivals later than this.
    pub(crate) after: Nanoseconds,
    /// It handles arrivals earlier than this.
    pub(crate) before: Nanoseconds,
    /// It stops after about this many events.
    pub(crate) events: u64,
    /// It stops when both hosts have finished.
    pub(crate) stops_when_finished: bool,
}

/// How far the fast path went.
pub(crate) struct Progress {
    pub(crate) now: Nanoseconds,
    /// Wake-ups and packets.
    pub(crate) events: u64,
    /// Parts that have something to hand on now, as bits.
    pub(crate) waiting: u64,
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
        self,
        mut down: Lines<L, LINKS>,
        mut up: Lines<L, LINKS>,
    ) -> Option<Progress> {
        let takes_time = self.server.takes_time() || self.mobile.takes_time();
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
        server.refresh_timeouts();
        mobile.refresh_timeouts();
        let mut progress = Progress { now: bounds.after, events: 0, waiting: 0 };
        let is_observed_between = (1..LINKS).any(|gap| observers.watches(gap));
        while progress.events < bounds.events && progress.waiting == 0 {
            let before = bounds.before.min(server.earliest_timeout()).min(mobile.earliest_timeout());
            let next = if LINKS > 2 || is_observed_between {
                progress.next_arrival_observed(before, &mut down, &mut up, observers)
            } else {
                progress.next_arrival(before, &mut down, &mut up)
            };
            match next {
                Some((now, Direction::Down)) => {
                    progress.arrive(now, &at_mobile, &mut down[LINKS - 1], &mut up[0], mobile, observers);
                }
                Some((now, Direction::Up)) => {
                    progress.arrive(now, &at_server, &mut up[LINKS - 1], &mut down[0], server, observers);
                }
                None if takes_time => {
                    let due = [server.earliest_timeout(), mobile.earliest_timeout()];
                    if due[0].min(due[1]) != before || !progress.is_alone(before, &due, &down, &up) {
                        break;
                    }
                    if due[0] < due[1] {
                        progress.wake(before, &at_server, &mut down[0], server, observers);
                    } else {
                        progress.wake(before, &at_mobile, &mut up[0], mobile, observers);
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
            if bounds.stops_when_finished && server.is_finished() && mobile.is_finished() {
                break;
            }
        }
        if progress.events == 0 {
            return None;
        }
        server.refresh_timeouts();
        mobile.refresh_timeouts();
        for link in 0..LINKS {
            wake_ups[link + 1] = down[link].first_arrival().min(up[LINKS - 1 - link].first_arrival());
        }
        (wake_ups[0], wake_ups[LINKS + 1]) = (server.poll_timeout(), mobile.poll_timeout());
        Some(progress)
    }
}

/// An end of the chain of links.
#[derive(Clone, Copy)]
struct End {
    /// How packets are recorded that arrive at the host.
    arriving: Watch,
    /// How packets are recorded that leave the host.
    leaving: Watch,
    /// The host, as a bit.
    host: u64,
    /// The link before the host, as a bit.
    link: u64,
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

    /// Lets `host` do what is due, and hands what leaves it to the line `back`.
    #[inline(never)]
    fn wake<L: Passage<Packet>>(
        &mut self,
        now: Nanoseconds,
        end: &End,
        back: &mut L,
        host: &mut Host,
        observers: &mut Observers,
    ) {
        if !host.is_due(now) {
            return;
        }
        self.now = now;
        let mut answers = Answers { packets: 0, end, now, observers, line: back };
        host.wake(now, &mut answers);
        self.events = self.events.wrapping_add(1).wrapping_add(answers.packets);
        if back.first_arrival() <= now {
            self.waiting = end.link;
        }
    }

    /// Hands the first packet of the line `there` to `host`, and the host's answers to the line `back`.
    #[inline(never)]
    fn arrive<L: Passage<Packet>>(
        &mut self,
        now: Nanoseconds,
        end: &End,
        there: &mut L,
        back: &mut L,
        host: &mut Host,
        observers: &mut Observers,
    ) {
        let Some((packet, following)) = there.first() else { return };
        self.now = now;
        if following.arrival == now {
            // All packets that arrive at one time do so before the host answers.
            self.events += 1 + arrive_together(now, end, there, host, observers);
            self.waiting = end.host;
            return;
        }
        observers.note_at(end.arriving, now, packet);
        let mut answers = Answers { packets: 0, end, now, observers, line: back };
        host.answer(now, packet, &mut answers);
        self.events = self.events.wrapping_add(2).wrapping_add(answers.packets);
        there.drop_first(following);
        if back.first_arrival() <= now {
            self.waiting = end.link;
        }
    }
}

/// What a host answers, on its way back into the links.
struct Answers<'a, L> {
    packets: u64,
    end: &'a End,
    now: Nanoseconds,
    observers: &'a mut Observers,
    line: &'a mut L,
}

impl<L: Passage<Packet>> PacketSink for Answers<'_, L> {
    #[inline(always)]
    fn send(&mut self, mut packet: Packet) {
        self.packets = self.packets.wrapping_add(1);
        stamp(self.now, &mut packet);
        self.observers.note_at(self.end.leaving, self.now, &packet);
        self.line.take_with(self.now, packet.length_bytes(), || packet);
    }

    #[inline(always)]
    fn send_unstamped(&mut self, packet: &mut Packet) {
        stamp(self.now, packet);
        self.send_stamped(packet.length_bytes(), packet);
    }

    #[inline(always)]
    fn send_stamped(&mut self, bytes: u32, packet: &Packet) {
        self.packets = self.packets.wrapping_add(1);
        self.observers.note_at(self.end.leaving, self.now, packet);
        self.line.take_with(self.now, bytes, || *packet);
    }
}

/// Hands all packets of a line that arrive now to `host`, and returns how many there were.
#[cold]
fn arrive_together<L: Passage<Packet>>(
    now: Nanoseconds,
    end: &End,
    line: &mut L,
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

mod arrivals;
#[cfg(test)]
mod tests;
