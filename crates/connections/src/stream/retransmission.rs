//! What a data segment is that does not simply continue its stream, as far as one capture shows.
//!
//! - Bytes that this capture has already seen: sent again, unless it is the very same packet.
//! - The very same packet (same IP identification, numbers, window, flags and TSval) shortly after: a duplicate, made
//!   by the network or by the capture (mirror ports, several interfaces). Where the IP identification is 0 (IPv6, or DF
//!   with a zeroed field), a packet with data, SYN or FIN is one if it comes sooner than any sender can have noticed a
//!   loss; of pure acknowledgements this remains undecided, since receivers of a burst send equal ones at once.
//! - Bytes never seen, below the highest: either the original came late (out-of-order) or it was lost before this point
//!   and this is the retransmission. The TSval decides where it differs from that of the packet that jumped ahead: a
//!   reordered packet is older, a retransmission newer. Where it cannot, a packet that comes sooner than the sender
//!   could have detected the loss (one round trip between this point and the sender, from the handshake; 3 ms where
//!   the handshake is missing, as Wireshark assumes) was reordered.

use crate::stream::coverage::Hole;
use pepscope_wire::segment::{flag, Segment};
use pepscope_wire::PlainSegment;

/// Assumed round trip to the sender where the capture lacks the handshake.
pub(crate) const ASSUMED_ROUND_TRIP_NS: i64 = 3_000_000;
/// A copy later than this after the flow's previous packet is not called a duplicate; below the least
/// retransmission timeout in use (200 ms).
const DUPLICATE_WITHIN_NS: i64 = 100_000_000;
const REMEMBERED: usize = 8;
/// Without an IP identification a copy comes within half of the whole path's round trip, which every detection of a
/// loss takes, and at most within this time: mirror ports queue for less.
const UNNUMBERED_DUPLICATE_WITHIN_NS: i64 = 1_000_000;
/// The same where the handshake is missing: a round trip between hosts of one rack.
const UNTIMED_DUPLICATE_WITHIN_NS: i64 = 50_000;

/// Whether a packet that fills a hole was overtaken on its way, rather than sent again.
pub(crate) fn was_overtaken(hole: &Hole, time_ns: i64, tsval: Option<u32>, round_trip_ns: i64) -> bool {
    if let (Some(own), Some(jumper)) = (tsval, hole.tsval) {
        let newer_by = own.wrapping_sub(jumper) as i32;
        if newer_by != 0 {
            return newer_by < 0;
        }
    }
    time_ns.saturating_sub(hole.time_ns) < round_trip_ns
}

/// Whether a packet is a copy of one of the last few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    No,
    Yes,
    /// It is the same but for its time, which decides.
    ByTime,
}

/// The last few packets of a flow, as fingerprints, to recognise the same packet again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecentPackets {
    fingerprints: [u32; REMEMBERED],
    /// Of packets without IP identification, in units of 1024 ns, of which the lower bits tell apart all times that
    /// matter.
    times: [u32; REMEMBERED],
    next: u8,
}

impl RecentPackets {
    /// Stores the packet, and says whether one of the last few was the same one.
    #[inline]
    pub(crate) fn note(&mut self, segment: &Segment<'_>, since_previous_ns: i64) -> Repeat {
        if segment.ip_id == 0 {
            return self.note_unnumbered(segment);
        }
        let fingerprint = PacketIdentity::from(segment).fingerprint();
        if self.knows(fingerprint) {
            return if since_previous_ns < DUPLICATE_WITHIN_NS { Repeat::Yes } else { Repeat::No };
        }
        self.store(fingerprint);
        Repeat::No
    }

    /// Stores a packet with ACK and without SYN, FIN and RST, unless it may be one of the last few: then false, and
    /// nothing is changed.
    #[inline(always)]
    pub(crate) fn note_new(&mut self, packet: &PacketIdentity, time_ns: i64) -> bool {
        let is_numbered = packet.ip_id != 0;
        if !is_numbered && packet.payload_length == 0 {
            return true; // see `note_unnumbered`
        }
        let fingerprint = packet.fingerprint();
        if self.knows(fingerprint) {
            return false;
        }
        let place = self.store(fingerprint);
        if !is_numbered {
            self.times[place] = coarse(time_ns);
        }
        true
    }

    #[inline]
    fn knows(&self, fingerprint: u32) -> bool {
        self.fingerprints.iter().fold(false, |found, &other| found | (other == fingerprint))
    }

    /// Remembers a packet in place of the oldest one; gives that place.
    #[inline]
    fn store(&mut self, fingerprint: u32) -> usize {
        let place = usize::from(self.next) % REMEMBERED;
        self.fingerprints[place] = fingerprint;
        self.next = self.next.wrapping_add(1);
        place
    }

    /// `note` for a packet without IP identification.
    #[inline(never)]
    fn note_unnumbered(&mut self, segment: &Segment<'_>) -> Repeat {
        if segment.payload_length == 0 && segment.flags & (flag::SYN | flag::FIN) == 0 {
            return Repeat::No;
        }
        let fingerprint = PacketIdentity::from(segment).fingerprint();
        if self.knows(fingerprint) {
            return Repeat::ByTime;
        }
        let place = self.store(fingerprint);
        self.times[place] = coarse(segment.time_ns);
        Repeat::No
    }

    /// Whether a packet without IP identification comes too soon after its first copy to be sent again.
    /// `round_trip_ns` is that of the whole path, as far as the handshake showed it.
    #[cold]
    pub(crate) fn repeats_by_time(&mut self, segment: &Segment<'_>, round_trip_ns: Option<i64>) -> bool {
        let fingerprint = PacketIdentity::from(segment).fingerprint();
        let opens = segment.flags & flag::SYN != 0;
        let within_ns = match round_trip_ns {
            Some(round_trip_ns) => (round_trip_ns / 2).min(UNNUMBERED_DUPLICATE_WITHIN_NS),
            // A SYN is sent again after a timeout only.
            None if opens => UNNUMBERED_DUPLICATE_WITHIN_NS,
            None => UNTIMED_DUPLICATE_WITHIN_NS,
        };
        let now = coarse(segment.time_ns);
        let Some(place) = self.fingerprints.iter().position(|&other| other == fingerprint) else { return false };
        let since_ns = i64::from(now.wrapping_sub(self.times[place])) << COARSE_BITS;
        let repeats = since_ns <= within_ns;
        if !repeats {
            // Its own copies follow this one.
            self.times[place] = now;
        }
        repeats
    }
}

const COARSE_BITS: u32 = 10;

fn coarse(time_ns: i64) -> u32 {
    (time_ns >> COARSE_BITS) as u32
}

/// What tells a packet from others of its flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketIdentity {
    sequence: u32,
    acknowledgement: u32,
    timestamps: Option<(u32, u32)>,
    ip_id: u16,
    window: u16,
    payload_length: u32,
    flags: u16,
}

macro_rules! identity_of {
    ($segment:ident, $timestamps:expr) => {
        PacketIdentity {
            sequence: $segment.sequence,
            acknowledgement: $segment.acknowledgement,
            timestamps: $timestamps,
            ip_id: $segment.ip_id,
            window: $segment.window,
            payload_length: $segment.payload_length,
            flags: $segment.flags,
        }
    };
}

impl From<&Segment<'_>> for PacketIdentity {
    #[inline]
    fn from(segment: &Segment<'_>) -> Self {
        identity_of!(segment, segment.options.timestamps)
    }
}

impl From<&PlainSegment<'_>> for PacketIdentity {
    #[inline]
    fn from(segment: &PlainSegment<'_>) -> Self {
        identity_of!(segment, segment.timestamps)
    }
}

impl PacketIdentity {
    /// Never 0, which stands for no packet.
    #[inline(always)]
    fn fingerprint(&self) -> u32 {
        let (tsval, tsecr) = self.timestamps.unwrap_or((0, 0));
        let numbers = u64::from(self.sequence) << 32 | u64::from(self.acknowledgement);
        let clocks = u64::from(tsval) << 32 | u64::from(tsecr);
        let rest = u64::from(self.ip_id) << 48
            | u64::from(self.window) << 32
            | u64::from(self.payload_length) << 12
            | u64::from(self.flags);
        let product = u128::from(numbers ^ 0x9e37_79b9_7f4a_7c15) * u128::from(rest ^ 0xd6e8_feb8_6659_fd93);
        let mixed = (product >> 64) as u64 ^ product as u64 ^ clocks;
        let product = u128::from(mixed) * 0xa076_1d64_78bd_642f_u128;
        ((product >> 64) as u64 ^ product as u64) as u32 | 1
    }
}
