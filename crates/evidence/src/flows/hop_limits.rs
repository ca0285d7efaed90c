//! Hop limits (TTL) of a connection's packets.

use crate::packets::{flag, Packets, DOWN, NO_ACKNOWLEDGEMENT, UP};

/// Hop limits of packets that acknowledge, without resets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnsweringHopLimits {
    /// Of the first with SYN.
    pub opening: Option<u8>,
    /// The most frequent of those without.
    pub later: Option<u8>,
}

impl Packets<'_> {
    /// The most frequent hop limit up and down, the lowest of equally frequent ones.
    pub fn hop_limits(&self) -> [Option<u8>; 2] {
        let packets = || self.ttl.iter().zip(self.direction);
        let of = |asked| packets().filter(move |&(_, &way)| way == asked).map(|(&ttl, _)| ttl);
        let first = [UP, DOWN].map(|asked| of(asked).next());
        let [up, down] = first.map(Option::unwrap_or_default);
        // Mostly all are alike. Without an early end that is computed for many packets at once.
        let is_other = |(&ttl, &way): (&u8, &u8)| ttl != if way == DOWN { down } else { up };
        if packets().fold(false, |found, each| found | is_other(each)) {
            [UP, DOWN].map(|asked| most_frequent(of(asked)))
        } else {
            first
        }
    }

    /// The hop limits of `direction`'s answer to a handshake and of what followed.
    pub fn answering_hop_limits(&self, direction: u8) -> AnsweringHopLimits {
        let answers = |place: &usize| {
            self.direction[*place] == direction
                && self.acknowledgement_offset[*place] != NO_ACKNOWLEDGEMENT
                && self.flags[*place] & flag::RST == 0
        };
        let is_opening = |place: &usize| self.flags[*place] & flag::SYN != 0;
        let places = (0..self.len()).filter(answers);
        AnsweringHopLimits {
            opening: places.clone().find(is_opening).map(|place| self.ttl[place]),
            later: most_frequent(places.filter(|place| !is_opening(place)).map(|place| self.ttl[place])),
        }
    }
}

fn most_frequent(values: impl Iterator<Item = u8>) -> Option<u8> {
    let mut counts = [0; 256];
    values.for_each(|value| counts[usize::from(value)] += 1);
    most_counted(&counts)
}

fn most_counted(counts: &[usize; 256]) -> Option<u8> {
    let most = counts.iter().max().copied().filter(|&count| count > 0)?;
    (0..=u8::MAX).find(|&value| counts[usize::from(value)] == most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_of_equally_frequent_hop_limits_counts() {
        let packets = Packets { direction: &[0, 0, 0, 0, 1], ttl: &[64, 63, 63, 64, 9], ..Packets::default() };
        assert_eq!(packets.hop_limits(), [Some(63), Some(9)]);
        assert_eq!(Packets::default().hop_limits(), [None, None]);
    }
}
