//! Everything that a simulated path carries.

use pepscope_path::{Datagram, QueueReport};

use crate::packets::segment::{ContentId, Ecn, Segment, IPV4_HEADER_BYTES};

const UDP_HEADER_BYTES: u32 = 8;
const REPORT_PAYLOAD_BYTES: u32 = 20; // five 32-bit numbers

/// One frame of speech over UDP and RTP (IPv4: 20 + 8 + 12 bytes of headers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoiceFrame {
    pub user: u16,
    pub sequence: u16,
    pub payload_bytes: u16,
}

/// What carries the datagrams of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DatagramTransport {
    Udp,
    /// Echo messages (RFC 792): the payload begins with the ICMP header.
    Icmp,
}

/// A datagram over IPv4 that no proxy ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramPacket {
    pub flow: u32,
    pub user: u16,
    pub transport: DatagramTransport,
    pub payload_bytes: u16,
    pub content: ContentId,
    pub content_offset: u64,
    pub ip_identification: u16,
    pub time_to_live: u8,
}

/// A packet on a simulated path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    Tcp(Segment),
    Voice(VoiceFrame),
    Datagram(DatagramPacket),
    /// A Node-B's report to the proxy, in a UDP datagram.
    Report {
        user: u16,
        report: QueueReport,
    },
}

impl Datagram for Packet {
    #[inline(always)]
    fn length_bytes(&self) -> u32 {
        match self {
            Self::Tcp(segment) => segment.length_bytes(),
            Self::Voice(frame) => self.header_bytes() + u32::from(frame.payload_bytes),
            Self::Datagram(datagram) => self.header_bytes() + u32::from(datagram.payload_bytes),
            Self::Report { .. } => self.header_bytes() + REPORT_PAYLOAD_BYTES,
        }
    }

    fn header_bytes(&self) -> u32 {
        match self {
            Self::Tcp(segment) => segment.header_bytes(),
            Self::Voice(_) => IPV4_HEADER_BYTES + UDP_HEADER_BYTES + 12,
            Self::Datagram(datagram) => match datagram.transport {
                DatagramTransport::Udp => IPV4_HEADER_BYTES + UDP_HEADER_BYTES,
                DatagramTransport::Icmp => IPV4_HEADER_BYTES,
            },
            Self::Report { .. } => IPV4_HEADER_BYTES + UDP_HEADER_BYTES,
        }
    }

    fn user(&self) -> u16 {
        match self {
            Self::Tcp(segment) => segment.user,
            Self::Voice(frame) => frame.user,
            Self::Datagram(datagram) => datagram.user,
            Self::Report { user, .. } => *user,
        }
    }

    fn understands_marks(&self) -> bool {
        matches!(self, Self::Tcp(segment) if segment.ecn != Ecn::NotCapable)
    }

    fn mark_congestion(&mut self) {
        if let Self::Tcp(segment) = self {
            if segment.ecn != Ecn::NotCapable {
                segment.ecn = Ecn::Congestion;
            }
        }
    }

    fn from_report(user: u16, report: QueueReport) -> Option<Self> {
        Some(Self::Report { user, report })
    }

    fn duplicate(&self) -> Self {
        *self
    }

    /// Flows of TCP and of protocols have their number, other datagrams one for each mobile above all of these.
    fn flow(&self) -> u64 {
        match self {
            Self::Tcp(segment) => u64::from(segment.flow),
            Self::Datagram(datagram) => u64::from(datagram.flow),
            Self::Voice(VoiceFrame { user, .. }) | Self::Report { user, .. } => (1 << 32) + u64::from(*user),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Packet, VoiceFrame};
    use crate::packets::segment::{Ecn, Segment};
    use pepscope_path::Datagram;

    #[test]
    fn only_capable_segments_are_marked() {
        let mut packet = Packet::Tcp(Segment::default());
        packet.mark_congestion();
        assert_eq!(packet, Packet::Tcp(Segment::default()));
        let mut packet = Packet::Tcp(Segment { ecn: Ecn::Capable, ..Segment::default() });
        packet.mark_congestion();
        assert_eq!(packet, Packet::Tcp(Segment { ecn: Ecn::Congestion, ..Segment::default() }));
    }

    #[test]
    fn a_voice_frame_carries_forty_bytes_of_headers() {
        let frame = Packet::Voice(VoiceFrame { user: 1, sequence: 0, payload_bytes: 21 });
        assert_eq!(frame.length_bytes(), 61);
        assert_eq!(frame.header_bytes(), 40);
    }
}
