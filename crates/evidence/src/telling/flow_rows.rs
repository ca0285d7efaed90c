//! Packets of a flow that show where its data begin and end, and how far they were acknowledged.

use crate::packets::Packets;
use crate::telling::{is_data, AGAIN};

/// Packets of one flow in one capture by their places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowRows {
    /// The first packet with the stream's first byte, without any the first with data, and its payload.
    pub opening: Option<usize>,
    pub opening_bytes: u32,
    pub first_data: Option<usize>,
    pub last_data: Option<usize>,
    /// Of packets whose payload lies beyond all before, or fills a hole.
    pub first_new: Option<usize>,
    pub last_new: Option<usize>,
    /// The packet that acknowledges most of the flow's data, the first of several, and how far.
    pub last_acknowledging: Option<usize>,
    pub acknowledged_bytes: i64,
}

/// Whether any packet of a stretch of so many is meant is found for several of them at once.
const STRETCH: usize = 1024;

/// Directions, payload and marks of the packets of a stretch.
type Stretch<'a> = ((&'a [u8], &'a [u32]), &'a [u16]);

impl Packets<'_> {
    /// Where the data of `direction` begin and end, and what acknowledges most of them.
    pub fn flow_rows(&self, direction: u8) -> FlowRows {
        let (first_data, last_data) = self.ends(|way, payload_bytes, _| is_data(direction, way, payload_bytes));
        let (first_new, last_new) =
            self.ends(|way, payload_bytes, marks| is_data(direction, way, payload_bytes) && marks & AGAIN == 0);
        let (last_acknowledging, acknowledged_bytes) = self.furthest_acknowledgement(direction);
        let opening = self.row_of_byte(direction, 0).or(first_data);
        FlowRows {
            opening,
            opening_bytes: opening.map_or(0, |row| self.payload_bytes[row]),
            first_data,
            last_data,
            first_new,
            last_new,
            last_acknowledging,
            acknowledged_bytes,
        }
    }

    /// The first and the last packet that is meant by direction, payload and marks, each looked for from its end.
    fn ends(&self, is_meant: impl Fn(u8, u32, u16) -> bool) -> (Option<usize>, Option<usize>) {
        let kinds = self.direction.chunks(STRETCH).zip(self.payload_bytes.chunks(STRETCH));
        let mut stretches = kinds.zip(self.marks.chunks(STRETCH)).enumerate();
        let of = |((&way, &payload_bytes), &marks): ((&u8, &u32), &u16)| is_meant(way, payload_bytes, marks);
        // Without an early end, so that it is computed for several packets at once.
        let any = |&(_, ((ways, payloads), marks)): &(usize, Stretch<'_>)| {
            ways.iter().zip(payloads).zip(marks).fold(false, |found, each| found | of(each))
        };
        let first = stretches.clone().find(any).and_then(|(number, ((ways, payloads), marks))| {
            Some(number * STRETCH + ways.iter().zip(payloads).zip(marks).position(of)?)
        });
        let last = stretches.rfind(any).and_then(|(number, ((ways, payloads), marks))| {
            Some(number * STRETCH + ways.iter().zip(payloads).zip(marks).rposition(of)?)
        });
        (first, last)
    }

    /// The first packet that acknowledges as much of the data of `direction` as any, and how far.
    fn furthest_acknowledgement(&self, direction: u8) -> (Option<usize>, i64) {
        let acknowledged = |(&way, &value): (&u8, &i64)| if way == direction { 0 } else { value };
        let (mut furthest, mut most) = (None, 0);
        let stretches = self.direction.chunks(STRETCH).zip(self.acknowledgement_offset.chunks(STRETCH));
        for (number, (ways, values)) in stretches.enumerate() {
            let of_stretch = ways.iter().zip(values).map(acknowledged).fold(0, i64::max);
            if of_stretch > most {
                (furthest, most) = (Some((number, ways, values)), of_stretch);
            }
        }
        let row = furthest.and_then(|(number, ways, values)| {
            Some(number * STRETCH + ways.iter().zip(values).map(acknowledged).position(|value| value == most)?)
        });
        (row, most)
    }
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
        let expected = FlowRows {
            opening: Some(1),
            opening_bytes: 100,
            first_data: Some(0),
            last_data: Some(4),
            first_new: Some(1),
            last_new: Some(2),
            last_acknowledging: Some(3),
            acknowledged_bytes: 200,
        };
        assert_eq!(packets.flow_rows(0), expected);
        assert_eq!(packets.flow_rows(1), FlowRows::default());
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
                let found = packets.flow_rows(way);
                let ends = |rows: Vec<i64>| [rows.first(), rows.last()].map(|row| row.map(|&row| row as usize));
                prop_assert_eq!([found.first_data, found.last_data], ends(packets.data_rows(way)));
                prop_assert_eq!([found.first_new, found.last_new], ends(packets.first_copies(way)));
                prop_assert_eq!(found.last_acknowledging, ends(packets.acknowledging_rows(way))[1]);
                let most = found.last_acknowledging.map_or(0, |row| acknowledgement_offset[row]);
                prop_assert_eq!(found.acknowledged_bytes, most);
            }
        }
    }
}
