//! Packet blocks of the commonest segments, whose numbers have constant places: IPv4 without a link header, no options
//! but timestamps, and no text. What captures usually keep of a payload has a constant place, too.

use pepscope_tcp::{ContentId, Ecn, Flags, Segment, Timestamps};

use super::content::{beginning, fold, put_blocks, ContentKey, BEGINNING_BYTES};
use super::pcapng::{PACKET_HEADER_BYTES, PACKET_TIME_AT, PACKET_TRAILER_BYTES};
use super::template::{IPV4_HEADER_BYTES, TCP_HEADER_BYTES};

const IP_AT: usize = PACKET_HEADER_BYTES;
/// Identification, fragments, time to live, protocol and checksum.
const IP_NUMBERS_AT: usize = IP_AT + 4;
const TCP_AT: usize = IP_AT + IPV4_HEADER_BYTES;
const SEQUENCE_AT: usize = TCP_AT + 4;
/// Length of the header, flags, window, checksum and the urgent pointer.
const TCP_NUMBERS_AT: usize = TCP_AT + 12;
const OPTIONS_AT: usize = TCP_AT + TCP_HEADER_BYTES;
const TIMESTAMPS_AT: usize = OPTIONS_AT + 4;
const PAYLOAD_BEHIND_TIMESTAMPS_AT: usize = OPTIONS_AT + 12;

/// Room for the longest one, and whole registers of 16 bytes.
const BLOCK_BYTES: usize = (PAYLOAD_BEHIND_TIMESTAMPS_AT + BEGINNING_BYTES + PACKET_TRAILER_BYTES).next_multiple_of(16);

/// As [`UsualBlock::timestamps`] where it suits no segment.
const SUITS_NONE: u8 = 2;

/// The packet block of segments of a flow in one direction that differ in nothing but numbers, which are zeros in it.
#[derive(Clone, Debug)]
pub(super) struct UsualBlock {
    /// How many timestamps options they have, or [`SUITS_NONE`].
    timestamps: u8,
    time_to_live: u8,
    ecn: Ecn,
    payload_bytes: u16,
    /// The payload's, without text from an offset on.
    content: ContentId,
    text_end: u64,
    key: ContentKey,
    ip_sum: u16,
    ip_numbers: u64,
    tcp_sum: u64,
    tcp_numbers: u64,
    kept_bytes: usize,
    trailer: [u8; PACKET_TRAILER_BYTES],
    total: usize,
    bytes: [u8; BLOCK_BYTES],
}

/// What a [`UsualBlock`] is made of.
pub(super) struct Parts<'a> {
    /// The block from its beginning on, as much of it as there is before the payload, with numbers that do not matter.
    pub(super) start: &'a [u8],
    /// What comes behind the captured part.
    pub(super) trailer: [u8; PACKET_TRAILER_BYTES],
    /// The captured bytes of the payload.
    pub(super) kept_bytes: usize,
    pub(super) total: usize,
    /// The sums of the headers, numbers being zeros, without checksums but with flags.
    pub(super) ip_sum: u64,
    pub(super) tcp_sum: u64,
    /// Where text ends in the content.
    pub(super) text_end: u64,
}

impl UsualBlock {
    /// One that suits no segment.
    pub(super) const EMPTY: Self = Self {
        timestamps: SUITS_NONE,
        time_to_live: 0,
        ecn: Ecn::NotCapable,
        payload_bytes: 0,
        content: ContentId(0),
        text_end: 0,
        key: ContentKey::of(ContentId(0)),
        ip_sum: 0,
        ip_numbers: 0,
        tcp_sum: 0,
        tcp_numbers: 0,
        kept_bytes: 0,
        trailer: [0; PACKET_TRAILER_BYTES],
        total: 0,
        bytes: [0; BLOCK_BYTES],
    };

    /// The block of segments like `segment`, whose payload is not text, over IPv4 without link header and without options
    /// but timestamps; `None` if theirs has another length before the payload.
    pub(super) fn of(segment: &Segment, parts: &Parts) -> Option<Self> {
        let has_timestamps = segment.timestamps.is_some();
        let payload_at = if has_timestamps { PAYLOAD_BEHIND_TIMESTAMPS_AT } else { OPTIONS_AT };
        if parts.start.len() != payload_at {
            return None;
        }
        let mut bytes = [0; BLOCK_BYTES];
        bytes[..payload_at].copy_from_slice(parts.start);
        let end = payload_at + parts.kept_bytes;
        if let Some(behind) = bytes.get_mut(end..end + PACKET_TRAILER_BYTES) {
            behind.copy_from_slice(&parts.trailer);
        }
        Some(Self {
            timestamps: u8::from(has_timestamps),
            time_to_live: segment.time_to_live,
            ecn: segment.ecn,
            payload_bytes: segment.payload_bytes,
            content: segment.content,
            text_end: parts.text_end,
            key: ContentKey::of(segment.content),
            ip_sum: fold(parts.ip_sum),
            ip_numbers: number(&bytes, IP_NUMBERS_AT) & 0x0000_ffff_ffff_0000,
            tcp_sum: parts.tcp_sum - u64::from(segment.flags.bits()),
            tcp_numbers: number(&bytes, TCP_NUMBERS_AT) & 0xff00_0000_0000_0000,
            kept_bytes: parts.kept_bytes,
            trailer: parts.trailer,
            total: parts.total,
            bytes,
        })
    }

    /// Whether [`Self::write`] writes the block of `segment`.
    #[inline(always)]
    pub(super) fn suits(&self, segment: &Segment) -> bool {
        u8::from(segment.timestamps.is_some()) == self.timestamps
            && segment.payload_bytes == self.payload_bytes
            && segment.time_to_live == self.time_to_live
            && segment.ecn == self.ecn
            && segment.sack.is_empty()
            && !segment.flags.has(Flags::SYN)
            && (segment.payload_bytes == 0
                || segment.content == self.content && segment.content_offset >= self.text_end)
    }

    /// Writes the block of `segment`, which it suits, and bytes behind it that do not belong to it; how long it is.
    #[inline(always)]
    pub(super) fn write(&self, time_ns: u64, segment: &Segment, whole: &mut [u8]) -> usize {
        // So that all places are constant.
        match segment.timestamps {
            None => self.write_with::<OPTIONS_AT>(time_ns, segment, None, whole),
            timestamps => self.write_with::<PAYLOAD_BEHIND_TIMESTAMPS_AT>(time_ns, segment, timestamps, whole),
        }
    }

    #[inline(always)]
    fn write_with<const PAYLOAD_AT: usize>(
        &self,
        time_ns: u64,
        segment: &Segment,
        timestamps: Option<Timestamps>,
        whole: &mut [u8],
    ) -> usize {
        let Some(block) = whole.first_chunk_mut::<BLOCK_BYTES>() else { return 0 };
        // Processors store twice a cycle at most, and this waits for it: what numbers overwrite is not copied.
        self.copy(block, 0);
        self.copy(block, PACKET_TIME_AT + 8);
        self.copy(block, IP_NUMBERS_AT + 8);
        put(block, PACKET_TIME_AT, time_ns.rotate_left(32).to_le_bytes());
        // Not zero, so that the sum of two is not, either.
        let identification = u64::from(segment.ip_identification);
        let ip_sum = u64::from(self.ip_sum) + identification;
        let ip_checksum = !(ip_sum + (ip_sum >> 16)) & 0xffff;
        let ip_numbers = self.ip_numbers | identification << 48 | ip_checksum;
        put(block, IP_NUMBERS_AT, ip_numbers.to_be_bytes());
        let mut sum = self.tcp_sum;
        if let Some(timestamps) = timestamps {
            let (value, echo_reply) = (u64::from(timestamps.value), u64::from(timestamps.echo_reply));
            block[OPTIONS_AT..TIMESTAMPS_AT].copy_from_slice(&self.bytes[OPTIONS_AT..TIMESTAMPS_AT]);
            put(block, TIMESTAMPS_AT, (value << 32 | echo_reply).to_be_bytes());
            sum = sum.wrapping_add(value + echo_reply);
        }
        if segment.payload_bytes > 0 {
            let (offset, bytes) = (segment.content_offset, segment.payload_bytes.into());
            let payload_sum = if self.kept_bytes == BEGINNING_BYTES {
                let (numbers, payload_sum) = beginning(self.key, offset, bytes);
                // Not as one: loading 16 bytes waits for what was just stored as twice 8.
                put(block, PAYLOAD_AT, numbers[0].to_be_bytes());
                put(block, PAYLOAD_AT + 8, numbers[1].to_be_bytes());
                put(block, PAYLOAD_AT + BEGINNING_BYTES, self.trailer);
                payload_sum
            } else {
                self.put_payload(segment, PAYLOAD_AT, whole)
            };
            sum = sum.wrapping_add(payload_sum);
        } else {
            put(block, PAYLOAD_AT, self.trailer);
        }
        let Some(block) = whole.first_chunk_mut() else { return 0 };
        let (sequence, acknowledgement) = (u64::from(segment.sequence), u64::from(segment.acknowledgement));
        put(block, SEQUENCE_AT, (sequence << 32 | acknowledgement).to_be_bytes());
        // Where they stand, which is the same modulo 0xffff as 16 bits each.
        let flags_and_window = u64::from(segment.flags.bits()) << 48 | u64::from(segment.window) << 32;
        let checksum = u64::from(!fold(sum.wrapping_add(flags_and_window + sequence + acknowledgement)));
        put(block, TCP_NUMBERS_AT, (self.tcp_numbers | flags_and_window | checksum << 16).to_be_bytes());
        self.total
    }

    /// Copies 16 bytes.
    #[inline(always)]
    fn copy(&self, block: &mut [u8; BLOCK_BYTES], at: usize) {
        block[at..at + 16].copy_from_slice(&self.bytes[at..at + 16]);
    }

    /// Writes what is kept of a payload, however much, and what is behind it; the payload's sum.
    #[inline(never)]
    fn put_payload(&self, segment: &Segment, payload_at: usize, block: &mut [u8]) -> u64 {
        let (kept, behind) = block[payload_at..].split_at_mut(self.kept_bytes);
        behind[..PACKET_TRAILER_BYTES].copy_from_slice(&self.trailer);
        put_blocks(segment.content, segment.content_offset, segment.payload_bytes.into(), kept)
    }
}

#[inline(always)]
fn put<const BYTES: usize>(out: &mut [u8; BLOCK_BYTES], at: usize, bytes: [u8; BYTES]) {
    out[at..at + BYTES].copy_from_slice(&bytes);
}

/// Eight bytes at `at`.
fn number(block: &[u8; BLOCK_BYTES], at: usize) -> u64 {
    block[at..at + 8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use pepscope_path::Direction;
    use pepscope_tcp::{ContentId, Ecn, Flags, Packet, Segment, Timestamps};
    use proptest::prelude::*;

    use super::super::addresses::AddressBook;
    use super::super::content::Contents;
    use super::super::frame::Framer;
    use super::super::pcapng::LinkType;
    use super::super::prepared::Cut;

    const HEAD_BYTES: usize = 300;
    const TEXT: ContentId = ContentId(1);

    const USUAL_CUT: Cut = Cut { frame_bytes: 96, payload_bytes: 16 };

    fn framer(link_type: LinkType, cut: Cut) -> Framer {
        let mut contents = Contents::default();
        contents.register(TEXT, &[b'h'; HEAD_BYTES]);
        Framer::new(link_type, cut, AddressBook::default(), Rc::new(contents))
    }

    /// The block by [`Framer::write`] of a framer that has written nothing.
    fn written(cut: Cut, packet: &Packet) -> Vec<u8> {
        let mut block = vec![0; 512];
        let bytes = framer(LinkType::Raw, cut).write(7, Direction::Down, packet, &mut block);
        block.truncate(bytes);
        block
    }

    fn usual(framer: &Framer, packet: &Packet) -> Option<Vec<u8>> {
        let mut block = vec![0; 512];
        let bytes = framer.write_usual(7, Direction::Down, packet, &mut block)?;
        block.truncate(bytes);
        Some(block)
    }

    prop_compose! {
        fn segments()(
            numbers in any::<[u32; 2]>(), short in any::<[u16; 2]>(), flags in 0..8u8,
            payload_bytes in prop_oneof![Just(0), Just(1460), Just(1448), 1..40u16],
            content in 0..3u32, content_offset in prop_oneof![0..2_000u64, (0..2_000u64).prop_map(|quarter| 4 * quarter)],
            timestamps in prop::option::of(any::<[u32; 2]>()), sack in prop::option::of(any::<(u32, u32)>()),
            ecn in prop_oneof![Just(Ecn::NotCapable), Just(Ecn::Congestion)], time_to_live in 62..65u8,
        ) -> Segment {
            let kinds = [Flags::PSH, Flags::FIN, Flags::SYN];
            let set = (0..3).filter(|bit| flags >> bit & 1 > 0).map(|bit| kinds[bit]);
            let mut segment = Segment {
                sequence: numbers[0],
                acknowledgement: numbers[1],
                window: short[0],
                ip_identification: short[1],
                flags: set.fold(Flags::ACK, |all, one| all | one),
                payload_bytes,
                content: ContentId(content),
                content_offset,
                timestamps: timestamps.map(|[value, echo_reply]| Timestamps { value, echo_reply }),
                ecn,
                time_to_live,
                ..Segment::default()
            };
            if let Some((left, right)) = sack {
                segment.sack.push(left, right);
            }
            segment
        }
    }

    proptest! {
        #[test]
        fn usual_blocks_are_those_of_any_segment(
            first in segments(), others in prop::collection::vec(segments(), 1..20),
            payload_bytes in prop_oneof![Just(16), 0..40usize], frame_bytes in prop_oneof![Just(96), 0..120usize],
        ) {
            let cut = Cut { frame_bytes, payload_bytes };
            let mut framer = framer(LinkType::Raw, cut);
            for segment in std::iter::once(first).chain(others) {
                let packet = Packet::Tcp(segment);
                let expected = written(cut, &packet);
                if let Some(block) = usual(&framer, &packet) {
                    prop_assert_eq!(&block, &expected);
                }
                let mut block = vec![0; 512];
                let bytes = framer.write(7, Direction::Down, &packet, &mut block);
                prop_assert_eq!(&block[..bytes], &expected);
            }
        }

        #[test]
        fn other_numbers_are_usual(like in segments(), numbers in any::<[u32; 2]>(), ahead in 0..3_000u64) {
            let plain = Segment { flags: Flags::ACK, sack: Default::default(), ..like };
            let begins_with_text = plain.content == TEXT && plain.content_offset < HEAD_BYTES as u64;
            let is_usual = plain.payload_bytes == 0 || !begins_with_text;
            let mut raw = framer(LinkType::Raw, USUAL_CUT);
            raw.write(7, Direction::Down, &Packet::Tcp(plain), &mut [0; 512]);
            let other = Packet::Tcp(Segment {
                sequence: numbers[0],
                acknowledgement: numbers[1],
                flags: Flags::ACK | Flags::PSH | Flags::FIN,
                content_offset: plain.content_offset + ahead,
                timestamps: plain.timestamps.map(|_| Timestamps { value: numbers[1], echo_reply: numbers[0] }),
                ..plain
            });
            prop_assert_eq!(usual(&raw, &other), is_usual.then(|| written(USUAL_CUT, &other)));
        }
    }

    #[test]
    fn behind_a_link_header_and_over_ipv6_nothing_is_usual() {
        let plain = Segment { flags: Flags::ACK, time_to_live: 64, ..Segment::default() };
        for (link_type, version_6) in [(LinkType::Ethernet, false), (LinkType::Raw, true)] {
            let packet = Packet::Tcp(Segment { version_6, ..plain });
            let mut framer = framer(link_type, USUAL_CUT);
            framer.write(7, Direction::Down, &packet, &mut [0; 512]);
            assert_eq!(usual(&framer, &packet), None, "{link_type:?} {version_6}");
        }
    }
}
