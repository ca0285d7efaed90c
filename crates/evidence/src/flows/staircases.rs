//! Staircases that several methods ask for, made once for the packets of a connection.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::OnceLock;

use crate::flows::byte_times::AckTimes;
use crate::flows::staircase::{ByteRanges, DataRanges};
use crate::packets::{Packets, DOWN};

/// The staircases of both flows of a connection at one vantage, from when they were first asked for. They belong to the
/// packets that they were made of, and to no others.
#[derive(Debug, Default)]
pub struct Staircases {
    flows: OnceLock<[FlowStaircases; 2]>,
    /// None where they are the data that lie beyond all before.
    arrivals: [OnceLock<Option<ByteRanges>>; 2],
}

#[derive(Clone, Debug, Default)]
struct FlowStaircases {
    data: DataRanges,
    acknowledgements: AckTimes,
}

/// First arrivals: made for their own sake, or what was found beyond all data before.
pub enum Arrivals<'a> {
    Made(Cow<'a, ByteRanges>),
    Beyond(Cow<'a, DataRanges>),
}

impl Deref for Arrivals<'_> {
    type Target = ByteRanges;

    fn deref(&self) -> &ByteRanges {
        match self {
            Arrivals::Made(ranges) => ranges,
            Arrivals::Beyond(data) => &data.beyond,
        }
    }
}

impl<'a> Packets<'a> {
    /// The data of `direction`: what lies beyond everything sent before, as ascending disjoint ranges, and the segments
    /// that begin below that, whole.
    pub fn data_ranges(&self, direction: u8) -> Cow<'a, DataRanges> {
        match self.staircases {
            Some(kept) => Cow::Borrowed(&self.kept_flow(kept, direction).data),
            None => Cow::Owned(self.flow(direction).data),
        }
    }

    /// First arrival of every byte at the receiver of `direction`'s data; what fills a hole counts when it arrives.
    pub fn first_arrivals(&self, direction: u8) -> Arrivals<'a> {
        let data = self.data_ranges(direction);
        let Some(kept) = self.staircases else {
            return data.first_arrivals().map_or(Arrivals::Beyond(data), |made| Arrivals::Made(Cow::Owned(made)));
        };
        let made = kept.arrivals[way(direction)].get_or_init(|| data.first_arrivals());
        made.as_ref().map_or(Arrivals::Beyond(data), |made| Arrivals::Made(Cow::Borrowed(made)))
    }

    /// The acknowledgements of `direction`'s data with what was reached before the capture began.
    pub fn acknowledgement_times(&self, direction: u8) -> Cow<'a, AckTimes> {
        match self.staircases {
            Some(kept) => Cow::Borrowed(&self.kept_flow(kept, direction).acknowledgements),
            None => Cow::Owned(self.flow(direction).acknowledgements),
        }
    }

    fn kept_flow(&self, kept: &'a Staircases, direction: u8) -> &'a FlowStaircases {
        &kept.flows.get_or_init(|| self.flows())[way(direction)]
    }

    fn flow(&self, direction: u8) -> FlowStaircases {
        std::mem::take(&mut self.flows()[way(direction)])
    }

    fn flows(&self) -> [FlowStaircases; 2] {
        let opened = self.is_opened();
        self.read_staircases()
            .map(|(data, steps)| FlowStaircases { data, acknowledgements: AckTimes::of(steps, opened) })
    }
}

/// A direction as a place in pairs.
fn way(direction: u8) -> usize {
    usize::from(direction == DOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::{flag, UP};

    #[test]
    fn what_is_kept_is_made_once_and_equals_what_is_made_anew() {
        let anew = Packets {
            time_ns: &[1, 2, 3, 4, 5],
            direction: &[DOWN, DOWN, DOWN, UP, UP],
            sequence_offset: &[0, 200, 100, 0, 0],
            acknowledgement_offset: &[0, 0, 0, 100, 300],
            payload_bytes: &[100, 100, 100, 0, 7],
            flags: &[flag::ACK; 5],
            ..Packets::default()
        };
        let staircases = Staircases::default();
        let keeping = Packets { staircases: Some(&staircases), ..anew };
        for direction in [DOWN, UP] {
            for _ in 0..2 {
                assert_eq!(keeping.data_ranges(direction), anew.data_ranges(direction));
                assert_eq!(*keeping.first_arrivals(direction), *anew.first_arrivals(direction));
                assert_eq!(keeping.acknowledgement_times(direction), anew.acknowledgement_times(direction));
            }
        }
        // Other packets are not looked at any more.
        let others = Packets { time_ns: &[11, 12, 13, 14, 15], ..keeping };
        assert_eq!(others.data_ranges(DOWN), anew.data_ranges(DOWN));
        assert_eq!(*others.first_arrivals(DOWN), *anew.first_arrivals(DOWN));
        assert_eq!(others.acknowledgement_times(DOWN), anew.acknowledgement_times(DOWN));
    }
}
