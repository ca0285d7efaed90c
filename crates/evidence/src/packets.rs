//! Packets of one connection as columns, in capture order.

use crate::flows::staircases::Staircases;

/// Acknowledgement offset of a packet without the ACK flag.
pub const NO_ACKNOWLEDGEMENT: i64 = -(1 << 62);

/// Direction of what the client sends.
pub const UP: u8 = 0;
/// Direction of what the server sends.
pub const DOWN: u8 = 1;

/// TCP header flags as on the wire (RFC 9293, section 3.1).
pub mod flag {
    pub const FIN: u16 = 0x001;
    pub const SYN: u16 = 0x002;
    pub const RST: u16 = 0x004;
    pub const PSH: u16 = 0x008;
    pub const ACK: u16 = 0x010;
    pub const ECE: u16 = 0x040;
    pub const CWR: u16 = 0x080;
    pub const AE: u16 = 0x100;
}

/// What the analysis of the capture found of a packet.
pub mod mark {
    pub const RETRANSMISSION: u16 = 0x0001;
    pub const REORDERED: u16 = 0x0002;
    pub const DUPLICATE: u16 = 0x0004;
    pub const ZERO_WINDOW_PROBE: u16 = 0x0010;
    pub const DUPLICATE_ACK: u16 = 0x0040;
    pub const KEEP_ALIVE: u16 = 0x0020;
    pub const HAS_TIMESTAMPS: u16 = 0x0200;
    pub const OPTIONS_TRUNCATED: u16 = 0x1000;
}

/// Columns of one length; `pepscope.captures.packets.PacketColumns` says what they hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packets<'a> {
    pub time_ns: &'a [i64],
    pub direction: &'a [u8],
    pub sequence_offset: &'a [i64],
    pub acknowledgement_offset: &'a [i64],
    pub payload_bytes: &'a [u32],
    pub window_bytes: &'a [u32],
    pub flags: &'a [u16],
    pub tsval: &'a [u32],
    pub tsecr: &'a [u32],
    pub ip_id: &'a [u16],
    pub ttl: &'a [u8],
    pub payload_hash: &'a [u32],
    pub marks: &'a [u16],
    pub round_trip_time_ns: &'a [i64],
    /// Where what is made of these packets is kept; without it, it is made anew each time.
    pub staircases: Option<&'a Staircases>,
}

/// Places of the numbers that have any of these bits, as few do: whether a stretch has one is found for several numbers
/// at once.
pub(crate) fn bearing(column: &[u16], bits: u16) -> impl Iterator<Item = usize> + '_ {
    const STRETCH: usize = 1024;
    let stretches = (0..).step_by(STRETCH).zip(column.chunks(STRETCH));
    let with_any = stretches.filter(move |(_, own)| own.iter().fold(0, |any, &own| any | own) & bits != 0);
    with_any.flat_map(move |(begin, own)| {
        (begin..).zip(own).filter(move |(_, &own)| own & bits != 0).map(|(place, _)| place)
    })
}

impl Packets<'_> {
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }

    /// Whether all columns have one length.
    pub fn is_even(&self) -> bool {
        let lengths = [
            self.direction.len(),
            self.sequence_offset.len(),
            self.acknowledgement_offset.len(),
            self.payload_bytes.len(),
            self.window_bytes.len(),
            self.flags.len(),
            self.tsval.len(),
            self.tsecr.len(),
            self.ip_id.len(),
            self.ttl.len(),
            self.payload_hash.len(),
            self.marks.len(),
            self.round_trip_time_ns.len(),
        ];
        lengths.iter().all(|&length| length == self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Any place, and often one at an edge of a stretch.
    fn places() -> impl Strategy<Value = usize> {
        prop_oneof![0_usize..3000, 1022_usize..1026, 2046_usize..2050]
    }

    proptest! {
        #[test]
        fn places_with_bits_are_those_of_one_number_after_another(
            length in places(),
            borne in proptest::collection::vec((places(), any::<u16>()), 0..9),
            bits in any::<u16>(),
        ) {
            let mut column = vec![0; length];
            for (place, number) in borne {
                column.get_mut(place).into_iter().for_each(|own| *own = number);
            }
            let wanted: Vec<usize> = (0..length).filter(|&place| column[place] & bits != 0).collect();
            prop_assert_eq!(bearing(&column, bits).collect::<Vec<_>>(), wanted);
        }
    }
}
