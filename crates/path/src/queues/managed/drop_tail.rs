//! A managed line whose queue is drop-tail: when a packet leaves is known once it comes, so that it needs one wake-up.

use super::cross::{Carried, Cross};
use crate::hop::{Datagram, HopCounts, Nanoseconds, NEVER};
use crate::lines::line::Following;
use crate::queues::ring::Ring;
use crate::transmitters::serialisation::Serialisation;

/// A packet of ours on its way to the far end.
#[derive(Clone, Debug)]
struct UnderWay<P> {
    arrives_ns: Nanoseconds,
    bytes: u32,
    packet: Option<P>,
}

impl<P> Default for UnderWay<P> {
    fn default() -> Self {
        Self { arrives_ns: NEVER, bytes: 0, packet: None }
    }
}

/// When packets of ours and of others came, and when each begins to be sent.
#[derive(Clone, Debug)]
struct Service {
    serialisation: Serialisation,
    limit_packets: usize,
    busy_until: Nanoseconds,
    times: Ring<(Nanoseconds, Nanoseconds)>,
    /// Place of a packet before which all have begun to be sent; some from there on may have begun, too.
    first_waiting: usize,
    cross: Option<Cross>,
    /// When the next of others' packets comes.
    others_ns: Nanoseconds,
}

impl Service {
    /// Lets others' packets come until `now`.
    #[inline]
    fn advance(&mut self, now: Nanoseconds) {
        while self.others_ns <= now {
            let Some(cross) = &mut self.cross else { return };
            let (at_ns, other) = (self.others_ns, cross.take());
            self.others_ns = cross.next_ns();
            if let Carried::<()>::Cross { bytes, .. } = other {
                self.admit(at_ns, bytes);
            }
        }
    }

    /// Forgets those that are sent by `now`.
    #[inline(never)]
    fn begin_by(&mut self, now: Nanoseconds) {
        while self.first_waiting < self.times.end()
            && self.times.at(self.first_waiting).is_some_and(|(_, begins_ns)| *begins_ns <= now)
        {
            self.first_waiting += 1;
        }
    }

    /// How many wait, or more.
    #[inline]
    fn most_waiting(&self) -> usize {
        self.times.end() - self.first_waiting
    }

    /// When a packet is sent that comes at `now`; `None` if there is no room for it.
    #[inline]
    fn admit(&mut self, now: Nanoseconds, bytes: u32) -> Option<Nanoseconds> {
        if self.most_waiting() >= self.limit_packets || self.times.seems_full() {
            self.begin_by(now);
            if self.most_waiting() >= self.limit_packets {
                return None;
            }
        }
        if self.busy_until <= now {
            self.serialisation.begin();
        }
        let begins_ns = self.busy_until.max(now);
        self.busy_until = begins_ns.saturating_add(self.serialisation.advance(bytes));
        *self.times.push_slot(self.first_waiting) = (now, begins_ns);
        Some(self.busy_until)
    }
}

/// One direction.
#[derive(Clone, Debug)]
pub struct DropTailLine<P> {
    service: Service,
    delay_ns: Nanoseconds,
    under_way: Ring<UnderWay<P>>,
    first: usize,
    first_ns: Nanoseconds,
    pub(super) counts: HopCounts,
}

impl<P: Datagram> DropTailLine<P> {
    pub(super) fn new(
        serialisation: Serialisation,
        limit_packets: usize,
        delay_ns: Nanoseconds,
        cross: Option<Cross>,
    ) -> Self {
        let service = Service {
            serialisation,
            limit_packets,
            busy_until: 0,
            times: Ring::new(),
            first_waiting: 0,
            others_ns: cross.as_ref().map_or(NEVER, Cross::next_ns),
            cross,
        };
        Self { service, delay_ns, under_way: Ring::new(), first: 0, first_ns: NEVER, counts: HopCounts::default() }
    }

    #[inline]
    pub(super) fn take(&mut self, now: Nanoseconds, packet: P) {
        self.take_with(now, packet.length_bytes(), || packet);
    }

    /// Takes a packet of `bytes` that enters at `now`. If there is room, `make` writes it straight into its place.
    #[inline]
    pub fn take_with(&mut self, now: Nanoseconds, bytes: u32, make: impl FnOnce() -> P) {
        self.take_or_pass(now, bytes, 0, make);
    }

    /// See [`crate::Passage::take_or_pass`].
    #[inline]
    pub fn take_or_pass<F: FnOnce() -> P>(
        &mut self,
        now: Nanoseconds,
        bytes: u32,
        until: Nanoseconds,
        make: F,
    ) -> Option<(Nanoseconds, F)> {
        self.service.advance(now);
        self.counts.offered_packets += 1;
        self.counts.offered_bytes += u64::from(bytes);
        let Some(sent_ns) = self.service.admit(now, bytes) else {
            self.counts.overflow(&make());
            return None;
        };
        let arrives_ns = sent_ns.saturating_add(self.delay_ns);
        if self.first == self.under_way.end() {
            if arrives_ns < until {
                self.counts.delivered_packets += 1;
                self.counts.delivered_bytes += u64::from(bytes);
                return Some((arrives_ns, make));
            }
            self.first_ns = arrives_ns;
        }
        let slot = self.under_way.push_slot(self.first);
        (slot.arrives_ns, slot.bytes) = (arrives_ns, bytes);
        slot.packet = Some(make());
        None
    }

    #[inline]
    pub(super) fn give(&mut self, now: Nanoseconds) -> Option<P> {
        if self.first_ns > now {
            return None;
        }
        let following = self.following();
        let packet = self.under_way.at_mut(self.first)?.packet.take()?;
        self.note_gone(packet.length_bytes(), following);
        Some(packet)
    }

    /// No packet arrives sooner than so long after it entered.
    #[must_use]
    pub fn least_delay_ns(&self) -> Nanoseconds {
        self.delay_ns
    }

    pub(crate) fn keeps_order(&self) -> bool {
        true
    }

    /// When the first packet under way arrives; [`NEVER`] if there is none.
    #[must_use]
    #[inline(always)]
    pub fn first_arrival(&self) -> Nanoseconds {
        self.first_ns
    }

    /// The first packet under way, and what is behind it.
    #[must_use]
    #[inline(always)]
    pub fn first(&self) -> Option<(&P, Following)> {
        let packet = self.under_way.at(self.first)?.packet.as_ref()?;
        Some((packet, self.following()))
    }

    /// Removes the first packet under way; `following` is the one behind it.
    #[inline(always)]
    pub fn drop_first(&mut self, following: Following) {
        let bytes = self.under_way.at(self.first).map_or(0, |gone| gone.bytes);
        self.note_gone(bytes, following);
    }

    #[inline(always)]
    fn following(&self) -> Following {
        let place = self.first + 1;
        let next = if place < self.under_way.end() { self.under_way.at(place) } else { None };
        Following::alone(place, next.map_or(NEVER, |next| next.arrives_ns))
    }

    #[inline(always)]
    fn note_gone(&mut self, bytes: u32, following: Following) {
        self.counts.delivered_packets += 1;
        self.counts.delivered_bytes += u64::from(bytes);
        (self.first, self.first_ns) = (following.place, following.arrival);
    }

    /// Packets that wait at `now`, and how long the first of them has.
    pub(super) fn waiting(&self, now: Nanoseconds) -> (usize, Nanoseconds) {
        let mut service = self.service.clone();
        service.advance(now);
        service.begin_by(now);
        let waiting = service.most_waiting();
        let came_ns = service.times.at(service.first_waiting).filter(|_| waiting > 0).map_or(now, |(came, _)| *came);
        (waiting, now - came_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::DropTailLine;
    use crate::hop::{HopCounts, Nanoseconds, NEVER};
    use crate::queues::managed::cross::{Arrivals, Cross, CrossSettings};
    use crate::queues::managed::queue::{Discipline, ManagedQueueSettings};
    use crate::queues::managed::{DisciplinedLine, ManagedLineSettings};
    use crate::random::Random;
    use crate::transmitters::serialisation::Serialisation;
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    const RATE_BIT_S: u64 = 3_333_333;

    /// Times and numbers of packets at the far end, with what waited there at the time of each.
    type Seen = Vec<(Nanoseconds, u32)>;

    fn given(arrivals: &[(u64, u32)], mut take: impl FnMut(Nanoseconds, u32) -> usize) -> Vec<usize> {
        let mut now = 0;
        arrivals
            .iter()
            .map(|(pause, bytes)| {
                now += pause;
                take(now, *bytes)
            })
            .collect()
    }

    fn drained(mut next: impl FnMut() -> Nanoseconds, mut give: impl FnMut(Nanoseconds) -> Option<u32>) -> Seen {
        let mut seen = Vec::new();
        loop {
            let now = next();
            if now == NEVER {
                return seen;
            }
            while let Some(packet) = give(now) {
                seen.push((now, packet));
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_a_disciplined_line_of_drop_tail(
            arrivals in prop::collection::vec((0u64..9_000_000, 40u32..1500), 1..80),
            limit in 1u32..12,
            kind in 0usize..4,
        ) {
            let arrival = match kind {
                0 => None,
                1 => Some(Arrivals::Even),
                2 => Some(Arrivals::Poisson),
                _ => Some(Arrivals::Flows { mean_bytes: 9_000.0, access_bit_s: 5_000_000 }),
            };
            let cross = arrival.map(|arrivals| CrossSettings { rate_bit_s: RATE_BIT_S / 3, packet_bytes: 700, arrivals });
            let settings = ManagedLineSettings {
                rate_bit_s: RATE_BIT_S,
                delay_ns: 1_000_000,
                queue: ManagedQueueSettings { discipline: Discipline::DropTail, limit_packets: limit, marks: false },
                cross,
            };
            let mut slow: DisciplinedLine<u32> = DisciplinedLine::new(&settings, 5, "line").unwrap();
            let mut fast: DropTailLine<u32> = DropTailLine::new(
                Serialisation::new(RATE_BIT_S).unwrap(),
                limit as usize,
                settings.delay_ns,
                cross.map(|cross| Cross::new(cross, Random::new(5, "line/cross"))),
            );
            let waiting = given(&arrivals, |now, bytes| {
                slow.take(now, bytes);
                slow.waiting(now).0
            });
            prop_assert_eq!(given(&arrivals, |now, bytes| { fast.take(now, bytes); fast.waiting(now).0 }), waiting);
            let (slow_counts, slow_seen) = finish(slow);
            let seen = {
                let line = std::cell::RefCell::new(&mut fast);
                drained(|| line.borrow().first_arrival(), |now| line.borrow_mut().give(now))
            };
            prop_assert_eq!(seen, slow_seen);
            prop_assert_eq!(fast.counts, slow_counts);
        }
    }

    fn finish(line: DisciplinedLine<u32>) -> (HopCounts, Seen) {
        let line = std::cell::RefCell::new(line);
        let seen = drained(
            || line.borrow().next_time(),
            |now| {
                line.borrow_mut().advance(now);
                line.borrow_mut().give(now)
            },
        );
        (line.into_inner().counts, seen)
    }

    impl crate::hop::Datagram for u32 {
        fn length_bytes(&self) -> u32 {
            *self
        }
        fn header_bytes(&self) -> u32 {
            40
        }
        fn user(&self) -> u16 {
            0
        }
        fn understands_marks(&self) -> bool {
            false
        }
        fn mark_congestion(&mut self) {}
        fn from_report(_user: u16, _report: crate::hop::QueueReport) -> Option<Self> {
            None
        }
        fn duplicate(&self) -> Self {
            *self
        }
    }
}
