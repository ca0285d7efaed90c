//! What a client says before the server speaks, which firewalls may collect and acknowledge.
//!
//! A ClientHello with post-quantum key shares, or a request with long cookies, comes in several segments. Firewalls whose
//! rules go by server names collect them to read the name, and acknowledge them in the server's name, but end no
//! connection. They may acknowledge a segment before the next one passes the capture.

use crate::packets::{flag, Packets, UP};

/// Nearly all paths take more in one segment. What a capture at its sender shows as one packet may be cut behind it.
const CERTAIN_SEGMENT_BYTES: i64 = 1400;
/// Firewalls collect no longer first flights than this.
const LONGEST_INSPECTED_BYTES: i64 = 8192;

/// What a client says before the server speaks.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstFlight {
    is_collected: bool,
    is_over: bool,
}

impl FirstFlight {
    /// Of this direction. Firewalls inspect no server's, and a capture without the handshake does not show what the
    /// client said first.
    pub(super) fn of(packets: &Packets<'_>, direction: u8) -> Self {
        FirstFlight { is_collected: direction == UP && comes_in_segments(packets), is_over: false }
    }

    /// A packet passes, of the client (`is_own`) or the server.
    pub(super) fn pass(&mut self, is_own: bool, payload_bytes: u32) {
        self.is_over |= !is_own && payload_bytes > 0;
    }

    /// Whether who acknowledges up to this offset may have collected it to read it.
    pub(super) fn may_be_inspected(self, acknowledgement_offset: i64) -> bool {
        self.is_collected && !self.is_over && acknowledgement_offset <= LONGEST_INSPECTED_BYTES
    }
}

/// Whether the client, whose handshake is captured, says more than a segment before the server speaks.
fn comes_in_segments(packets: &Packets<'_>) -> bool {
    let (mut segments, mut bytes, mut is_begun) = (0, 0, false);
    for (place, &payload_bytes) in packets.payload_bytes.iter().enumerate() {
        is_begun |= packets.flags[place] & flag::SYN != 0;
        if payload_bytes == 0 {
            continue;
        }
        if !is_begun || packets.direction[place] != UP {
            return false;
        }
        segments += 1;
        bytes += i64::from(payload_bytes);
        if segments > 1 || bytes > CERTAIN_SEGMENT_BYTES {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchanges::round_trips::Samples;

    #[test]
    fn a_first_flight_of_several_segments_may_be_acknowledged_by_who_reads_it() {
        // Packets as (direction, payload, acknowledged up to): samples of 10 end at each acknowledgement.
        let begun_with = |first: u16, packets: &[(u8, u32, i64)], way| {
            let column = |of: fn(&(u8, u32, i64)) -> i64| packets.iter().map(of).collect::<Vec<_>>();
            let round_trips = column(|packet| if packet.2 > 0 { 10 } else { -1 });
            let packets = Packets {
                time_ns: &(0..packets.len() as i64).collect::<Vec<_>>(),
                direction: &packets.iter().map(|packet| packet.0).collect::<Vec<_>>(),
                flags: &(0..packets.len()).map(|place| if place == 0 { first } else { flag::ACK }).collect::<Vec<_>>(),
                payload_bytes: &packets.iter().map(|packet| packet.1).collect::<Vec<_>>(),
                round_trip_time_ns: &round_trips,
                acknowledgement_offset: &column(|packet| packet.2),
                ..Packets::default()
            };
            Samples::default().take(&packets, way).count
        };
        let samples = |packets: &[(u8, u32, i64)], way| begun_with(flag::SYN, &[&[(0, 0, 0)], packets].concat(), way);
        let hello = [(0, 1_448, 0), (0, 470, 0), (1, 0, 1_448), (1, 0, 1_918)];
        assert_eq!(samples(&hello, 0), 0);
        assert_eq!(samples(&[(0, 1_918, 0), (1, 0, 1_918)], 0), 0, "one packet until the card cuts it");
        assert_eq!(samples(&[(0, 1_470, 0), (1, 0, 1_470)], 0), 0, "with timestamps it cuts this as well");
        let slow = [(0, 1_448, 0), (1, 0, 1_448), (0, 470, 0), (1, 0, 1_918)];
        assert_eq!(samples(&slow, 0), 0, "the second segment comes after the acknowledgement of the first");
        assert_eq!(begun_with(flag::ACK, &slow, 0), 2, "within a connection nothing is said first");
        assert_eq!(samples(&[(0, 517, 0), (1, 0, 517)], 0), 1, "of one segment there is nothing to collect");
        assert_eq!(samples(&[&hello[..], &[(1, 90, 1_918), (0, 64, 0), (1, 0, 1_982)]].concat(), 0), 2);
        let upload = [(0, 9_000, 0), (1, 0, 1_448), (1, 0, LONGEST_INSPECTED_BYTES + 1)];
        assert_eq!(samples(&upload, 0), 1, "firewalls collect no more");
        assert_eq!(samples(&[(1, 1_448, 0), (1, 470, 0), (0, 0, 1_918)], 1), 1, "what servers say is not inspected");
    }
}
