//! The bytes and messages that protocols write while a simulation runs.
//!
//! A payload is the name of its content and an offset, never its bytes. What a [`crate::Protocol`] writes is a content of
//! its own, a stream that grows: literal bytes where dissectors read them, and lengths of filler where they see none
//! (encrypted records, bodies). Captures take the bytes from here. What a stretch of bytes says to the application at the
//! other end, which no simulated byte spells (it may be encrypted), stands here as a [`Message`] at its last byte.

use core::cell::RefCell;
use std::rc::Rc;

use pepscope_path::Nanoseconds;

use crate::packets::segment::ContentId;

/// Contents from here to twice as many are streams.
const FIRST_STREAM: u32 = 1 << 30;

/// Bytes as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Literal(Vec<u8>),
    /// So many bytes that say nothing: captures show the content's pseudo-random ones.
    Filler(u64),
}

impl Piece {
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Literal(bytes) => bytes.len() as u64,
            Self::Filler(bytes) => *bytes,
        }
    }
}

/// What the peer's protocol gets once it has read the bytes that say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// What it is called in ground truth.
    pub name: String,
    /// What the two ends of the protocol agreed on that it means.
    pub number: u64,
    /// How long the answer to it is to be, where it asks for one.
    pub answer_bytes: u64,
}

/// One write of a protocol: in TCP the bytes of one call, in UDP and ICMP one datagram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Write {
    pub pieces: Vec<Piece>,
    pub message: Option<Message>,
}

impl Write {
    #[must_use]
    pub fn new(pieces: Vec<Piece>, message: Message) -> Self {
        Self { pieces, message: Some(message) }
    }

    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(Piece::bytes).sum()
    }
}

/// A message as ground truth has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    pub message: Message,
    /// Bytes of its stream that were written for it.
    pub bytes: u64,
    pub written_ns: Nanoseconds,
    /// When the peer's protocol had read it whole.
    pub read_ns: Option<Nanoseconds>,
}

#[derive(Debug, Default)]
struct Stream {
    /// Where each piece starts, and what it is.
    pieces: Vec<(u64, Piece)>,
    end: u64,
    /// Where each message ends.
    messages: Vec<(u64, MessageRecord)>,
    /// Messages that were read.
    read: usize,
    last_message_end: u64,
}

/// All streams of a run; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    streams: Rc<RefCell<Vec<Stream>>>,
}

impl Streams {
    /// Whether bytes of `content` are found here.
    #[inline(always)]
    #[must_use]
    pub fn has(content: ContentId) -> bool {
        content.0 >> FIRST_STREAM.trailing_zeros() == 1
    }

    /// A new stream.
    #[must_use]
    pub fn open(&self) -> ContentId {
        let mut streams = self.streams.borrow_mut();
        streams.push(Stream::default());
        ContentId(FIRST_STREAM + streams.len() as u32 - 1)
    }

    fn place(content: ContentId) -> usize {
        (content.0 - FIRST_STREAM) as usize
    }

    /// Appends a write to a stream; where its bytes begin and how many they are.
    pub fn append(&self, now: Nanoseconds, content: ContentId, write: Write) -> (u64, u64) {
        let mut streams = self.streams.borrow_mut();
        let Some(stream) = streams.get_mut(Self::place(content)) else { return (0, 0) };
        let start = stream.end;
        for piece in write.pieces {
            let bytes = piece.bytes();
            if bytes > 0 {
                stream.pieces.push((stream.end, piece));
                stream.end += bytes;
            }
        }
        if let Some(message) = write.message {
            let bytes = stream.end - stream.last_message_end;
            stream.last_message_end = stream.end;
            let record = MessageRecord { message, bytes, written_ns: now, read_ns: None };
            stream.messages.push((stream.end, record));
        }
        (start, stream.end - start)
    }

    /// Messages of a stream that was read up to `end` and that its protocol has not got yet.
    pub fn read_up_to(&self, now: Nanoseconds, content: ContentId, end: u64, tell: &mut Vec<Message>) {
        let mut streams = self.streams.borrow_mut();
        let Some(stream) = streams.get_mut(Self::place(content)) else { return };
        while let Some((_, record)) = stream.messages.get_mut(stream.read).filter(|(at, _)| *at <= end) {
            record.read_ns = Some(now);
            tell.push(record.message.clone());
            stream.read += 1;
        }
    }

    /// The message that ends with the datagram of a stream up to `end`, however often it arrives.
    #[must_use]
    pub fn message_at(&self, now: Nanoseconds, content: ContentId, end: u64) -> Option<Message> {
        let mut streams = self.streams.borrow_mut();
        let stream = streams.get_mut(Self::place(content))?;
        let place = stream.messages.binary_search_by_key(&end, |(at, _)| *at).ok()?;
        let record = &mut stream.messages[place].1;
        record.read_ns.get_or_insert(now);
        Some(record.message.clone())
    }

    /// Calls `see` with what stands at `offset` of `content`, piece by piece, until `bytes` bytes were seen: literal bytes,
    /// or the offset and number of bytes of filler.
    pub fn visit(&self, content: ContentId, offset: u64, bytes: u64, mut see: impl FnMut(Result<&[u8], (u64, u64)>)) {
        let streams = self.streams.borrow();
        let Some(stream) = streams.get(Self::place(content)) else { return };
        let (mut at, end) = (offset, offset + bytes);
        let first = stream.pieces.partition_point(|(start, _)| *start <= offset).saturating_sub(1);
        for (start, piece) in &stream.pieces[first..] {
            let piece_end = (start + piece.bytes()).min(end);
            if at >= piece_end {
                break;
            }
            match piece {
                Piece::Literal(literal) => see(Ok(&literal[(at - start) as usize..(piece_end - start) as usize])),
                Piece::Filler(_) => see(Err((at, piece_end - at))),
            }
            at = piece_end;
        }
    }

    /// All messages of a stream.
    #[must_use]
    pub fn messages(&self, content: ContentId) -> Vec<MessageRecord> {
        let streams = self.streams.borrow();
        let stream = streams.get(Self::place(content));
        stream.map_or_else(Vec::new, |stream| stream.messages.iter().map(|(_, record)| record.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{Message, Piece, Streams, Write};

    fn message(number: u64) -> Message {
        Message { number, ..Message::default() }
    }

    #[test]
    fn bytes_are_found_however_the_stream_is_cut() {
        let streams = Streams::default();
        let _other = streams.open();
        let stream = streams.open();
        assert!(Streams::has(stream));
        let pieces = vec![Piece::Literal(b"head".to_vec()), Piece::Filler(6), Piece::Literal(b"end".to_vec())];
        assert_eq!(streams.append(0, stream, Write { pieces: pieces.clone(), message: None }), (0, 13));
        assert_eq!(streams.append(0, stream, Write { pieces, message: None }), (13, 13));
        for start in 0..26 {
            for end in start..=26 {
                let mut seen = String::new();
                streams.visit(stream, start, end - start, |piece| match piece {
                    Ok(bytes) => seen.push_str(core::str::from_utf8(bytes).unwrap_or("?")),
                    Err((_, bytes)) => seen.push_str(&"-".repeat(bytes as usize)),
                });
                assert_eq!(seen, "head------endhead------end"[start as usize..end as usize]);
            }
        }
    }

    #[test]
    fn a_message_is_told_once_it_was_read_whole() {
        let streams = Streams::default();
        let stream = streams.open();
        streams.append(3, stream, Write { pieces: vec![Piece::Filler(10)], message: None });
        streams.append(5, stream, Write::new(vec![Piece::Filler(10)], message(1)));
        streams.append(5, stream, Write::new(vec![Piece::Filler(1)], message(2)));
        let mut told = Vec::new();
        streams.read_up_to(7, stream, 19, &mut told);
        assert_eq!(told, []);
        streams.read_up_to(8, stream, 21, &mut told);
        assert_eq!(told, [message(1), message(2)]);
        streams.read_up_to(9, stream, 21, &mut told);
        assert_eq!(told.len(), 2);
        let records = streams.messages(stream);
        assert_eq!((records[0].bytes, records[0].written_ns, records[0].read_ns), (20, 5, Some(8)));
    }

    #[test]
    fn a_datagram_says_its_message_whenever_it_arrives() {
        let streams = Streams::default();
        let stream = streams.open();
        for number in 0..3 {
            streams.append(0, stream, Write::new(vec![Piece::Filler(8)], message(number)));
        }
        assert_eq!(streams.message_at(4, stream, 24), Some(message(2)));
        assert_eq!(streams.message_at(5, stream, 8), Some(message(0)));
        assert_eq!(streams.message_at(6, stream, 24), Some(message(2)));
        assert_eq!(streams.message_at(6, stream, 9), None);
        assert_eq!(streams.messages(stream)[2].read_ns, Some(4));
    }
}
