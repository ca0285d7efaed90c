//! TLS records of one direction, by their length headers through the stream (RFC 8446 section 5.1, RFC 5246 section
//! 6.2). Captures that cut packets hide headers: what follows is found again where a segment begins like a record.

use super::stream::Stream;

/// Content types.
pub(super) mod content {
    pub const CHANGE_CIPHER_SPEC: u8 = 20;
    pub const ALERT: u8 = 21;
    pub const HANDSHAKE: u8 = 22;
    pub const APPLICATION_DATA: u8 = 23;
    pub const HEARTBEAT: u8 = 24;
}

/// Handshake message types.
pub(super) mod message {
    pub const CLIENT_HELLO: u8 = 1;
    pub const SERVER_HELLO: u8 = 2;
}

const HEADER_BYTES: i64 = 5;
const MESSAGE_HEADER_BYTES: i64 = 4;
/// Most that a record may hold: 2^14 bytes, and what protection adds in TLS 1.2.
const LARGEST_RECORD_BYTES: u16 = (1 << 14) + 2048;
/// A hello has fewer extensions.
const EXTENSIONS_AT_MOST: usize = 64;
const ALPN: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;
const TLS_1_3: [u8; 2] = [3, 4];

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) offset: i64,
    pub(super) end: i64,
    pub(super) content: u8,
    /// First unencrypted handshake message that begins in it; 0 where none is seen.
    pub(super) message: u8,
}

impl Record {
    pub(super) fn body_bytes(&self) -> i64 {
        self.end.saturating_sub(self.offset).saturating_sub(HEADER_BYTES)
    }
}

/// What a ClientHello offers, or a ServerHello chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hello {
    /// Chosen by a ServerHello.
    pub(super) is_tls_1_3: Option<bool>,
    pub(super) has_http_2: Option<bool>,
}

/// Records by ascending offset.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    rows: Vec<Record>,
}

impl Records {
    pub(super) fn of(stream: &Stream<'_>) -> Self {
        let mut records = Records::default();
        // Where the next header should be, unless that is lost.
        let mut next: Option<i64> = None;
        let mut protected = false;
        let mut message_left = 0;
        for &(start, bytes) in stream.pieces() {
            let expected = next.filter(|&offset| offset >= start);
            if expected.is_none() {
                message_left = 0;
            }
            let mut at = expected.unwrap_or(start);
            let end = start.saturating_add(bytes.len() as i64);
            while at < end {
                let Some(mut record) = header(stream, at) else { break };
                if record.content == content::HANDSHAKE {
                    (record.message, message_left) = first_message(stream, &record, message_left, protected);
                }
                protected |= record.content == content::CHANGE_CIPHER_SPEC;
                records.rows.push(record);
                at = record.end;
            }
            next = (at >= end).then_some(at);
        }
        records
    }

    /// The same, where the capture holds no more of a side's first record than its header: it is the side's hello.
    pub(super) fn begun_by(mut self, stream: &Stream<'_>, hello: u8) -> Self {
        if let Some(first) = self.rows.first_mut().filter(|it| it.content == content::HANDSHAKE && it.message == 0) {
            if stream.bytes_at(first.offset.saturating_add(HEADER_BYTES)).is_empty() {
                first.message = hello;
            }
        }
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn rows(&self) -> &[Record] {
        &self.rows
    }

    /// The records that begin in these bytes.
    pub(super) fn between(&self, start: i64, end: i64) -> &[Record] {
        let from = self.rows.partition_point(|record| record.offset < start);
        let to = self.rows.partition_point(|record| record.offset < end);
        self.rows.get(from..to).unwrap_or(&[])
    }

    /// The record that begins here.
    pub(super) fn at(&self, offset: i64) -> Option<&Record> {
        self.rows.get(self.rows.partition_point(|record| record.offset < offset)).filter(|it| it.offset == offset)
    }

    /// Whether this is the midst of a record.
    pub(super) fn is_midst(&self, offset: i64) -> bool {
        let begun = &self.rows[..self.rows.partition_point(|record| record.offset <= offset)];
        begun.last().is_some_and(|record| record.offset < offset && offset < record.end)
    }
}

/// The record whose header is at this offset, if it looks like one.
fn header(stream: &Stream<'_>, offset: i64) -> Option<Record> {
    record_at(offset, stream.read(offset)?)
}

/// The record with this header at this offset, if it looks like one.
pub(super) fn record_at(offset: i64, header: [u8; HEADER_BYTES as usize]) -> Option<Record> {
    let [content, major, minor, high, low] = header;
    let length = u16::from_be_bytes([high, low]);
    let known = (content::CHANGE_CIPHER_SPEC..=content::HEARTBEAT).contains(&content);
    let fits = match content {
        content::CHANGE_CIPHER_SPEC => length == 1,
        _ => (1..=LARGEST_RECORD_BYTES).contains(&length),
    };
    let end = offset.checked_add(HEADER_BYTES)?.checked_add(i64::from(length))?;
    (known && major == 3 && minor <= 4 && fits).then_some(Record { offset, end, content, message: 0 })
}

/// Type of the first message that begins in a handshake record, and how much of its last one is still to come.
///
/// Once a side has changed its cipher, only a second hello that fills its record is taken for plain (RFC 8446, sections
/// 4.1.2 and 4.1.4).
fn first_message(stream: &Stream<'_>, record: &Record, left: i64, protected: bool) -> (u8, i64) {
    let body = record.offset.saturating_add(HEADER_BYTES);
    let mut at = body.saturating_add(left);
    let mut first = 0;
    while at < record.end {
        let Some([kind, high, middle, low]) = stream.read(at) else {
            let cut_off = stream.bytes_at(at).first().filter(|_| first == 0 && !protected);
            return (cut_off.copied().unwrap_or(first), 0);
        };
        let length = i64::from(u32::from_be_bytes([0, high, middle, low])).saturating_add(MESSAGE_HEADER_BYTES);
        let is_hello = matches!(kind, message::CLIENT_HELLO | message::SERVER_HELLO);
        if protected && !(is_hello && at.saturating_add(length) == record.end) {
            return (0, 0);
        }
        if first == 0 {
            first = kind;
        }
        at = at.saturating_add(length);
    }
    (first, at.saturating_sub(record.end))
}

/// Reads the hello in this record as far as it was captured.
pub(super) fn hello(stream: &Stream<'_>, record: &Record) -> Hello {
    let mut found = Hello::default();
    let is_server = record.message == message::SERVER_HELLO;
    let body = record.offset.saturating_add(HEADER_BYTES);
    let _ = read_hello(&Body { stream, end: record.end }, body, is_server, &mut found);
    found
}

/// What a record holds; lengths in it may lie.
struct Body<'a> {
    stream: &'a Stream<'a>,
    end: i64,
}

impl Body<'_> {
    fn read<const N: usize>(&self, offset: i64) -> Option<[u8; N]> {
        let is_inside = offset.checked_add(N as i64)? <= self.end;
        is_inside.then(|| self.stream.read(offset)).flatten()
    }
}

fn read_hello(held: &Body<'_>, body: i64, is_server: bool, found: &mut Hello) -> Option<()> {
    // Message header, version and random come before the session's identifier.
    let mut at = body.checked_add(MESSAGE_HEADER_BYTES + 2 + 32)?;
    let [session_bytes] = held.read(at)?;
    at = at.checked_add(1 + i64::from(session_bytes))?;
    if is_server {
        let [suite, _] = held.read(at)?;
        found.is_tls_1_3 = Some(suite == 0x13); // RFC 8446, appendix B.4
        at = at.checked_add(2 + 1)?;
    } else {
        let suites = u16::from_be_bytes(held.read(at)?);
        at = at.checked_add(2 + i64::from(suites))?;
        let [methods] = held.read(at)?;
        at = at.checked_add(1 + i64::from(methods))?;
    }
    let extensions_end = at.checked_add(2 + i64::from(u16::from_be_bytes(held.read(at)?)))?;
    at = at.checked_add(2)?;
    for _ in 0..EXTENSIONS_AT_MOST {
        if at >= extensions_end {
            // Read to the end, and nothing of the kind there.
            found.has_http_2 = found.has_http_2.or(Some(false));
            return Some(());
        }
        let [kind_high, kind_low, high, low] = held.read(at)?;
        let (kind, length) = (u16::from_be_bytes([kind_high, kind_low]), u16::from_be_bytes([high, low]));
        let content = at.checked_add(4)?;
        at = content.checked_add(i64::from(length))?;
        match kind {
            ALPN => found.has_http_2 = Some(offers_http_2(held, content.checked_add(2)?, at)?),
            SUPPORTED_VERSIONS if is_server => found.is_tls_1_3 = Some(held.read(content)? == TLS_1_3),
            _ => {}
        }
    }
    None
}

/// Whether `h2` stands in the list of protocol names (RFC 7301).
fn offers_http_2(held: &Body<'_>, mut at: i64, end: i64) -> Option<bool> {
    while at < end {
        let [length] = held.read(at)?;
        if length == 2 && held.read(at.checked_add(1)?)? == *b"h2" {
            return Some(true);
        }
        at = at.checked_add(1 + i64::from(length))?;
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::sample::PayloadSample;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_are_found_however_the_stream_is_cut(
            lengths in prop::collection::vec((content::ALERT..=content::HEARTBEAT, 1_u16..400), 1..20),
            segment_bytes in 6_usize..200,
            kept_bytes in 5_usize..200,
        ) {
            let mut stream = Vec::new();
            let mut wanted = Vec::new();
            for (content, length) in lengths {
                let offset = stream.len() as i64;
                stream.extend([content, 3, 3]);
                stream.extend(length.to_be_bytes());
                stream.resize(stream.len() + usize::from(length), 0xdd);
                wanted.push((offset, stream.len() as i64, content));
            }
            let found = |kept_bytes: usize| -> Vec<(i64, i64, u8)> {
                let pieces = stream.chunks(segment_bytes).enumerate().map(|(number, piece)| {
                    ((number * segment_bytes) as i64, &piece[..piece.len().min(kept_bytes)])
                });
                let sample: PayloadSample = pieces.collect();
                let records = Records::of(&Stream::of(sample.pieces()));
                records.rows().iter().map(|record| (record.offset, record.end, record.content)).collect()
            };
            prop_assert_eq!(found(segment_bytes), wanted.clone());
            let of_cut = found(kept_bytes);
            prop_assert!(of_cut.iter().all(|record| wanted.contains(record)));
            // Every record that begins with a segment is met again.
            for record in wanted.iter().filter(|record| record.0 % segment_bytes as i64 == 0) {
                prop_assert!(of_cut.contains(record));
            }
        }
    }
}
