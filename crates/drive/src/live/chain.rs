//! Hops one behind the other, driven by a clock that may be late.

use std::ops::Range;

use pepscope_path::{Direction, Hop, HopCounts, Nanoseconds, NEVER};

use super::element::{live_element, LiveElement};
use super::frame::Frame;
use super::LiveError;
use crate::scenario::Scenario;
use crate::truth::series::Series;

/// What a hop did, by direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HopTotals {
    pub name: String,
    pub counts: [HopCounts; 2],
    pub capacity_bits: [Option<u64>; 2],
}

/// A part of a path, from the side of the server to the side of the mobile.
///
/// What is due happens at its own time, in order, even if the caller comes late: a packet that leaves one hop enters the
/// next when it should have, so lateness does not add up along the chain.
#[derive(Debug)]
pub struct LiveChain {
    names: Vec<String>,
    hops: Vec<LiveElement>,
    wake_ups: Vec<Nanoseconds>,
    now: Nanoseconds,
}

impl LiveChain {
    /// The hops numbered `part` of a scenario's path; none at all is a part too.
    ///
    /// # Errors
    /// Refuses what [`live_element`] refuses, and a part outside the path.
    pub fn new(scenario: &Scenario, part: Range<usize>) -> Result<Self, LiveError> {
        let missing = LiveError::NoSuchPart { first: part.start, last: part.end, hops: scenario.path.len() };
        let descriptions = scenario.path.get(part).ok_or(missing)?;
        let mut chain = Self { names: Vec::new(), hops: Vec::new(), wake_ups: Vec::new(), now: 0 };
        for description in descriptions {
            let hop = live_element(description, scenario.seed)?;
            chain.names.push(description.name.clone());
            chain.wake_ups.push(hop.poll_timeout());
            chain.hops.push(hop);
        }
        Ok(chain)
    }

    /// When something happens next.
    #[inline]
    #[must_use]
    pub fn next_due(&self) -> Nanoseconds {
        self.wake_ups.iter().copied().min().unwrap_or(NEVER)
    }

    /// Takes a packet that enters at `now` travelling in `direction`; what leaves the chain at once goes to `leave`.
    #[inline]
    pub fn enter(
        &mut self,
        now: Nanoseconds,
        direction: Direction,
        frame: Frame,
        leave: &mut impl FnMut(Nanoseconds, Direction, Frame),
    ) {
        self.now = self.now.max(now);
        if self.hops.is_empty() {
            return leave(self.now, direction, frame);
        }
        let index = match direction {
            Direction::Down => 0,
            Direction::Up => self.hops.len() - 1,
        };
        self.hops[index].handle_packet(self.now, direction, frame);
        self.drain(1 << index, leave);
    }

    /// Does everything that is due by `until`, each at its time; packets that leave the chain go to `leave`, with the
    /// time at which they should.
    #[inline]
    pub fn advance(&mut self, until: Nanoseconds, leave: &mut impl FnMut(Nanoseconds, Direction, Frame)) {
        loop {
            let mut index = 0;
            let mut due = NEVER;
            for (candidate, &wake_up) in self.wake_ups.iter().enumerate() {
                if wake_up < due {
                    (index, due) = (candidate, wake_up);
                }
            }
            if due > until || due == NEVER {
                return;
            }
            self.now = self.now.max(due);
            self.hops[index].handle_timeout(self.now);
            self.drain(1 << index, leave);
        }
    }

    /// Hands on what leaves the hops in the set `waiting`, and those that it reaches.
    #[inline]
    fn drain(&mut self, mut waiting: u64, leave: &mut impl FnMut(Nanoseconds, Direction, Frame)) {
        while waiting != 0 {
            let index = waiting.trailing_zeros() as usize;
            waiting &= waiting - 1;
            while let Some((direction, frame)) = self.hops[index].poll_transmit(self.now) {
                let next = match direction {
                    Direction::Down => Some(index + 1).filter(|next| *next < self.hops.len()),
                    Direction::Up => index.checked_sub(1),
                };
                match next {
                    Some(next) => {
                        self.hops[next].handle_packet(self.now, direction, frame);
                        waiting |= 1 << next;
                    }
                    None => leave(self.now, direction, frame),
                }
            }
            self.wake_ups[index] = self.hops[index].poll_timeout();
        }
    }

    /// Totals of all hops at `now`, into `totals`, which keeps its room.
    pub fn totals(&self, now: Nanoseconds, totals: &mut Vec<HopTotals>) {
        totals.resize(self.hops.len(), HopTotals::default());
        for ((name, hop), totals) in self.names.iter().zip(&self.hops).zip(totals) {
            if totals.name.is_empty() {
                totals.name.clone_from(name);
            }
            for direction in [Direction::Down, Direction::Up] {
                totals.counts[direction.index()] = hop.counts(direction);
                totals.capacity_bits[direction.index()] = hop.capacity_bits(now.max(self.now), direction);
            }
        }
    }

    /// Adds a sample of everything that the hops observe.
    pub fn sample(&self, now: Nanoseconds, series: &mut Series) {
        series.begin_sample(now);
        for (name, hop) in self.names.iter().zip(&self.hops) {
            hop.observe(now, &mut |quantity, value| series.record(name, None, quantity, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LiveChain;
    use crate::live::frame::{Frame, Terminals};
    use crate::live::LiveError;
    use crate::scenario::Scenario;
    use pepscope_path::{Direction, Nanoseconds, MILLISECOND, NEVER};

    const TWO_LINKS: &str = r#"{"name": "two", "duration_s": 1, "path": [
        {"kind": "wired", "down": {"rate_bit_s": 8000000, "delay_s": 0.01}, "up": {"delay_s": 0.01}},
        {"kind": "wired", "down": {"rate_bit_s": 4000000, "delay_s": 0.02}, "up": {"delay_s": 0.02}}]}"#;

    fn chain(json: &str) -> LiveChain {
        let scenario = Scenario::from_json(json).unwrap();
        LiveChain::new(&scenario, 0..scenario.path.len()).unwrap()
    }

    fn frame(bytes: usize, direction: Direction) -> Frame {
        Frame::new(vec![0; bytes], direction, &Terminals { first_ipv4: 0, first_ipv6: 0, count: 1 })
    }

    /// When ten packets of 1000 bytes leave, if the clock is looked at every `step`.
    fn departures(step: Nanoseconds) -> Vec<Nanoseconds> {
        let mut chain = chain(TWO_LINKS);
        let mut left = Vec::new();
        let mut leave = |now, _, _| left.push(now);
        for _ in 0..10 {
            chain.enter(0, Direction::Down, frame(1000, Direction::Down), &mut leave);
        }
        let mut now = 0;
        while chain.next_due() != NEVER {
            now += step;
            chain.advance(now, &mut leave);
        }
        left
    }

    #[test]
    fn lateness_neither_adds_up_nor_changes_rates() {
        let punctual = departures(1000);
        // 1 ms on the first link, 2 ms on the second, 30 ms of delay; then one every 2 ms.
        let expected: Vec<_> = (0..10).map(|number| (33 + 2 * number) * MILLISECOND).collect();
        assert_eq!(punctual, expected);
        assert_eq!(departures(7 * MILLISECOND), expected);
        assert_eq!(departures(1000 * MILLISECOND), expected);
    }

    #[test]
    fn both_directions_leave_where_they_should_and_are_counted() {
        let mut chain = chain(TWO_LINKS);
        let mut left = Vec::new();
        let mut leave = |now, direction, frame: Frame| left.push((now, direction, frame.bytes().len()));
        chain.enter(5, Direction::Up, frame(40, Direction::Up), &mut leave);
        chain.advance(NEVER - 1, &mut leave);
        assert_eq!(left, [(5 + 30 * MILLISECOND, Direction::Up, 40)]);
        let mut totals = Vec::new();
        chain.totals(0, &mut totals);
        let up = Direction::Up.index();
        assert!(totals
            .iter()
            .all(|hop| hop.counts[up].delivered_packets == 1 && hop.counts[1 - up].offered_packets == 0));
    }

    #[test]
    fn no_hops_are_a_wire() {
        let mut chain = chain(r#"{"name": "none", "duration_s": 1}"#);
        let mut left = 0;
        chain.enter(9, Direction::Down, frame(9, Direction::Down), &mut |now, _, _| left = now);
        assert_eq!((left, chain.next_due()), (9, NEVER));
    }

    #[test]
    fn a_rewriter_that_changes_nothing_is_a_wire_and_one_that_holds_packets_is_refused() {
        let path = |rewriter: &str| {
            let json = format!(r#"{{"name": "r", "duration_s": 1, "path": [{{"kind": "rewriter"{rewriter}}}]}}"#);
            LiveChain::new(&Scenario::from_json(&json).unwrap(), 0..1)
        };
        let mut left = 0;
        path("").unwrap().enter(9, Direction::Up, frame(9, Direction::Up), &mut |now, _, _| left = now);
        assert_eq!(left, 9);
        path(r#", "routers": 2"#).unwrap();
        assert!(matches!(path(r#", "acknowledgement_thinning": {}"#), Err(LiveError::NotLive { .. })));
    }

    #[test]
    fn what_only_simulations_have_is_refused_by_name() {
        let json = r#"{"name": "p", "duration_s": 1, "path": [{"kind": "split-proxy"}]}"#;
        let scenario = Scenario::from_json(json).unwrap();
        let refusal = LiveChain::new(&scenario, 0..1).unwrap_err();
        assert!(refusal.to_string().starts_with("split-proxy-1 is a hop of kind split-proxy"), "{refusal}");
        assert!(matches!(LiveChain::new(&scenario, 0..2), Err(LiveError::NoSuchPart { .. })));
    }
}
