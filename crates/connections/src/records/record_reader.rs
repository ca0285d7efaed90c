//! Delta-encoded records back to packets.

use super::chains::Part;
use super::packet_records::{present, Context, Expected, Row, NO_ROUND_TRIP, RECORD_WORDS, WORD_PLACES};

/// Reads the words of a `RecordWriter` back, part by part; no record reaches from one into the next.
pub(crate) struct RecordReader<'a, Parts> {
    parts: Parts,
    /// The part from the next record on, and how many words of it are in use.
    words: &'a [u32],
    used: usize,
    context: Context,
}

impl<'a, Parts: Iterator<Item = Part<'a, u32>>> RecordReader<'a, Parts> {
    pub(crate) fn new(parts: Parts) -> Self {
        RecordReader { parts, words: &[], used: 0, context: Context::default() }
    }
}

/// Takes the words of one record in order.
struct Words<'a> {
    words: &'a [u32; RECORD_WORDS],
    next: usize,
}

impl Words<'_> {
    #[inline]
    fn take(&mut self, bit: u32, otherwise: u32) -> u32 {
        let word = self.words[self.next & WORD_PLACES];
        let is_present = self.words[0] & bit != 0;
        self.next = self.next.wrapping_add(usize::from(is_present));
        if is_present {
            word
        } else {
            otherwise
        }
    }

    /// The lower word of a difference, as it is where there is no higher one.
    #[inline]
    fn take_difference(&mut self, bit: u32) -> i64 {
        i64::from(self.take(bit, 0) as i32)
    }

    #[inline]
    fn complete(&mut self, bit: u32, difference: i64) -> i64 {
        let high = self.take(bit, (difference >> 32) as u32);
        (u64::from(high) << 32) as i64 | i64::from(difference as u32)
    }
}

impl<'a, Parts: Iterator<Item = Part<'a, u32>>> Iterator for RecordReader<'a, Parts> {
    type Item = Row;

    #[inline(always)]
    fn next(&mut self) -> Option<Row> {
        if self.used == 0 && !self.turns_to_next_part() {
            return None;
        }
        match self.words.first_chunk::<RECORD_WORDS>() {
            Some(words) => Some(self.read(words)),
            None => Some(self.next_of_last()),
        }
    }
}

impl<'a, Parts: Iterator<Item = Part<'a, u32>>> RecordReader<'a, Parts> {
    /// Goes on to the next part that has words; false where there is none.
    #[inline(never)]
    fn turns_to_next_part(&mut self) -> bool {
        let Some(part) = self.parts.find(|part| part.used > 0) else { return false };
        (self.words, self.used) = (part.elements, part.used);
        true
    }
}

impl<Parts> RecordReader<'_, Parts> {
    /// The next row where fewer words are left than the longest record has.
    #[cold]
    #[inline(never)]
    fn next_of_last(&mut self) -> Row {
        let mut words = [0; RECORD_WORDS];
        words[..self.words.len()].copy_from_slice(self.words);
        self.read(&words)
    }

    #[inline(always)]
    fn read(&mut self, words: &[u32; RECORD_WORDS]) -> Row {
        use present::*;
        let head = words[0];
        let expected = &self.context.sides[(head & SIDE) as usize];
        let mut record = Words { words, next: 1 };
        let mut time = record.take_difference(TIME);
        let mut sequence = record.take_difference(SEQUENCE);
        let mut acknowledgement = record.take_difference(ACKNOWLEDGEMENT);
        let mut round_trip = record.take_difference(ROUND_TRIP);
        let tsval = record.take(TSVAL, expected.tsval);
        let tsecr = record.take(TSECR, expected.tsecr);
        let payload_hash = record.take(PAYLOAD_HASH, 0);
        let Expected { mut payload_bytes, mut window_bytes, mut flags_and_marks, mut ttl, .. } = *expected;
        if head & RARE != 0 {
            time = record.complete(TIME_HIGH, time);
            sequence = record.complete(SEQUENCE_HIGH, sequence);
            acknowledgement = record.complete(ACKNOWLEDGEMENT_HIGH, acknowledgement);
            round_trip = record.complete(ROUND_TRIP_HIGH, round_trip);
            payload_bytes = record.take(PAYLOAD_BYTES, payload_bytes);
            window_bytes = record.take(WINDOW_BYTES, window_bytes);
            flags_and_marks = record.take(FLAGS_AND_MARKS, flags_and_marks);
            ttl = record.take(TTL, ttl);
        }
        let row = Row {
            side: (head & SIDE) as u8,
            ttl: ttl as u8,
            flags: flags_and_marks as u16,
            marks: (flags_and_marks >> 16) as u16,
            ip_id: (head >> 16) as u16,
            time_ns: self.context.time_ns.wrapping_add(time),
            sequence_offset: expected.sequence_offset.wrapping_add(sequence),
            acknowledgement_offset: expected.acknowledgement_offset.wrapping_add(acknowledgement),
            round_trip_ns: NO_ROUND_TRIP.wrapping_add(round_trip),
            payload_bytes,
            window_bytes,
            tsval,
            tsecr,
            payload_hash,
        };
        self.context.follow(&row);
        // Counted once more, since the next record can then be begun before this one is taken apart.
        let length = 1 + (head & WORDS).count_ones() as usize;
        self.words = self.words.get(length..).unwrap_or(&[]);
        self.used = self.used.saturating_sub(length);
        row
    }
}
