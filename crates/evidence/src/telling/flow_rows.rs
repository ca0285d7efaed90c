//! Packets of a flow that show where its data begin and end, and how far they were acknowledged; each is looked for from
//! its own end.

use crate::packets::Packets;
use crate::telling::{is_data, AGAIN};

/// Whether any packet of a stretch of so many is meant is found for several of them at once.
const STRETCH: usize = 1024;

/// Directions, payload and marks of the packets of a stretch.
type Stretch<'a> = ((&'a [u8], &'a [u32]), &'a [u16]);

impl Packets<'_> {
    /// The first packet with the first byte of the stream of `direction`, without any the first with data.
    pub fn stream_opening(&self, direction: u8) -> Option<usize> {
        let first = self.first_where(|way, payload_bytes, _| is_data(direction, way, payload_bytes))?;
        self.row_of_byte_from(first, direction, 0).or(Some(first))
    }

    /// The first and the last packet of `direction` with data; with `only_new` of those whose payload lies beyond all
    /// before, or fills a hole.
    pub fn data_ends(&self, direction: u8, only_new: bool) -> Option<(usize, usize)> {
        let left_out = if only_new { AGAIN } else { 0 };
        let is_meant =
            |way, payload_bytes, marks: u16| is_data(direction, way, payload_bytes) & (marks & left_out == 0);
        self.first_where(is_meant).zip(self.last_where(is_meant))
    }

    /// The first packet that is meant by direction, payload and marks.
    fn first_where(&self, is_meant: impl Fn(u8, u32, u16) -> bool) -> Option<usize> {
        let (number, ((ways, payloads), marks)) = self.stretches().find(|stretch| has_any(stretch, &is_meant))?;
        let mut packets = ways.iter().zip(payloads).zip(marks);
        Some(number * STRETCH + packets.position(|((&way, &bytes), &marks)| is_meant(way, bytes, marks))?)
    }

    /// The last packet that is meant by direction, payload and marks.
    fn last_where(&self, is_meant: impl Fn(u8, u32, u16) -> bool) -> Option<usize> {
        let (number, ((ways, payloads), marks)) = self.stretches().rfind(|stretch| has_any(stretch, &is_meant))?;
        let mut packets = ways.iter().zip(payloads).zip(marks);
        Some(number * STRETCH + packets.rposition(|((&way, &bytes), &marks)| is_meant(way, bytes, marks))?)
    }

    fn stretches(&self) -> impl DoubleEndedIterator<Item = (usize, Stretch<'_>)> {
        let kinds = self.direction.chunks(STRETCH).zip(self.payload_bytes.chunks(STRETCH));
        kinds.zip(self.marks.chunks(STRETCH)).enumerate()
    }

    /// The first packet that acknowledges as much of the data of `direction` as any, and how far.
    pub fn furthest_acknowledgement(&self, direction: u8) -> Option<(usize, i64)> {
        let acknowledged = |(&way, &value): (&u8, &i64)| if way == direction { 0 } else { value };
        let (mut furthest, mut most) = (None, 0);
        let stretches = self.direction.chunks(STRETCH).zip(self.acknowledgement_offset.chunks(STRETCH));
        for (number, (ways, values)) in stretches.enumerate() {
            let of_stretch = ways.iter().zip(values).map(acknowledged).fold(0, i64::max);
            if of_stretch > most {
                (furthest, most) = (Some((number, ways, values)), of_stretch);
            }
        }
        let (number, ways, values) = furthest?;
        let place = ways.iter().zip(values).map(acknowledged).position(|value| value == most)?;
        Some((number * STRETCH + place, most))
    }
}

/// Without an early end, so that it is computed for several packets at once.
fn has_any((_, ((ways, payloads), marks)): &(usize, Stretch<'_>), is_meant: impl Fn(u8, u32, u16) -> bool) -> bool {
    let packets = ways.iter().zip(*payloads).zip(*marks);
    packets.fold(false, |found, ((&way, &bytes), &marks)| found | is_meant(way, bytes, marks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::{flag, mark, DOWN, UP};
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn data_begin_where_the_stream_does_and_copies_are_not_new() {
        let packets = Packets {
            time_ns: &[0, 1, 2, 3, 4],
            direction: &[0, 0, 0, 1, 0],
            sequence_offset: &[100, 0, 100, 0, 100],
            acknowledgement_offset: &[0, 0, 0, 200, 0],
            payload_bytes: &[50, 100, 100, 0, 100],
            flags: &[flag::ACK; 5],
            marks: &[mark::RETRANSMISSION, 0, 0, 0, mark::DUPLICATE],
            ..Packets::default()
        };
        assert_eq!(packets.stream_opening(0), Some(1));
        assert_eq!((packets.data_ends(0, false), packets.data_ends(0, true)), (Some((0, 4)), Some((1, 2))));
        assert_eq!(packets.furthest_acknowledgement(0), Some((3, 200)));
        assert_eq!((packets.stream_opening(1), packets.furthest_acknowledgement(1)), (None, None));
        assert_eq!((packets.data_ends(1, false), packets.data_ends(1, true)), (None, None));
    }

    proptest! {
        #[test]
        fn ends_are_those_of_all_rows(
            rows in vec((0_u8..2, 0_u32..2, 0_u16..4, -2_i64..40), 0..40),
            filler in 0_usize..2500,
        ) {
            let (direction, payload_bytes, marks, acknowledgement_offset) = rows
                .into_iter()
                .chain(std::iter::repeat_n((DOWN, 0, 0, 0), filler))
                .fold((vec![], vec![], vec![], vec![]), |mut columns, (way, payload_bytes, marks, acknowledged)| {
                    columns.0.push(way);
                    columns.1.push(payload_bytes);
                    columns.2.push(marks);
                    columns.3.push(acknowledged);
                    columns
                });
            let zeros = vec![0; direction.len()];
            let packets = Packets {
                time_ns: &zeros,
                direction: &direction,
                sequence_offset: &zeros,
                acknowledgement_offset: &acknowledgement_offset,
                payload_bytes: &payload_bytes,
                marks: &marks,
                ..Packets::default()
            };
            for way in [UP, DOWN] {
                let ends = |rows: Vec<i64>| Some((*rows.first()? as usize, *rows.last()? as usize));
                prop_assert_eq!(packets.data_ends(way, false), ends(packets.data_rows(way)));
                prop_assert_eq!(packets.data_ends(way, true), ends(packets.first_copies(way)));
                let first = packets.data_rows(way).first().map(|&row| row as usize);
                prop_assert_eq!(packets.stream_opening(way), packets.row_of_byte(way, 0).or(first));
                let last = packets.acknowledging_rows(way).last().map(|&row| row as usize);
                let furthest = last.map(|row| (row, acknowledgement_offset[row]));
                prop_assert_eq!(packets.furthest_acknowledgement(way), furthest);
            }
        }
    }
}
