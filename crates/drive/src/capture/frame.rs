//! Simulated packets as bytes: headers from templates made once a flow, checksums over the whole payload.

use std::net::IpAddr;
use std::sync::Arc;

use pepscope_path::{Datagram, Direction, QueueReport};
use pepscope_tcp::{ContentId, Ecn, Packet, Segment, VoiceFrame};

use super::addresses::{AddressBook, FlowKind};
use super::content::{fold, Contents};
use super::pcapng::LinkType;

const ETHERNET_HEADER_BYTES: usize = 14;
const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
const TCP_HEADER_BYTES: usize = 20;
const TCP_PROTOCOL: u8 = 6;
const UDP_PROTOCOL: u8 = 17;
/// Ethernet, IPv6 and TCP with all its options.
const MOST_HEADER_BYTES: usize = ETHERNET_HEADER_BYTES + IPV6_HEADER_BYTES + 60;
const RTP_HEADER_BYTES: usize = 12;
/// Samples of speech in a frame of 20 ms at 8 kHz (RFC 4867).
const SAMPLES_PER_FRAME: u32 = 160;
/// Dynamic payload type, as AMR has none of its own (RFC 3551).
const RTP_PAYLOAD_TYPE: u8 = 96;

/// The headers of one flow in one direction, as far as they never change, and the sums of these parts.
#[derive(Clone, Debug)]
struct Template {
    link: [u8; ETHERNET_HEADER_BYTES],
    /// IP header, ports, and zeros to the end of a TCP header.
    ip_4: [u8; IPV4_HEADER_BYTES + TCP_HEADER_BYTES],
    ip_6: [u8; IPV6_HEADER_BYTES + TCP_HEADER_BYTES],
    /// Of the IPv4 header.
    header_sum: u64,
    /// Of the pseudo-header without the length, and of the ports.
    pseudo_sum: u64,
    version_6: bool,
}

/// Turns the packets seen at one tap into frames.
#[derive(Clone, Debug)]
pub struct Framer {
    link_type: LinkType,
    link_bytes: usize,
    book: AddressBook,
    contents: Arc<Contents>,
    /// By flow and direction, made when first needed; voice and reports by user behind one another.
    tcp: Vec<[Option<Box<Template>>; 2]>,
    voice: Vec<[Option<Box<Template>>; 2]>,
    report: Vec<[Option<Box<Template>>; 2]>,
}

impl Framer {
    #[must_use]
    pub fn new(link_type: LinkType, book: AddressBook, contents: Arc<Contents>) -> Self {
        let link_bytes = if link_type == LinkType::Ethernet { ETHERNET_HEADER_BYTES } else { 0 };
        Self { link_type, link_bytes, book, contents, tcp: Vec::new(), voice: Vec::new(), report: Vec::new() }
    }

    /// Length of the headers of the frame that carries `packet`, and of the whole frame.
    #[inline]
    #[must_use]
    pub fn frame_bytes(&self, packet: &Packet) -> (usize, usize) {
        match packet {
            Packet::Tcp(segment) => {
                let headers = self.link_bytes + segment.header_bytes() as usize;
                (headers, headers + usize::from(segment.payload_bytes))
            }
            other => (self.link_bytes + other.header_bytes() as usize, self.link_bytes + other.length_bytes() as usize),
        }
    }

    /// Writes the frame of `packet`, whose headers take `headers` bytes, as far as `out` goes.
    #[inline]
    pub fn write(&mut self, direction: Direction, packet: &Packet, headers: usize, out: &mut [u8]) {
        match packet {
            Packet::Tcp(segment) => {
                let template = template(&mut self.tcp, segment.flow as usize, direction, || {
                    let kind = FlowKind::Tcp { flow: segment.flow, version_6: segment.version_6 };
                    Template::new(self.link_type, &self.book, kind, segment.user, direction)
                });
                if out.len() >= headers {
                    let (head, payload) = out.split_at_mut(headers);
                    template.write_tcp(self.link_bytes, segment, &self.contents, head);
                    if !payload.is_empty() {
                        self.contents.fill(segment.content, segment.content_offset, payload);
                    }
                } else {
                    let mut head = [0; MOST_HEADER_BYTES];
                    template.write_tcp(self.link_bytes, segment, &self.contents, &mut head[..headers]);
                    out.copy_from_slice(&head[..out.len()]);
                }
            }
            Packet::Voice(frame) => {
                let template = template(&mut self.voice, usize::from(frame.user), direction, || {
                    Template::new(self.link_type, &self.book, FlowKind::Voice, frame.user, direction)
                });
                let payload = voice_payload(frame, &self.contents);
                template.write_udp(self.link_bytes, frame.sequence, &payload, out);
            }
            Packet::Report { user, report } => {
                let template = template(&mut self.report, usize::from(*user), direction, || {
                    Template::new(self.link_type, &self.book, FlowKind::Report, *user, direction)
                });
                template.write_udp(self.link_bytes, report.step as u16, &report_payload(*report), out);
            }
        }
    }
}

#[inline]
fn template(
    templates: &mut Vec<[Option<Box<Template>>; 2]>,
    index: usize,
    direction: Direction,
    make: impl FnOnce() -> Template,
) -> &Template {
    if templates.len() <= index {
        templates.resize(index + 1, [None, None]);
    }
    templates[index][direction.index()].get_or_insert_with(|| Box::new(make()))
}

impl Template {
    fn new(link_type: LinkType, book: &AddressBook, kind: FlowKind, user: u16, direction: Direction) -> Self {
        let ends = book.ends(kind, user);
        let (source, destination) = match direction {
            Direction::Down => (ends.server, ends.mobile),
            Direction::Up => (ends.mobile, ends.server),
        };
        let protocol = if matches!(kind, FlowKind::Tcp { .. }) { TCP_PROTOCOL } else { UDP_PROTOCOL };
        let version_6 = source.address.is_ipv6();
        let mut link = [0; ETHERNET_HEADER_BYTES];
        if link_type == LinkType::Ethernet {
            // Locally administered, one for each side of the tap.
            let (here, there) = if direction == Direction::Down { (2, 1) } else { (1, 2) };
            link[..6].copy_from_slice(&[2, 0, 0, 0, 0, here]);
            link[6..12].copy_from_slice(&[2, 0, 0, 0, 0, there]);
            link[12..14].copy_from_slice(if version_6 { &[0x86, 0xdd] } else { &[0x08, 0x00] });
        }
        let mut ports = [0; 4];
        ports[..2].copy_from_slice(&source.port.to_be_bytes());
        ports[2..].copy_from_slice(&destination.port.to_be_bytes());
        let mut ip_4 = [0; IPV4_HEADER_BYTES + TCP_HEADER_BYTES];
        let mut ip_6 = [0; IPV6_HEADER_BYTES + TCP_HEADER_BYTES];
        let address_sum = match (source.address, destination.address) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                ip_4[0] = 0x45;
                ip_4[6] = 0x40; // do not fragment
                ip_4[9] = protocol;
                ip_4[12..16].copy_from_slice(&source.octets());
                ip_4[16..20].copy_from_slice(&destination.octets());
                ip_4[20..24].copy_from_slice(&ports);
                words_sum(&ip_4[12..20])
            }
            (source, destination) => {
                ip_6[0] = 0x60;
                ip_6[6] = protocol;
                ip_6[8..24].copy_from_slice(&octets_6(source));
                ip_6[24..40].copy_from_slice(&octets_6(destination));
                ip_6[40..44].copy_from_slice(&ports);
                words_sum(&ip_6[8..40])
            }
        };
        let header_sum = words_sum(&ip_4[..IPV4_HEADER_BYTES]);
        let pseudo_sum = address_sum + u64::from(protocol) + words_sum(&ports);
        Self { link, ip_4, ip_6, header_sum, pseudo_sum, version_6 }
    }

    /// Writes link and IP header, ports, and zeros up to the length of a TCP header.
    #[inline]
    fn write_start<'a>(
        &self,
        link_bytes: usize,
        ip_bytes: usize,
        fields: IpFields,
        out: &'a mut [u8],
    ) -> Option<(&'a mut [u8; TCP_HEADER_BYTES], &'a mut [u8])> {
        let out = if link_bytes == 0 {
            out
        } else {
            let (link, out) = out.split_first_chunk_mut::<ETHERNET_HEADER_BYTES>()?;
            *link = self.link;
            out
        };
        if self.version_6 {
            let (start, options) = out.split_first_chunk_mut::<{ IPV6_HEADER_BYTES + TCP_HEADER_BYTES }>()?;
            *start = self.ip_6;
            start[1] = fields.ecn_bits << 4;
            start[4..6].copy_from_slice(&((ip_bytes - IPV6_HEADER_BYTES) as u16).to_be_bytes());
            start[7] = fields.time_to_live;
            let (_, transport) = start.split_first_chunk_mut::<IPV6_HEADER_BYTES>()?;
            return Some((transport.first_chunk_mut()?, options));
        }
        let (start, options) = out.split_first_chunk_mut::<{ IPV4_HEADER_BYTES + TCP_HEADER_BYTES }>()?;
        *start = self.ip_4;
        start[1] = fields.ecn_bits;
        start[2..4].copy_from_slice(&(ip_bytes as u16).to_be_bytes());
        start[4..6].copy_from_slice(&fields.identification.to_be_bytes());
        start[8] = fields.time_to_live;
        let sum = self.header_sum
            + u64::from(fields.ecn_bits)
            + ip_bytes as u64
            + u64::from(fields.identification)
            + (u64::from(fields.time_to_live) << 8);
        start[10..12].copy_from_slice(&(!fold(sum)).to_be_bytes());
        let (_, transport) = start.split_first_chunk_mut::<IPV4_HEADER_BYTES>()?;
        Some((transport.first_chunk_mut()?, options))
    }

    /// Writes all headers of `segment`; `out` is as long as they are.
    #[inline]
    fn write_tcp(&self, link_bytes: usize, segment: &Segment, contents: &Contents, out: &mut [u8]) {
        let fields = IpFields {
            ecn_bits: match segment.ecn {
                Ecn::NotCapable => 0,
                Ecn::Capable => 2,
                Ecn::Congestion => 3,
            },
            identification: segment.ip_identification,
            time_to_live: segment.time_to_live,
        };
        let ip_bytes = out.len() - link_bytes + usize::from(segment.payload_bytes);
        let Some((tcp, options)) = self.write_start(link_bytes, ip_bytes, fields, out) else { return };
        let header_bytes = TCP_HEADER_BYTES + options.len();
        let length_and_flags = (header_bytes as u16 / 4) << 12 | u16::from(segment.flags.bits());
        let options_sum = if options.is_empty() { 0 } else { write_options(segment, options) };
        let payload_sum = match segment.payload_bytes {
            0 => 0,
            bytes => contents.checksum_sum(segment.content, segment.content_offset, u64::from(bytes)),
        };
        let sum = self.pseudo_sum
            + header_bytes as u64
            + u64::from(segment.payload_bytes)
            + u64::from(segment.sequence)
            + u64::from(segment.acknowledgement)
            + u64::from(length_and_flags)
            + u64::from(segment.window)
            + options_sum
            + payload_sum;
        tcp[4..8].copy_from_slice(&segment.sequence.to_be_bytes());
        tcp[8..12].copy_from_slice(&segment.acknowledgement.to_be_bytes());
        tcp[12..14].copy_from_slice(&length_and_flags.to_be_bytes());
        tcp[14..16].copy_from_slice(&segment.window.to_be_bytes());
        tcp[16..18].copy_from_slice(&(!fold(sum)).to_be_bytes());
    }

    /// Writes a UDP datagram as far as `out` goes; these are few, so through a buffer of their own.
    fn write_udp(&self, link_bytes: usize, identification: u16, payload: &[u8], out: &mut [u8]) {
        let ip_header_bytes = if self.version_6 { IPV6_HEADER_BYTES } else { IPV4_HEADER_BYTES };
        let udp_bytes = 8 + payload.len();
        let frame_bytes = link_bytes + ip_header_bytes + udp_bytes;
        let mut frame = vec![0; frame_bytes.max(link_bytes + ip_header_bytes + TCP_HEADER_BYTES)];
        let fields = IpFields { ecn_bits: 0, identification, time_to_live: 64 };
        if self.write_start(link_bytes, ip_header_bytes + udp_bytes, fields, &mut frame).is_none() {
            return;
        }
        let udp = &mut frame[link_bytes + ip_header_bytes..frame_bytes];
        udp[4..6].copy_from_slice(&(udp_bytes as u16).to_be_bytes());
        udp[8..].copy_from_slice(payload);
        let sum = self.pseudo_sum + 2 * udp_bytes as u64 + words_sum(payload);
        // A checksum of zero would mean that there is none (RFC 768).
        let checksum = if fold(sum) == 0xffff { 0xffff } else { !fold(sum) };
        udp[6..8].copy_from_slice(&checksum.to_be_bytes());
        let kept = out.len().min(frame_bytes);
        out[..kept].copy_from_slice(&frame[..kept]);
    }
}

/// The fields of an IP header that change from packet to packet.
#[derive(Clone, Copy)]
struct IpFields {
    ecn_bits: u8,
    identification: u16,
    time_to_live: u8,
}

/// Writes the options in the order that Linux gives them and returns their sum; every one fills whole words.
#[inline]
fn write_options(segment: &Segment, out: &mut [u8]) -> u64 {
    let mut places = out.chunks_exact_mut(4);
    let mut sum = 0;
    let mut put = |word: u32| {
        if let Some(place) = places.next() {
            place.copy_from_slice(&word.to_be_bytes());
            sum += u64::from(word);
        }
    };
    if let Some(size) = segment.maximum_segment_size {
        put(0x0204_0000 | u32::from(size));
    }
    match (segment.timestamps, segment.sack_permitted) {
        (Some(timestamps), permitted) => {
            put(if permitted { 0x0402_080a } else { 0x0101_080a });
            put(timestamps.value);
            put(timestamps.echo_reply);
        }
        (None, true) => put(0x0101_0402),
        (None, false) => {}
    }
    if let Some(shift) = segment.window_scale {
        put(0x0103_0300 | u32::from(shift));
    }
    let blocks = segment.sack.as_slice();
    if !blocks.is_empty() {
        put(0x0101_0500 | (2 + 8 * blocks.len() as u32));
        for &(left, right) in blocks {
            put(left);
            put(right);
        }
    }
    sum
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
    contents.fill(speech, u64::from(frame.sequence) << 16, &mut payload[RTP_HEADER_BYTES..]);
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

fn octets_6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

fn words_sum(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u64::from(low))).sum()
}
