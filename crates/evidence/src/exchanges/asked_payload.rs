//! Which payload tells what exchanges are, decided while packets come: few of a stream's pieces do, and keeping the
//! others is what costs most where a capture is read.
//!
//! [`application::classify`](super::application) reads streams where a question or an answer begins, and where the header
//! of a TLS record or handshake messages stand. In a stream that comes without gaps, copies with new bytes or bytes
//! before its beginning, both are known when a piece comes: a side begins to speak where the other has spoken since, or
//! asked what was not acknowledged yet; and [`Records`](super::tls) passes over a piece without changing anything where
//! the next header lies behind it, or where it begins without one while none is expected. From the first packet of any
//! other kind on all pieces of the stream are kept.

use super::tls::{content, record_at};
use super::turns::is_speech;

/// Stands for an offset that is not there.
const NOWHERE: i64 = i64::MIN;
/// What is read of a handshake message where it begins may lie behind its record.
const BEHIND_HANDSHAKE_BYTES: i64 = 4;

/// A packet with payload. Offsets are those of any one origin a stream.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    pub start: i64,
    pub end: i64,
    /// How far the other stream is acknowledged.
    pub acknowledged: i64,
    /// The captured part, as far as a piece holds it; `None` where the sample of the stream has no pieces.
    pub bytes: Option<&'a [u8]>,
    /// It holds bytes that the stream did not have.
    pub is_new: bool,
    /// As in [`Packets`](crate::packets::Packets).
    pub flags: u16,
    pub marks: u16,
    /// The stream is known to begin here.
    pub begins: bool,
}

/// The course of one stream.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// Behind the last byte, as long as none is missing.
    reached: i64,
    /// Where the next header of a record should be.
    next_record: i64,
    /// Handshake messages that are read reach as far as here.
    handshake_end: i64,
    /// Neither a question nor an answer can begin before the other side speaks.
    speaks_on: bool,
    keeps_all: bool,
}

impl Default for Course {
    fn default() -> Self {
        let [reached, next_record, handshake_end] = [NOWHERE; 3];
        Course { reached, next_record, handshake_end, speaks_on: false, keeps_all: false }
    }
}

/// The courses of all streams, two of each connection.
#[derive(Clone, Debug, Default)]
pub struct AskedPayload {
    courses: Vec<[Course; 2]>,
}

impl AskedPayload {
    /// Whether exchanges may ask for the payload of the next packet, which a side (0 or 1) of a connection sent.
    pub fn asks_for(&mut self, connection: usize, side: usize, data: &Data<'_>) -> bool {
        if connection >= self.courses.len() {
            self.courses.resize(connection + 1, Default::default());
        }
        let Some([first, second]) = self.courses.get_mut(connection) else { return true };
        let (own, other) = if side == 0 { (first, second) } else { (second, first) };
        other.speaks_on = false;
        if !data.is_new {
            own.keeps_all |= data.end > own.reached;
            return false;
        }
        own.keeps_all |= if own.reached == NOWHERE { !data.begins } else { data.start != own.reached };
        own.reached = own.reached.max(data.end);
        let tells_records = data.bytes.is_some_and(|bytes| own.read_records(data.start, bytes));
        let begins_to_speak = !own.speaks_on;
        let is_speech = is_speech(data.flags, data.marks);
        let leaves_no_question = !other.keeps_all && data.acknowledged >= other.reached;
        own.speaks_on = is_speech && (own.speaks_on || leaves_no_question);
        own.keeps_all || !is_speech || begins_to_speak || tells_records
    }
}

impl Course {
    /// Goes on to the header behind these bytes. Gives whether records, or handshake messages, are read in them.
    fn read_records(&mut self, start: i64, bytes: &[u8]) -> bool {
        let mut are_read = start < self.handshake_end;
        let mut at = self.next_record.max(start);
        if self.next_record < start {
            self.next_record = NOWHERE;
        }
        while let Some(rest) = behind(bytes, at.saturating_sub(start)) {
            let Some(head) = rest.first_chunk() else {
                // What stands in the next piece belongs to the header, or nothing where this one was cut.
                self.keeps_all = true;
                return true;
            };
            let Some(record) = record_at(at, *head) else {
                self.next_record = NOWHERE;
                return are_read;
            };
            are_read = true;
            if record.content == content::HANDSHAKE {
                self.handshake_end = record.end.saturating_add(BEHIND_HANDSHAKE_BYTES).max(self.handshake_end);
            }
            at = record.end;
            self.next_record = at;
        }
        are_read
    }
}

/// What comes behind so many bytes, if anything does.
fn behind(bytes: &[u8], skipped: i64) -> Option<&[u8]> {
    let from = usize::try_from(skipped).ok()?;
    bytes.get(from..).filter(|rest| !rest.is_empty())
}
