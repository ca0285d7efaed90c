//! Simulated packets as packet blocks of a capture.

use std::rc::Rc;

use pepscope_path::{Datagram, Direction, QueueReport};
use pepscope_tcp::{ContentId, DatagramPacket, DatagramTransport, Packet, Segment, VoiceFrame};

use super::addresses::{AddressBook, FlowKind};
use super::content::Contents;
use super::pcapng::{
    begin_packet, packet_trailer, LinkType, PACKET_HEADER_BYTES, PACKET_TIME_AT, PACKET_TRAILER_BYTES,
};
use super::prepared::{Cut, PreparedBlock};
use super::template::{Template, MOST_HEADER_BYTES};
use super::usual::UsualBlock;

const RTP_HEADER_BYTES: usize = 12;
/// Samples of speech in a frame of 20 ms at 8 kHz (RFC 4867).
const SAMPLES_PER_FRAME: u32 = 160;
/// Dynamic payload type, as AMR has none of its own (RFC 3551).
const RTP_PAYLOAD_TYPE: u8 = 96;

/// Of packets that do not tell theirs.
const TIME_TO_LIVE: u8 = 64;

/// Turns the packets seen at one tap into packet blocks.
#[derive(Clone, Debug)]
pub struct Framer {
    link_type: LinkType,
    cut: Cut,
    book: AddressBook,
    contents: Rc<Contents>,
    /// The prepared blocks by flow and direction, and those of usual segments.
    tcp: Vec<PreparedBlock>,
    usual: Vec<UsualBlock>,
    /// The templates by user and direction, made when first needed.
    voice: Vec<[Option<Box<Template>>; 2]>,
    report: Vec<[Option<Box<Template>>; 2]>,
    /// By flow and direction.
    datagrams: Vec<[Option<Box<Template>>; 2]>,
}

impl Framer {
    #[must_use]
    pub fn new(link_type: LinkType, cut: Cut, book: AddressBook, contents: Rc<Contents>) -> Self {
        let (tcp, usual, voice, report, datagrams) = Default::default();
        Self { link_type, cut, book, contents, tcp, usual, voice, report, datagrams }
    }

    /// Room that [`Framer::write`] needs: a packet block, and the headers whole even where they are cut.
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        PACKET_HEADER_BYTES + MOST_HEADER_BYTES + self.cut.frame_bytes + PACKET_TRAILER_BYTES
    }

    /// Writes the packet block of `packet` at the beginning of `block` if it is a usual one; how long it is.
    #[inline(always)]
    pub fn write_usual(&self, time_ns: u64, direction: Direction, packet: &Packet, block: &mut [u8]) -> Option<usize> {
        let Packet::Tcp(segment) = packet else { return None };
        let usual = self.usual.get(place(segment, direction)).filter(|usual| usual.suits(segment))?;
        Some(usual.write(time_ns, segment, block))
    }

    /// Writes the packet block of any `packet` at the beginning of `block`; how long it is.
    #[inline(never)]
    pub fn write(&mut self, time_ns: u64, direction: Direction, packet: &Packet, block: &mut [u8]) -> usize {
        match packet {
            Packet::Tcp(segment) => self.write_tcp(time_ns, direction, segment, block),
            other => self.write_udp(time_ns, direction, other, block),
        }
    }

    fn write_tcp(&mut self, time_ns: u64, direction: Direction, segment: &Segment, block: &mut [u8]) -> usize {
        let index = place(segment, direction);
        let text_end = self.contents.text_end(segment.content);
        let begins_with_text = segment.payload_bytes > 0 && segment.content_offset < text_end;
        let text = begins_with_text.then_some(&*self.contents);
        if self.tcp.len() <= index {
            self.tcp.resize(index + 1, PreparedBlock::EMPTY);
            self.usual.resize(index + 1, UsualBlock::EMPTY);
        }
        let prepared = &mut self.tcp[index];
        if !prepared.suits(segment, text.is_some()) {
            prepared.prepare(segment, self.cut, text.is_some(), || {
                let kind = FlowKind::Tcp { flow: segment.flow, version_6: segment.version_6 };
                Template::new(self.link_type, &self.book, kind, segment.user, direction)
            });
        }
        if let Some(usual) = prepared.usual(segment, text_end) {
            self.usual[index] = usual;
        }
        prepared.write(time_ns, segment, text, block)
    }

    #[inline(never)]
    fn write_udp(&mut self, time_ns: u64, direction: Direction, packet: &Packet, block: &mut [u8]) -> usize {
        let user = packet.user();
        let place = usize::from(user);
        let (templates, place, kind, identification, payload) = match packet {
            Packet::Tcp(_) => return 0,
            Packet::Datagram(datagram) => {
                let (flow, has_ports) = (datagram.flow, datagram.transport == DatagramTransport::Udp);
                let payload = datagram_payload(datagram, &self.contents);
                let kind = FlowKind::Datagrams { flow, has_ports };
                (&mut self.datagrams, flow as usize, kind, datagram.ip_identification, payload)
            }
            Packet::Voice(frame) => {
                (&mut self.voice, place, FlowKind::Voice, frame.sequence, voice_payload(frame, &self.contents))
            }
            Packet::Report { report, .. } => {
                (&mut self.report, place, FlowKind::Report, report.step as u16, report_payload(*report).to_vec())
            }
        };
        if templates.len() <= place {
            templates.resize(place + 1, [None, None]);
        }
        let template = templates[place][direction.index()]
            .get_or_insert_with(|| Box::new(Template::new(self.link_type, &self.book, kind, user, direction)));
        let frame = match packet {
            Packet::Datagram(datagram) if datagram.transport == DatagramTransport::Icmp => {
                template.icmp_frame(identification, datagram.time_to_live, &payload)
            }
            Packet::Datagram(datagram) => template.udp_frame(identification, datagram.time_to_live, &payload),
            _ => template.udp_frame(identification, TIME_TO_LIVE, &payload),
        };
        let captured = frame.len().min(self.cut.frame_bytes);
        let end = PACKET_HEADER_BYTES + captured;
        let total = begin_packet(block, captured, frame.len());
        block[PACKET_TIME_AT..PACKET_TIME_AT + 8].copy_from_slice(&time_ns.rotate_left(32).to_le_bytes());
        block[PACKET_HEADER_BYTES..end].copy_from_slice(&frame[..captured]);
        block[end..end + PACKET_TRAILER_BYTES].copy_from_slice(&packet_trailer(captured, total));
        total
    }
}

/// Where the prepared block of a segment is.
#[inline(always)]
fn place(segment: &Segment, direction: Direction) -> usize {
    2 * segment.flow as usize + direction.index()
}

fn datagram_payload(datagram: &DatagramPacket, contents: &Contents) -> Vec<u8> {
    let mut payload = vec![0; usize::from(datagram.payload_bytes)];
    contents.put(datagram.content, datagram.content_offset, datagram.payload_bytes.into(), &mut payload);
    payload
}

/// RTP header (RFC 3550, section 5.1) and speech.
fn voice_payload(frame: &VoiceFrame, contents: &Contents) -> Vec<u8> {
    let mut payload = vec![0; RTP_HEADER_BYTES + usize::from(frame.payload_bytes)];
    payload[0] = 0x80;
    payload[1] = RTP_PAYLOAD_TYPE;
    payload[2..4].copy_from_slice(&frame.sequence.to_be_bytes());
    payload[4..8].copy_from_slice(&(u32::from(frame.sequence) * SAMPLES_PER_FRAME).to_be_bytes());
    payload[8..12].copy_from_slice(&(u32::from(frame.user) + 1).to_be_bytes());
    let speech = ContentId(u32::MAX - u32::from(frame.user));
    let spoken = &mut payload[RTP_HEADER_BYTES..];
    contents.put(speech, u64::from(frame.sequence) << 16, frame.payload_bytes.into(), spoken);
    payload
}

fn report_payload(report: QueueReport) -> [u8; 20] {
    let QueueReport { step, queued_frames, served_frames, dropped_frames, offered_frames } = report;
    let mut payload = [0; 20];
    for (place, value) in
        payload.chunks_exact_mut(4).zip([step, queued_frames, served_frames, dropped_frames, offered_frames])
    {
        place.copy_from_slice(&value.to_be_bytes());
    }
    payload
}
