//! Units on the radio channel, and the sizes of their fields (3GPP TS 25.322, section 9.2).

use super::settings::StatusFormat;

/// D/C (1 bit), sequence number (12), poll (1), header extension (2).
pub(super) const AMD_HEADER_BYTES: u32 = 2;

const SEQUENCE_NUMBERS: u64 = 4_096;

/// A sequence number as PDUs carry it: 12 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SequenceNumber(u16);

impl SequenceNumber {
    pub(super) fn of(count: u64) -> Self {
        Self((count % SEQUENCE_NUMBERS) as u16)
    }

    /// The first count from `base` on that has this number.
    pub(super) fn count_from(self, base: u64) -> u64 {
        base + (u64::from(self.0) + SEQUENCE_NUMBERS - base % SEQUENCE_NUMBERS) % SEQUENCE_NUMBERS
    }
}

/// A PDU in a transport block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pdu {
    Data(DataPdu),
    Status(StatusPdu),
}

/// An AMD PDU. Its payload follows from the SDUs that end in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DataPdu {
    pub(super) number: SequenceNumber,
    pub(super) poll: bool,
    /// SDU whose end the first length indicator gives; SDUs are counted from 0.
    pub(super) first_end: u64,
    /// Length indicators that end an SDU.
    pub(super) ends: u16,
}

/// A STATUS PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusPdu {
    /// ACK with LIST or BITMAP: every PDU before `before` that is not listed as missing has arrived.
    Report { before: SequenceNumber, missing: Missing },
    /// MRW: discards the missing data before the last of these PDUs. In each of them, the first so many SDUs that end
    /// in it are given up, and what follows is whole. (The standard lists the ends of all SDUs given up and counts them
    /// in the last PDU only; this is equivalent.)
    MoveWindow(NumberedCounts),
    /// MRW_ACK.
    WindowMoved { to: SequenceNumber },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// First number and length of each run.
    List(NumberedCounts),
    Bitmap {
        first: SequenceNumber,
        length: u8,
        received: u128,
    },
}

/// Up to fifteen sequence numbers, each with a count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NumberedCounts {
    entries: [(SequenceNumber, u8); LIST_RUNS as usize],
    length: u8,
}

const LIST_RUNS: u32 = 15; // LENGTH has 4 bits
pub(super) const RUN_PDUS: u64 = 16; // L has 4 bits, and 0 is one PDU
pub(super) const BITMAP_PDUS: u64 = 128; // LENGTH has 4 bits, and 0 is one octet

impl NumberedCounts {
    pub(super) fn push(&mut self, number: SequenceNumber, count: u8) {
        if let Some(place) = self.entries.get_mut(usize::from(self.length)) {
            *place = (number, count);
            self.length += 1;
        }
    }

    /// As [`NumberedCounts::push`]; the oldest of `room` entries goes if there are so many.
    pub(super) fn push_within(&mut self, room: u32, number: SequenceNumber, count: u8) {
        if u32::from(self.length) >= room {
            self.entries.rotate_left(1);
            self.length -= 1;
        }
        self.push(number, count);
    }

    pub(super) fn as_slice(&self) -> &[(SequenceNumber, u8)] {
        &self.entries[..usize::from(self.length)]
    }
}

/// Runs of a LIST, or octets of a BITMAP, that fit one STATUS PDU beside its type (4 bits), the ACK field (16) and the
/// end of the list of fields (4).
pub(super) fn status_runs(pdu_bits: u32, format: StatusFormat) -> u32 {
    let room = pdu_bits.saturating_sub(4 + 16 + 4);
    match format {
        StatusFormat::List => (room.saturating_sub(8) / 16).min(LIST_RUNS), // type and length; then 12 + 4 bits each
        StatusFormat::Bitmap => (room.saturating_sub(20) / 8).min(16),      // type, length and first number
    }
}

/// A length indicator with its extension bit: 7 + 1 bits, or 15 + 1 in PDUs above 126 octets (section 9.2.2.8).
pub(super) fn length_indicator_bytes(pdu_bits: u32) -> u32 {
    if pdu_bits / 8 <= 126 {
        1
    } else {
        2
    }
}

#[cfg(test)]
mod tests {
    use super::{status_runs, SequenceNumber, StatusFormat};

    #[test]
    fn numbers_wrap_at_twelve_bits() {
        assert_eq!(SequenceNumber::of(4_095).count_from(4_000), 4_095);
        assert_eq!(SequenceNumber::of(4_096), SequenceNumber::of(0));
        assert_eq!(SequenceNumber::of(8_200).count_from(8_190), 8_200);
        assert_eq!(SequenceNumber::of(8_189).count_from(8_190), 8_189 + 4_096);
    }

    #[test]
    fn a_pdu_of_320_bits_holds_the_longest_list_and_bitmap() {
        assert_eq!(status_runs(320, StatusFormat::List), 15);
        assert_eq!(status_runs(320, StatusFormat::Bitmap), 16);
        assert_eq!(status_runs(80, StatusFormat::List), 3);
    }
}
