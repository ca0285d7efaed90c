//! Packet blocks of segments: most differ from the last one of their flow in a few numbers only.

use pepscope_tcp::{Ecn, Flags, Segment, Timestamps};

use super::content::{fold, put_blocks, Contents};
use super::pcapng::{begin_packet, packet_trailer, PACKET_HEADER_BYTES, PACKET_TIME_AT, PACKET_TRAILER_BYTES};
use super::template::{Template, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, MOST_HEADER_BYTES, TCP_HEADER_BYTES};
use super::usual::{Parts, UsualBlock};

/// What may come before the payload in a packet block.
const START_BYTES: usize = PACKET_HEADER_BYTES + MOST_HEADER_BYTES;

/// IPv4 and TCP with timestamps.
const USUAL_START_BYTES: usize = PACKET_HEADER_BYTES + IPV4_HEADER_BYTES + TCP_HEADER_BYTES + 12;

/// Captured part of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Most bytes of a frame.
    pub frame_bytes: usize,
    /// Most bytes of a payload that does not begin with text.
    pub payload_bytes: usize,
}

/// The packet block of the last segment of a flow in one direction, its numbers being zeros.
#[derive(Clone, Debug)]
pub(super) struct PreparedBlock {
    /// What the block of another segment has to have in common with it to differ in nothing but numbers.
    payload_bytes: u16,
    flags: Flags,
    ecn: Ecn,
    time_to_live: u8,
    is_text: bool,
    has_timestamps: bool,
    /// It has options other than timestamps, and is for one segment only.
    is_single: bool,
    is_version_6: bool,
    link_bytes: usize,
    /// The offset of the payload in the block.
    payload_at: usize,
    /// The bytes of the payload that are captured.
    kept_bytes: usize,
    /// The offset of the padding in the block.
    end: usize,
    /// The padding and the length of the block.
    trailer: [u8; PACKET_TRAILER_BYTES],
    total: usize,
    ip_sum: u64,
    tcp_sum: u64,
    start: [u8; START_BYTES],
    /// Made when it is needed first.
    template: Option<Box<Template>>,
}

impl PreparedBlock {
    /// One that suits no segment.
    pub(super) const EMPTY: Self = Self {
        payload_bytes: 0,
        flags: Flags::SYN,
        ecn: Ecn::NotCapable,
        time_to_live: 0,
        is_text: false,
        has_timestamps: false,
        is_single: true,
        is_version_6: false,
        link_bytes: 0,
        payload_at: 0,
        kept_bytes: 0,
        end: 0,
        trailer: [0; PACKET_TRAILER_BYTES],
        total: 0,
        ip_sum: 0,
        tcp_sum: 0,
        start: [0; START_BYTES],
        template: None,
    };

    /// Whether the block of `segment` differs in nothing but the numbers that [`Self::write`] puts in.
    pub(super) fn suits(&self, segment: &Segment, is_text: bool) -> bool {
        !self.is_single
            && is_text == self.is_text
            && segment.sack.is_empty()
            && segment.payload_bytes == self.payload_bytes
            && segment.flags == self.flags
            && segment.ecn == self.ecn
            && segment.time_to_live == self.time_to_live
            && segment.timestamps.is_some() == self.has_timestamps
    }

    /// Makes it suit `segment`, whose payload may begin with text.
    pub(super) fn prepare(
        &mut self,
        segment: &Segment,
        cut: Cut,
        is_text: bool,
        make_template: impl FnOnce() -> Template,
    ) {
        let template = self.template.get_or_insert_with(|| Box::new(make_template()));
        self.payload_bytes = segment.payload_bytes;
        self.flags = segment.flags;
        self.ecn = segment.ecn;
        self.time_to_live = segment.time_to_live;
        self.is_text = is_text;
        self.has_timestamps = segment.timestamps.is_some();
        // The other options are a SYN's.
        self.is_single = segment.flags.has(Flags::SYN) || !segment.sack.is_empty();
        self.link_bytes = template.link_bytes();
        self.is_version_6 = template.is_version_6();
        let blank = Segment {
            sequence: 0,
            acknowledgement: 0,
            window: 0,
            ip_identification: 0,
            timestamps: match self.is_single {
                true => segment.timestamps,
                false => segment.timestamps.map(|_| Timestamps { value: 0, echo_reply: 0 }),
            },
            ..*segment
        };
        let headers = template.tcp_headers(&blank);
        let original = headers.length + usize::from(segment.payload_bytes);
        let payload_bytes = if is_text { usize::MAX } else { cut.payload_bytes };
        let captured = original.min(headers.length.saturating_add(payload_bytes)).min(cut.frame_bytes);
        self.payload_at = PACKET_HEADER_BYTES + headers.length;
        self.kept_bytes = captured.saturating_sub(headers.length);
        self.end = PACKET_HEADER_BYTES + captured;
        self.start[PACKET_HEADER_BYTES..].copy_from_slice(&headers.bytes);
        self.total = begin_packet(&mut self.start, captured, original);
        self.trailer = packet_trailer(captured, self.total);
        (self.ip_sum, self.tcp_sum) = (headers.ip_sum, headers.tcp_sum);
    }

    /// The block of segments like `segment`, which it suits, where theirs is a usual one; text ends at `text_end` of the
    /// content.
    pub(super) fn usual(&self, segment: &Segment, text_end: u64) -> Option<UsualBlock> {
        // A frame may be cut within its headers.
        let is_whole = self.end == self.payload_at + self.kept_bytes;
        if self.is_text || self.is_single || self.link_bytes > 0 || self.is_version_6 || !is_whole {
            return None;
        }
        let parts = Parts {
            start: &self.start[..self.payload_at.min(START_BYTES)],
            trailer: self.trailer,
            kept_bytes: self.kept_bytes,
            total: self.total,
            ip_sum: self.ip_sum,
            tcp_sum: self.tcp_sum,
            text_end,
        };
        UsualBlock::of(segment, &parts)
    }

    /// Writes the block of `segment`, which it suits and in whose payload `text` comes first; how long it is.
    pub(super) fn write(&self, time_ns: u64, segment: &Segment, text: Option<&Contents>, block: &mut [u8]) -> usize {
        let ip_header_bytes = if self.is_version_6 { IPV6_HEADER_BYTES } else { IPV4_HEADER_BYTES };
        let ip_at = PACKET_HEADER_BYTES + self.link_bytes;
        let tcp_at = ip_at + ip_header_bytes;
        let Some(start) = block.first_chunk_mut::<START_BYTES>() else { return 0 };
        // Few headers are longer, and copying so much takes next to no time.
        start[..USUAL_START_BYTES].copy_from_slice(&self.start[..USUAL_START_BYTES]);
        if self.payload_at > USUAL_START_BYTES {
            start[USUAL_START_BYTES..].copy_from_slice(&self.start[USUAL_START_BYTES..]);
        }
        put(start, PACKET_TIME_AT, time_ns.rotate_left(32).to_le_bytes());
        if !self.is_version_6 {
            put(start, ip_at + 4, segment.ip_identification.to_be_bytes());
            put(start, ip_at + 10, (!fold(self.ip_sum.wrapping_add(segment.ip_identification.into()))).to_be_bytes());
        }
        let numbers = u64::from(segment.sequence) + u64::from(segment.acknowledgement) + u64::from(segment.window);
        let mut sum = self.tcp_sum.wrapping_add(numbers);
        put(start, tcp_at + 4, segment.sequence.to_be_bytes());
        put(start, tcp_at + 8, segment.acknowledgement.to_be_bytes());
        put(start, tcp_at + 14, segment.window.to_be_bytes());
        if let (Some(timestamps), false) = (segment.timestamps, self.is_single) {
            sum = sum.wrapping_add(timestamps.value.into()).wrapping_add(timestamps.echo_reply.into());
            put(start, tcp_at + TCP_HEADER_BYTES + 4, timestamps.value.to_be_bytes());
            put(start, tcp_at + TCP_HEADER_BYTES + 8, timestamps.echo_reply.to_be_bytes());
        }
        if segment.payload_bytes > 0 {
            let kept = &mut block[self.payload_at..self.payload_at + self.kept_bytes];
            let (content, offset, bytes) = (segment.content, segment.content_offset, segment.payload_bytes.into());
            sum = sum.wrapping_add(match text {
                Some(contents) => contents.put(content, offset, bytes, kept),
                None => put_blocks(content, offset, bytes, kept),
            });
        }
        if let Some(start) = block.first_chunk_mut::<START_BYTES>() {
            put(start, tcp_at + 16, (!fold(sum)).to_be_bytes());
        }
        block[self.end..self.end + PACKET_TRAILER_BYTES].copy_from_slice(&self.trailer);
        self.total
    }
}

#[inline(always)]
fn put<const BYTES: usize>(out: &mut [u8; START_BYTES], at: usize, bytes: [u8; BYTES]) {
    out[at..at + BYTES].copy_from_slice(&bytes);
}
