//! Makes packets of frames again, in the order in which they came.

use std::collections::VecDeque;

#[derive(Clone, Debug)]
struct Held<P> {
    packet: P,
    /// Number of the frame after its last one.
    end: u64,
    damaged: bool,
}

/// The packets of one terminal that have not left the bearer.
///
/// Frames (or bytes, for a bearer that counts in bytes) are numbered from 0 without gaps, across packets.
#[derive(Clone, Debug)]
pub struct Reassembly<P> {
    packets: VecDeque<Held<P>>,
    /// Number of the frame after the last one taken.
    end: u64,
    /// Every frame before this one is settled: received, or given up.
    settled: u64,
    /// Settled stretches beyond, ascending and apart.
    beyond: Vec<(u64, u64)>,
}

impl<P> Default for Reassembly<P> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), end: 0, settled: 0, beyond: Vec::new() }
    }
}

impl<P> Reassembly<P> {
    /// Takes a packet of `frames` frames; the number of the frame after its last one.
    pub fn push(&mut self, packet: P, frames: u32) -> u64 {
        self.end += u64::from(frames);
        self.packets.push_back(Held { packet, end: self.end, damaged: false });
        self.end
    }

    /// Number of the frame after the last one taken.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Number of the first frame that is not received and not given up.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.settled
    }

    /// Frames `first` to `end` (excluded) have been received.
    pub fn receive(&mut self, first: u64, end: u64) {
        if end <= self.settled {
            return;
        }
        if first <= self.settled {
            self.settled = end;
        } else {
            let place = self.beyond.partition_point(|stretch| stretch.0 < first);
            self.beyond.insert(place, (first, end));
        }
        let mut joined = 0;
        for &(from, to) in &self.beyond {
            if from > self.settled {
                break;
            }
            self.settled = self.settled.max(to);
            joined += 1;
        }
        self.beyond.drain(..joined);
    }

    /// Frames `first` to `end` (excluded) will not be sent again: packets with one of them are lost.
    pub fn give_up(&mut self, first: u64, end: u64) {
        let place = self.packets.partition_point(|held| held.end <= first);
        for held in self.packets.range_mut(place..) {
            held.damaged = true;
            if held.end >= end {
                break;
            }
        }
        self.receive(first, end);
    }

    /// The next packet whose frames are all settled, and whether it arrived whole.
    pub fn pop(&mut self) -> Option<(P, bool)> {
        let front = self.packets.front()?;
        if front.end > self.settled {
            return None;
        }
        self.packets.pop_front().map(|held| (held.packet, !held.damaged))
    }
}

#[cfg(test)]
mod tests {
    use super::Reassembly;
    use proptest::prelude::*;

    fn drain(reassembly: &mut Reassembly<u32>) -> Vec<(u32, bool)> {
        std::iter::from_fn(|| reassembly.pop()).collect()
    }

    #[test]
    fn packets_leave_whole_and_in_order() {
        let mut reassembly = Reassembly::default();
        assert_eq!(reassembly.push(1, 3), 3);
        assert_eq!(reassembly.push(2, 2), 5);
        reassembly.receive(3, 5);
        reassembly.receive(0, 2);
        assert!(drain(&mut reassembly).is_empty());
        reassembly.receive(2, 3);
        assert_eq!(drain(&mut reassembly), [(1, true), (2, true)]);
    }

    #[test]
    fn a_frame_given_up_costs_every_packet_it_is_part_of() {
        let mut reassembly = Reassembly::default();
        for packet in 0..4 {
            reassembly.push(packet, 2);
        }
        reassembly.receive(0, 3);
        reassembly.give_up(3, 5);
        reassembly.receive(5, 8);
        assert_eq!(drain(&mut reassembly), [(0, true), (1, false), (2, false), (3, true)]);
    }

    proptest! {
        #[test]
        fn any_order_of_arrival_gives_every_packet_once(
            sizes in prop::collection::vec(1u32..5, 1..20),
            seed in any::<u64>(),
        ) {
            let mut reassembly = Reassembly::default();
            for (packet, size) in sizes.iter().enumerate() {
                reassembly.push(packet as u32, *size);
            }
            let mut frames: Vec<u64> = (0..reassembly.end()).collect();
            let mut random = crate::Random::new(seed, "shuffle");
            for last in (1..frames.len()).rev() {
                frames.swap(last, random.below(last as u32 + 1) as usize);
            }
            let mut seen = Vec::new();
            for frame in frames {
                reassembly.receive(frame, frame + 1);
                seen.extend(drain(&mut reassembly).into_iter().map(|(packet, _)| packet));
            }
            prop_assert_eq!(seen, (0..sizes.len() as u32).collect::<Vec<_>>());
        }
    }
}
