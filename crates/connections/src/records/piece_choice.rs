//! Which pieces of payload are kept where not all of a sample are asked for.

use crate::connection::{Connection, FIRST_PACKETS};
use crate::records::payload_sample::{is_kept, PIECE_BYTES};
use crate::stream::reading::Reading;

/// What payload of TCP streams to keep.
#[derive(Clone, Copy, Debug, Default)]
pub enum Payload {
    #[default]
    Nothing,
    /// The same regions of every stream.
    Sample,
    /// Of these regions what is chosen, by a choice that is made anew for each reading.
    Chosen(fn() -> Box<dyn ChoosePieces + Send>),
}

impl Payload {
    /// Whether there is any.
    pub fn is_kept(&self) -> bool {
        !matches!(self, Payload::Nothing)
    }
}

/// Chooses pieces while packets come.
pub trait ChoosePieces {
    /// Whether to keep the payload of the next packet, which a side (0 sent the connection's first packet) sent. Of what
    /// is not new, or not in the sample, nothing is kept in any case.
    fn is_wanted(&mut self, connection: usize, side: usize, offered: &Offered<'_>) -> bool;
}

/// A packet with payload. Offsets count from the first number known of each stream.
#[derive(Clone, Copy, Debug)]
pub struct Offered<'a> {
    pub start: i64,
    pub end: i64,
    /// As in `Columns`, but for the origin.
    pub acknowledgement: i64,
    /// The captured part, at most `PIECE_BYTES`; `None` outside the sample.
    pub bytes: Option<&'a [u8]>,
    pub is_new: bool,
    /// TCP flags as on the wire.
    pub flags: u16,
    /// Of [`crate::mark`].
    pub marks: u16,
    /// The stream is known to begin here.
    pub begins: bool,
}

impl<'a> Offered<'a> {
    /// What a packet brings that was read so; `None` where it has no payload.
    #[inline]
    pub(crate) fn of(
        connection: &Connection,
        side: usize,
        (flags, payload, length): (u16, &'a [u8], u32),
        reading: &Reading,
    ) -> Option<Self> {
        if length == 0 {
            return None;
        }
        let own = &connection.sides[side];
        let start = reading.payload_offset;
        // Until the beginning is known, pieces are stored and sorted at the end.
        let settled = own.origin_known || connection.packets() > FIRST_PACKETS;
        let sampled = !settled || is_kept(start - own.origin);
        Some(Offered {
            start,
            end: start + i64::from(length),
            acknowledgement: reading.acknowledgement_offset,
            bytes: sampled.then(|| &payload[..payload.len().min(PIECE_BYTES)]),
            is_new: reading.payload_is_new,
            flags,
            marks: reading.marks,
            begins: own.origin_known && start == own.origin,
        })
    }
}
