//! Super-packets, as a capture shows them where the network card or the kernel joins or cuts segments.

use pepscope_path::{Direction, Nanoseconds};
use pepscope_tcp::{Flags, Packet, Segment};

/// Length of the longest IP packet.
pub const MOST_BYTES: u32 = 65_535;

/// Which segments are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoalescingSettings {
    /// The longest time from the first segment of a super-packet to its last.
    pub within_ns: Nanoseconds,
    /// Length of the longest super-packet with its headers, up to [`MOST_BYTES`].
    pub most_bytes: u32,
    /// The direction in which the host beside the tap sends. A sender's super-packet is seen when its first segment
    /// leaves (segmentation offload), a receiver's when its last one has come (receive offload).
    pub sending: Option<Direction>,
}

/// A packet that waits: it may grow yet, or another one has to be shown before it.
#[derive(Clone, Copy, Debug)]
struct Held {
    packet: Packet,
    direction: Direction,
    first_ns: Nanoseconds,
    /// When the capture shows it, so far.
    shown_ns: Nanoseconds,
    /// Payload of its first segment; a shorter one is the last.
    segment_bytes: u16,
    open: bool,
}

/// Joins segments as generic receive offload does (same flow and options, next in sequence, no flags but ACK and PSH).
#[derive(Clone, Debug)]
pub struct Coalescer {
    settings: CoalescingSettings,
    held: Vec<Held>,
}

impl Coalescer {
    #[must_use]
    pub fn new(settings: CoalescingSettings) -> Self {
        Self { settings, held: Vec::new() }
    }

    /// Takes a packet seen at `now` and hands what can be shown to `show`, in order of time.
    pub fn push(
        &mut self,
        now: Nanoseconds,
        direction: Direction,
        packet: &Packet,
        show: impl FnMut(Nanoseconds, Direction, &Packet),
    ) {
        for held in &mut self.held {
            held.open &= now.saturating_sub(held.first_ns) <= self.settings.within_ns;
        }
        if !self.join(now, direction, packet) {
            let (segment_bytes, open) = match packet {
                Packet::Tcp(segment) => (segment.payload_bytes, can_grow(segment)),
                _ => (0, false),
            };
            let packet = *packet;
            self.held.push(Held { packet, direction, first_ns: now, shown_ns: now, segment_bytes, open });
        }
        self.show_ready(show);
    }

    /// Hands over everything that is still held.
    pub fn finish(&mut self, show: impl FnMut(Nanoseconds, Direction, &Packet)) {
        for held in &mut self.held {
            held.open = false;
        }
        self.show_ready(show);
    }

    /// Appends the packet to an open super-packet; one of the same flow that cannot take it is closed.
    fn join(&mut self, now: Nanoseconds, direction: Direction, packet: &Packet) -> bool {
        let Packet::Tcp(next) = packet else { return false };
        let most_bytes = self.settings.most_bytes;
        for held in self.held.iter_mut().filter(|held| held.open && held.direction == direction) {
            let Packet::Tcp(first) = &mut held.packet else { continue };
            if first.flow != next.flow {
                continue;
            }
            let total = first.length_bytes() + u32::from(next.payload_bytes);
            if !follows(first, next) || next.payload_bytes > held.segment_bytes || total > most_bytes.min(MOST_BYTES) {
                held.open = false;
                return false;
            }
            first.payload_bytes += next.payload_bytes;
            first.flags |= next.flags;
            if self.settings.sending != Some(direction) {
                held.shown_ns = now;
            }
            held.open = can_grow(next) && next.payload_bytes == held.segment_bytes;
            return true;
        }
        false
    }

    /// Shows the earliest while no open one could still turn out to be earlier.
    fn show_ready(&mut self, mut show: impl FnMut(Nanoseconds, Direction, &Packet)) {
        while let Some((index, earliest)) = self.held.iter().enumerate().min_by_key(|(_, held)| held.shown_ns) {
            if earliest.open {
                break;
            }
            show(earliest.shown_ns, earliest.direction, &earliest.packet);
            self.held.remove(index);
        }
    }
}

/// Whether another segment may be joined behind this one.
fn can_grow(segment: &Segment) -> bool {
    segment.payload_bytes > 0 && segment.flags == Flags::ACK && segment.sack.is_empty()
}

/// Whether `next` continues `first` with the same headers.
fn follows(first: &Segment, next: &Segment) -> bool {
    let bytes = u32::from(first.payload_bytes);
    next.sequence == first.sequence.wrapping_add(bytes)
        && next.content == first.content
        && next.content_offset == first.content_offset + u64::from(bytes)
        && next.payload_bytes > 0
        && (next.flags == Flags::ACK || next.flags == Flags::ACK | Flags::PSH)
        && next.acknowledgement == first.acknowledgement
        && next.timestamps == first.timestamps
        && next.sack.is_empty()
        && next.ecn == first.ecn
        && next.time_to_live == first.time_to_live
}

#[cfg(test)]
mod tests {
    use super::{Coalescer, CoalescingSettings, MOST_BYTES};
    use pepscope_path::{Direction, Nanoseconds};
    use pepscope_tcp::{Flags, Packet, Segment};

    fn data(sequence: u32, payload_bytes: u16) -> Packet {
        Packet::Tcp(Segment {
            flags: Flags::ACK,
            sequence,
            payload_bytes,
            content_offset: u64::from(sequence),
            ..Segment::default()
        })
    }

    fn acknowledgement(number: u32) -> Packet {
        Packet::Tcp(Segment { flags: Flags::ACK, acknowledgement: number, ..Segment::default() })
    }

    fn shown(sending: Option<Direction>, pushed: &[(u64, Direction, Packet)]) -> Vec<(Nanoseconds, Direction, u16)> {
        let mut coalescer = Coalescer::new(CoalescingSettings { within_ns: 1000, most_bytes: MOST_BYTES, sending });
        let mut out = Vec::new();
        let mut show = |at, direction, packet: &Packet| {
            if let Packet::Tcp(segment) = packet {
                out.push((at, direction, segment.payload_bytes));
            }
        };
        for (at, direction, packet) in pushed {
            coalescer.push(*at, *direction, packet, &mut show);
        }
        coalescer.finish(&mut show);
        out
    }

    use Direction::{Down, Up};

    #[test]
    fn a_sender_shows_a_super_packet_when_it_begins_a_receiver_when_it_ends() {
        let pushed = [(0, Down, data(0, 100)), (10, Up, acknowledgement(0)), (20, Down, data(100, 100))];
        assert_eq!(shown(Some(Down), &pushed), [(0, Down, 200), (10, Up, 0)]);
        assert_eq!(shown(Some(Up), &pushed), [(10, Up, 0), (20, Down, 200)]);
    }

    #[test]
    fn gaps_time_and_short_segments_end_a_super_packet() {
        assert_eq!(
            shown(None, &[(0, Down, data(0, 100)), (1, Down, data(200, 100))]),
            [(0, Down, 100), (1, Down, 100)]
        );
        let late = [(0, Down, data(0, 100)), (1001, Down, data(100, 100))];
        assert_eq!(shown(None, &late), [(0, Down, 100), (1001, Down, 100)]);
        let short = [(0, Down, data(0, 100)), (1, Down, data(100, 50)), (2, Down, data(150, 100))];
        assert_eq!(shown(None, &short), [(1, Down, 150), (2, Down, 100)]);
    }

    #[test]
    fn no_super_packet_is_longer_than_an_ip_packet() {
        let pushed: Vec<_> = (0..60).map(|number| (u64::from(number), Down, data(number * 1460, 1460))).collect();
        let out = shown(None, &pushed);
        assert_eq!(out.iter().map(|shown| u64::from(shown.2)).sum::<u64>(), 60 * 1460);
        assert_eq!(out[0].2, 44 * 1460);
    }
}
