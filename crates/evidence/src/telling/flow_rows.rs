//! Packets of a flow that show where its data begin and end, and how far they were acknowledged.

use crate::packets::Packets;

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

impl Packets<'_> {
    /// Where the data of `direction` begin and end, and what acknowledges most of them.
    pub fn flow_rows(&self, direction: u8) -> FlowRows {
        let ends = |rows: &[i64]| [rows.first(), rows.last()].map(|row| row.and_then(|&row| usize::try_from(row).ok()));
        let [first_data, last_data] = ends(&self.data_rows(direction));
        let [first_new, last_new] = ends(&self.first_copies(direction));
        let [_, last_acknowledging] = ends(&self.acknowledging_rows(direction));
        let opening = self.row_of_byte(direction, 0).or(first_data);
        FlowRows {
            opening,
            opening_bytes: opening.map_or(0, |row| self.payload_bytes[row]),
            first_data,
            last_data,
            first_new,
            last_new,
            last_acknowledging,
            acknowledged_bytes: last_acknowledging.map_or(0, |row| self.acknowledgement_offset[row]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::{flag, mark};

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
}
