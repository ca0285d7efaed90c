//! One connection's packets as delta-encoded records: only what differs from what is expected after the packet
//! before, some 16 bytes a packet instead of 60, since reading a capture costs most where memory is touched for the
//! first time.
//!
//! A record is a head, then one 32-bit word for each bit of `present` that is set, lowest bit first.

use crate::stream::reading::NO_ACKNOWLEDGEMENT;

/// Bits of a head, whose upper half is the IP identification. `HIGH` words complete a difference that 32 bits do not hold.
pub(super) mod present {
    pub(in crate::records) const SIDE: u32 = 1; // names the sender, and has no word
    pub(in crate::records) const TIME: u32 = 1 << 1;
    pub(in crate::records) const SEQUENCE: u32 = 1 << 2;
    pub(in crate::records) const ACKNOWLEDGEMENT: u32 = 1 << 3;
    pub(in crate::records) const ROUND_TRIP: u32 = 1 << 4;
    pub(in crate::records) const TSVAL: u32 = 1 << 5;
    pub(in crate::records) const TSECR: u32 = 1 << 6;
    pub(in crate::records) const PAYLOAD_HASH: u32 = 1 << 7;
    pub(in crate::records) const TIME_HIGH: u32 = 1 << 8;
    pub(in crate::records) const SEQUENCE_HIGH: u32 = 1 << 9;
    pub(in crate::records) const ACKNOWLEDGEMENT_HIGH: u32 = 1 << 10;
    pub(in crate::records) const ROUND_TRIP_HIGH: u32 = 1 << 11;
    pub(in crate::records) const PAYLOAD_BYTES: u32 = 1 << 12;
    pub(in crate::records) const WINDOW_BYTES: u32 = 1 << 13;
    pub(in crate::records) const FLAGS_AND_MARKS: u32 = 1 << 14;
    pub(in crate::records) const TTL: u32 = 1 << 15;
    /// What most packets have none of.
    pub(in crate::records) const RARE: u32 = 0xff00;
    pub(in crate::records) const WORDS: u32 = 0xfffe;
}

/// Words of the longest record: a power of two, so that masked places need no check.
pub(super) const RECORD_WORDS: usize = 1 + present::WORDS.count_ones() as usize;
pub(super) const WORD_PLACES: usize = RECORD_WORDS - 1;
const _: () = assert!(RECORD_WORDS.is_power_of_two());

pub(super) const NO_ROUND_TRIP: i64 = -1;

/// One packet. In records offsets count from the side's first known number, as in `Reading`; `EncodedPackets::rows` gives
/// those in streams, and the direction as side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub side: u8,
    pub ttl: u8,
    pub flags: u16,
    pub marks: u16,
    pub ip_id: u16,
    pub time_ns: i64,
    pub sequence_offset: i64,
    pub acknowledgement_offset: i64,
    pub round_trip_ns: i64,
    pub payload_bytes: u32,
    pub window_bytes: u32,
    pub tsval: u32,
    pub tsecr: u32,
    pub payload_hash: u32,
}

/// What a side's next packet is expected to be like: its data follow, and the rest is as it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) sequence_offset: i64,
    pub(super) acknowledgement_offset: i64,
    pub(super) payload_bytes: u32,
    pub(super) window_bytes: u32,
    pub(super) flags_and_marks: u32,
    pub(super) tsval: u32,
    pub(super) tsecr: u32,
    pub(super) ttl: u32,
}

/// The state that writing and reading share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) time_ns: i64,
    pub(super) sides: [Expected; 2],
}

impl Default for Context {
    fn default() -> Self {
        let nothing = Expected {
            sequence_offset: 0,
            acknowledgement_offset: NO_ACKNOWLEDGEMENT,
            payload_bytes: 0,
            window_bytes: 0,
            flags_and_marks: 0,
            tsval: 0,
            tsecr: 0,
            ttl: 0,
        };
        Context { time_ns: 0, sides: [nothing; 2] }
    }
}

impl Context {
    #[inline]
    pub(super) fn follow(&mut self, row: &Row) {
        self.time_ns = row.time_ns;
        self.sides[usize::from(row.side & 1)] = Expected {
            sequence_offset: row.sequence_offset.wrapping_add(i64::from(row.payload_bytes)),
            acknowledgement_offset: row.acknowledgement_offset,
            payload_bytes: row.payload_bytes,
            window_bytes: row.window_bytes,
            flags_and_marks: u32::from(row.flags) | u32::from(row.marks) << 16,
            tsval: row.tsval,
            tsecr: row.tsecr,
            ttl: u32::from(row.ttl),
        };
    }
}

/// A record in the making, in its place.
struct Record<'a> {
    words: &'a mut [u32; RECORD_WORDS],
    head: u32,
    count: usize,
}

impl Record<'_> {
    /// Write a word and count it where its bit is set, which costs less than unpredictable branches.
    #[inline]
    fn put(&mut self, bit: u32, word: u32) {
        self.words[self.count & WORD_PLACES] = word;
        self.count = self.count.wrapping_add(usize::from(self.head & bit != 0));
    }
}

/// The bits for a difference of 64 bits: none where there is none, the second where 32 bits do not hold it.
#[inline]
fn bits_of(difference: i64, low: u32, high: u32) -> u32 {
    bit_if(difference != 0, low) | bit_if(i64::from(difference as i32) != difference, high)
}

#[inline]
fn bit_if(condition: bool, bit: u32) -> u32 {
    if condition {
        bit
    } else {
        0
    }
}

/// Writes the records of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordWriter {
    context: Context,
}

impl RecordWriter {
    /// Writes the record of the next packet; gives how many words it has.
    #[inline(always)]
    pub(crate) fn write(&mut self, row: &Row, words: &mut [u32; RECORD_WORDS]) -> usize {
        use present::*;
        let expected = &self.context.sides[usize::from(row.side & 1)];
        let time = row.time_ns.wrapping_sub(self.context.time_ns);
        let sequence = row.sequence_offset.wrapping_sub(expected.sequence_offset);
        let acknowledgement = row.acknowledgement_offset.wrapping_sub(expected.acknowledgement_offset);
        let round_trip = row.round_trip_ns.wrapping_sub(NO_ROUND_TRIP);
        let flags_and_marks = u32::from(row.flags) | u32::from(row.marks) << 16;
        let head = u32::from(row.side & 1)
            | u32::from(row.ip_id) << 16
            | bits_of(time, TIME, TIME_HIGH)
            | bits_of(sequence, SEQUENCE, SEQUENCE_HIGH)
            | bits_of(acknowledgement, ACKNOWLEDGEMENT, ACKNOWLEDGEMENT_HIGH)
            | bits_of(round_trip, ROUND_TRIP, ROUND_TRIP_HIGH)
            | bit_if(row.tsval != expected.tsval, TSVAL)
            | bit_if(row.tsecr != expected.tsecr, TSECR)
            | bit_if(row.payload_hash != 0, PAYLOAD_HASH)
            | bit_if(row.payload_bytes != expected.payload_bytes, PAYLOAD_BYTES)
            | bit_if(row.window_bytes != expected.window_bytes, WINDOW_BYTES)
            | bit_if(flags_and_marks != expected.flags_and_marks, FLAGS_AND_MARKS)
            | bit_if(u32::from(row.ttl) != expected.ttl, TTL);
        let mut record = Record { words, head, count: 1 };
        record.words[0] = head;
        record.put(TIME, time as u32);
        record.put(SEQUENCE, sequence as u32);
        record.put(ACKNOWLEDGEMENT, acknowledgement as u32);
        record.put(ROUND_TRIP, round_trip as u32);
        record.put(TSVAL, row.tsval);
        record.put(TSECR, row.tsecr);
        record.put(PAYLOAD_HASH, row.payload_hash);
        if head & RARE != 0 {
            record.put(TIME_HIGH, (time >> 32) as u32);
            record.put(SEQUENCE_HIGH, (sequence >> 32) as u32);
            record.put(ACKNOWLEDGEMENT_HIGH, (acknowledgement >> 32) as u32);
            record.put(ROUND_TRIP_HIGH, (round_trip >> 32) as u32);
            record.put(PAYLOAD_BYTES, row.payload_bytes);
            record.put(WINDOW_BYTES, row.window_bytes);
            record.put(FLAGS_AND_MARKS, flags_and_marks);
            record.put(TTL, u32::from(row.ttl));
        }
        let count = record.count;
        self.context.follow(row);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::chains::{Chain, Chains};
    use crate::records::record_reader::RecordReader;
    use proptest::prelude::*;

    prop_compose! {
        /// Values that often repeat, and any others.
        fn row()(
            bytes in prop_oneof![Just((0_u8, 64_u8)), (0..2_u8, any::<u8>())],
            halves in prop_oneof![Just((16_u16, 0_u16, 7_u16)), any::<(u16, u16, u16)>()],
            longs in prop_oneof![
                Just((1_000, 0, NO_ACKNOWLEDGEMENT, NO_ROUND_TRIP)),
                (0..1_i64 << 34, -5..1_i64 << 33, 0..1_i64 << 20, -1..1_i64 << 40),
                any::<(i64, i64, i64, i64)>(),
            ],
            words in prop_oneof![Just((1460, 65535, 1, 2, 0)), any::<(u32, u32, u32, u32, u32)>()],
        ) -> Row {
            Row {
                side: bytes.0,
                ttl: bytes.1,
                flags: halves.0,
                marks: halves.1,
                ip_id: halves.2,
                time_ns: longs.0,
                sequence_offset: longs.1,
                acknowledgement_offset: longs.2,
                round_trip_ns: longs.3,
                payload_bytes: words.0,
                window_bytes: words.1,
                tsval: words.2,
                tsecr: words.3,
                payload_hash: words.4,
            }
        }
    }

    proptest! {
        #[test]
        fn rows_come_back_as_they_went_in(rows in prop::collection::vec(row(), 0..60)) {
            let (mut writer, mut chains, mut chain) = (RecordWriter::default(), Chains::default(), Chain::default());
            for row in &rows {
                chains.push(&mut chain, |words| writer.write(row, words));
            }
            prop_assert_eq!(RecordReader::new(chains.parts(&chain)).collect::<Vec<_>>(), rows);
        }
    }

    #[test]
    fn a_packet_that_follows_takes_head_time_and_hash() {
        let first = Row {
            side: 1,
            ttl: 64,
            flags: 16,
            marks: 0x200,
            ip_id: 9,
            time_ns: 1_700_000_000_000_000_000,
            sequence_offset: 0,
            acknowledgement_offset: 100,
            round_trip_ns: NO_ROUND_TRIP,
            payload_bytes: 1448,
            window_bytes: 65_535,
            tsval: 5,
            tsecr: 6,
            payload_hash: 77,
        };
        let second =
            Row { time_ns: first.time_ns + 12_000, sequence_offset: 1448, payload_hash: 78, ip_id: 10, ..first };
        let (mut writer, mut words) = (RecordWriter::default(), [0; RECORD_WORDS]);
        writer.write(&first, &mut words);
        assert_eq!(writer.write(&second, &mut words), 3);
    }
}
