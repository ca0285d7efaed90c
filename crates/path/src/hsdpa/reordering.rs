//! Puts blocks back into order after hybrid ARQ (3GPP TS 25.321, 11.6.2).

use std::collections::VecDeque;

use super::hybrid_arq::Run;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    UnderWay,
    Arrived,
    Lost,
}

/// The blocks of one terminal between their first transmission and their release.
///
/// A missing block holds up its successors until it arrives or the timer T1 ends. The timer starts when a later block shows
/// that one is missing, or when the network gives one up: that stands for what ends the wait when nothing follows (polling in
/// acknowledged mode, discarding in the other). T1 should exceed what hybrid ARQ may take, as the standard advises.
#[derive(Clone, Debug, Default)]
pub struct Reordering {
    blocks: VecDeque<(Run, State)>,
    /// Number of the first of `blocks`.
    next: u64,
    arrived: usize,
    deadline: Option<u64>,
}

/// What leaves the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    Received(Run),
    Missing(Run),
}

impl Reordering {
    /// Takes a new block; its sequence number.
    pub fn send(&mut self, run: Run) -> u64 {
        self.blocks.push_back((run, State::UnderWay));
        self.next + self.blocks.len() as u64 - 1
    }

    /// Whether nothing is under way or waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Hears that a block arrived; one that T1 has already given up is ignored.
    pub fn arrive(&mut self, sequence: u64) {
        if let Some(entry) = self.entry(sequence) {
            entry.1 = State::Arrived;
            self.arrived += 1;
        }
    }

    /// Hears that the network will not send a block again.
    pub fn lose(&mut self, sequence: u64) {
        if let Some(entry) = self.entry(sequence) {
            entry.1 = State::Lost;
        }
    }

    /// What is in order at interval number `tti`, one block a call.
    pub fn release(&mut self, tti: u64, timeout_ttis: u32) -> Option<Released> {
        let &(run, state) = self.blocks.front()?;
        if state == State::Arrived {
            self.arrived -= 1;
            self.drop_front();
            return Some(Released::Received(run));
        }
        let waits = self.arrived > 0 || state == State::Lost;
        match self.deadline {
            Some(deadline) if deadline <= tti => {
                // T1 gives up everything before the next block that has arrived.
                let keep_going = self.arrived > 0;
                self.blocks.pop_front();
                self.next += 1;
                let next_state = self.blocks.front().map(|block| block.1);
                if !keep_going || next_state == Some(State::Arrived) {
                    self.deadline = None;
                }
                Some(Released::Missing(run))
            }
            None if waits => {
                self.deadline = Some(tti + u64::from(timeout_ttis));
                None
            }
            _ => None,
        }
    }

    fn drop_front(&mut self) {
        self.blocks.pop_front();
        self.next += 1;
        self.deadline = None;
    }

    fn entry(&mut self, sequence: u64) -> Option<&mut (Run, State)> {
        let place = usize::try_from(sequence.checked_sub(self.next)?).ok()?;
        self.blocks.get_mut(place).filter(|entry| entry.1 == State::UnderWay)
    }
}

#[cfg(test)]
mod tests {
    use super::{Released, Reordering};
    use crate::hsdpa::hybrid_arq::Run;

    fn run(first: u64) -> Run {
        Run { first, frames: 1, sendings: 1 }
    }

    fn all(reordering: &mut Reordering, tti: u64) -> Vec<Released> {
        std::iter::from_fn(|| reordering.release(tti, 10)).collect()
    }

    #[test]
    fn a_late_block_holds_up_its_successors() {
        let mut reordering = Reordering::default();
        for first in 0..3 {
            assert_eq!(reordering.send(run(first)), first);
        }
        reordering.arrive(1);
        reordering.arrive(2);
        assert!(all(&mut reordering, 0).is_empty());
        reordering.arrive(0);
        assert_eq!(all(&mut reordering, 9), [0, 1, 2].map(|first| Released::Received(run(first))));
        assert!(reordering.is_empty());
    }

    #[test]
    fn the_timer_ends_the_wait_and_what_comes_later_is_ignored() {
        let mut reordering = Reordering::default();
        for first in 0..4 {
            reordering.send(run(first));
        }
        reordering.arrive(2);
        assert!(all(&mut reordering, 5).is_empty());
        assert!(all(&mut reordering, 14).is_empty());
        assert_eq!(
            all(&mut reordering, 15),
            [Released::Missing(run(0)), Released::Missing(run(1)), Released::Received(run(2))]
        );
        reordering.arrive(0);
        reordering.arrive(3);
        assert_eq!(all(&mut reordering, 15), [Released::Received(run(3))]);
    }

    #[test]
    fn a_last_block_given_up_is_missed_after_the_timer() {
        let mut reordering = Reordering::default();
        reordering.send(run(0));
        reordering.lose(0);
        assert!(all(&mut reordering, 3).is_empty());
        assert_eq!(all(&mut reordering, 13), [Released::Missing(run(0))]);
        assert!(reordering.is_empty());
    }
}
