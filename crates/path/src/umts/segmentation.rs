//! SDUs that wait, and how they are cut into PDUs.

use std::collections::VecDeque;

use crate::queues::queue::{Occupancy, QueueLimit, QueueSettings, Size};

use super::pdu::{length_indicator_bytes, AMD_HEADER_BYTES};

#[derive(Clone, Debug)]
struct Sdu<P> {
    /// Taken out when the receiver delivers it.
    packet: Option<P>,
    packet_bytes: u32,
    /// Not yet in a PDU.
    left_bytes: u32,
    /// The PDU whose length indicator marks its end; `None` until that PDU is made.
    last_pdu: Option<u64>,
}

/// What a new PDU holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// SDU whose end the first length indicator gives.
    pub(super) first_end: u64,
    /// Length indicators that end an SDU.
    pub(super) ends: u16,
    /// Last SDU that has a part or its end in it.
    pub(super) last_sdu: u64,
}

/// The SDUs that were not yet acknowledged, in order; they and the PDUs are counted from 0.
#[derive(Clone, Debug)]
pub(super) struct Segmentation<P> {
    payload_bytes: u32,
    indicator_bytes: u32,
    buffer: QueueSettings,
    waiting: Occupancy,
    sdus: VecDeque<Sdu<P>>,
    /// Count of the first of `sdus`.
    first: u64,
    /// The SDU that the next new PDU begins with.
    next: u64,
    /// The SDU before it ended with no room for its length indicator, which the next PDU must carry.
    owes_indicator: bool,
}

impl<P> Segmentation<P> {
    pub(super) fn new(pdu_bits: u32, buffer: QueueLimit) -> Self {
        Self {
            payload_bytes: pdu_bits / 8 - AMD_HEADER_BYTES,
            indicator_bytes: length_indicator_bytes(pdu_bits),
            buffer: QueueSettings { limit: buffer, ..QueueSettings::default() },
            waiting: Occupancy::default(),
            sdus: VecDeque::new(),
            first: 0,
            next: 0,
            owes_indicator: false,
        }
    }

    /// Takes a packet that makes an SDU of `sdu_bytes`; `false` if the buffer is full.
    pub(super) fn take(&mut self, packet: P, packet_bytes: u32, sdu_bytes: u32) -> bool {
        let in_service = self.sdu_mut(self.next).map(|sdu| Size { bytes: sdu.packet_bytes, frames: 0 });
        let size = Size { bytes: packet_bytes, frames: 0 };
        if !self.buffer.admits(self.waiting, in_service, size) {
            return false;
        }
        self.waiting.add(size);
        self.sdus.push_back(Sdu { packet: Some(packet), packet_bytes, left_bytes: sdu_bytes, last_pdu: None });
        true
    }

    /// Takes out an SDU that the receiver has whole.
    pub(super) fn deliver(&mut self, sdu: u64) -> Option<P> {
        self.sdu_mut(sdu)?.packet.take()
    }

    /// Packets that are not yet wholly in PDUs.
    pub(super) fn waiting(&self) -> Occupancy {
        self.waiting
    }

    /// Whether there is anything to make a PDU of.
    pub(super) fn has_new(&self) -> bool {
        self.owes_indicator || self.next < self.first + self.sdus.len() as u64
    }

    /// Makes the PDU `count` of what waits (section 9.2.2.8: an SDU that leaves no room for its length indicator ends
    /// in the next PDU).
    pub(super) fn cut(&mut self, count: u64) -> Cut {
        let mut room = self.payload_bytes;
        let mut cut = Cut { first_end: self.next, ends: 0, last_sdu: self.next };
        if core::mem::take(&mut self.owes_indicator) {
            cut = Cut { first_end: self.next - 1, ends: 1, last_sdu: self.next - 1 };
            room -= self.indicator_bytes;
            if let Some(sdu) = self.sdu_mut(cut.first_end) {
                sdu.last_pdu = Some(count);
            }
        }
        while room > 0 {
            let (next, indicator_bytes) = (self.next, self.indicator_bytes);
            let Some(sdu) = self.sdu_mut(next) else {
                break;
            };
            cut.last_sdu = next;
            if sdu.left_bytes > room {
                sdu.left_bytes -= room;
                break;
            }
            let needed = core::mem::take(&mut sdu.left_bytes) + indicator_bytes;
            let size = Size { bytes: sdu.packet_bytes, frames: 0 };
            if needed <= room {
                sdu.last_pdu = Some(count);
                cut.ends += 1;
                room -= needed;
            } else {
                self.owes_indicator = true;
                room = 0;
            }
            self.waiting.remove(size);
            self.next += 1;
        }
        cut
    }

    /// The PDU whose length indicator marks the end of `sdu`; what of it is in no PDU yet will be in none, `next_pdu`
    /// being the next.
    pub(super) fn give_up(&mut self, sdu: u64, next_pdu: u64) -> LastPdu {
        let Some(given_up) = self.sdu_mut(sdu) else {
            return LastPdu::Unknown;
        };
        if let Some(pdu) = given_up.last_pdu {
            return LastPdu::Indicated(pdu);
        }
        given_up.last_pdu = Some(next_pdu.saturating_sub(1));
        let size = Size { bytes: given_up.packet_bytes, frames: 0 };
        if core::mem::take(&mut given_up.left_bytes) > 0 {
            self.waiting.remove(size);
            self.next = sdu + 1;
        }
        self.owes_indicator = false;
        LastPdu::Untold
    }

    /// Removes the SDUs that end before the PDU `acknowledged`; returns how many of them were not delivered.
    pub(super) fn forget_before(&mut self, acknowledged: u64) -> u64 {
        let mut undelivered = 0;
        while self.sdus.front().is_some_and(|sdu| sdu.last_pdu.is_some_and(|pdu| pdu < acknowledged)) {
            undelivered += u64::from(self.sdus.pop_front().is_some_and(|sdu| sdu.packet.is_some()));
            self.first += 1;
        }
        undelivered
    }

    fn sdu_mut(&mut self, count: u64) -> Option<&mut Sdu<P>> {
        self.sdus.get_mut(usize::try_from(count.checked_sub(self.first)?).ok()?)
    }
}

/// The end of an SDU that is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastPdu {
    /// It is no longer known.
    Unknown,
    /// No PDU made so far marks its end.
    Untold,
    Indicated(u64),
}
