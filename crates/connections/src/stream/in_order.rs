//! The short path for packets that only continue a connection: data that follow what its sender sent before, and
//! acknowledgements that advance or come with data. Whatever else a packet may mean, [`Connection::handle_segment`]
//! decides; where this path takes a packet, both do the same to the connection.

use crate::connection::{Connection, FIRST_PACKETS};
use crate::mark;
use crate::stream::reading::Reading;
use crate::stream::retransmission::PacketIdentity;
use pepscope_wire::PlainSegment;

impl Connection {
    /// Whether nothing about the connection is open that a packet which only continues it would settle: how it began,
    /// where its streams do, probes into a zero window, how it ends.
    pub(crate) fn is_under_way(&self) -> bool {
        let is_settled = self.sides.iter().all(|side| side.sequence.anchored() && side.has_no_probe());
        let is_ending = self.sides.iter().all(|side| side.has_ended());
        let begins_known = self.sides.iter().all(|side| side.origin_known) || self.packets() >= FIRST_PACKETS;
        self.handshake_acknowledged && is_settled && begins_known && !is_ending
    }

    /// Takes in a packet that `side` sent; `None`, and nothing is changed, where it does more than to continue.
    #[inline(always)]
    pub(crate) fn continue_with(&mut self, side: usize, segment: &PlainSegment<'_>) -> Option<Reading> {
        if !self.under_way || segment.time_ns < self.last_time_ns {
            return None;
        }
        let [first, second] = &mut self.sides;
        let (own, other) = if side == 0 { (first, second) } else { (second, first) };
        let start = own.sequence.offset(segment.sequence);
        let end = start + i64::from(segment.payload_length);
        let acknowledged = other.sequence.offset(segment.acknowledgement);
        let window_bytes = own.window.scaled(segment.window);
        let has_data = segment.payload_length > 0;
        let follows = if has_data {
            let probes = segment.payload_length == 1 && other.window.is_zero();
            let is_of_earlier = own.origin_known && end <= own.origin;
            own.coverage.is_continued_at(start) && !probes && !is_of_earlier
        } else {
            // No keep-alive, no duplicate, no mere update of the window.
            let keeps_alive =
                own.coverage.started() && (start == own.coverage.highest() - 1 || start + 1 == own.acknowledged);
            !keeps_alive && acknowledged != other.acknowledged
        };
        let takes_both = own.sequence.takes(start) && other.sequence.takes(acknowledged);
        if !follows || !takes_both || window_bytes == 0 || own.packets == 0 {
            return None;
        }
        if !own.recent.note_new(&PacketIdentity::from(segment), segment.time_ns) {
            return None;
        }

        self.last_time_ns = segment.time_ns;
        own.count_plain(segment);
        own.sequence.reach(end);
        if has_data {
            own.send_next(start, end, segment);
            if self.first_data_side.is_none() {
                self.first_data_side = Some(side as u8);
            }
        }
        other.sequence.reach(acknowledged);
        let tsecr = segment.timestamps.map(|(_, tsecr)| tsecr);
        let round_trip_ns = other.acknowledge(acknowledged, segment.time_ns, tsecr).unwrap_or(-1);
        own.window.advertise(window_bytes);
        Some(Reading {
            sequence_offset: start,
            acknowledgement_offset: acknowledged,
            window_bytes,
            marks: if segment.timestamps.is_some() { mark::HAS_TIMESTAMPS } else { 0 },
            round_trip_ns,
            payload_offset: start,
            payload_is_new: has_data,
        })
    }
}
