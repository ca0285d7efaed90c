//! What an exchange of a TLS connection is: which handshake flights, application data or control records its question
//! and its answer hold.

use super::kind::Kind;
use super::stream::Stream;
use super::tls::{content, hello, message, Record, Records};
use super::turns::Turn;

/// An answer to a flight may have needed only its first bytes, so a longer one measures too little by up to its span.
/// A flight that left within this time errs by less than the shortest leg that is of interest (5 ms).
const FLIGHT_SPAN_NS: i64 = 3_000_000;

/// What protection adds to a record's content: TLS 1.3, and with AEAD ciphers TLS 1.2 (RFC 8446 section 5.2, RFC 5288,
/// RFC 7905).
const ADDED_BYTES_1_3: &[i64] = &[17];
const ADDED_BYTES_1_2: &[i64] = &[24, 16];
/// Most that the client's ChangeCipherSpec and Finished of TLS 1.2 take before what comes behind its key exchange holds
/// a request as well: those of the shortest ciphers (ChaCha20-Poly1305, RFC 7905: 6 and 37 bytes) and a record of the
/// shortest request line ("GET / HTTP/1.1" and two line ends).
const CHANGE_AND_FINISHED_BYTES: i64 = 6 + 37 + (5 + 16 + 18) - 1;
/// A close_notify or another alert in TLS 1.3.
const ALERT_BYTES: i64 = 2;

/// A TLS connection, or the part of one from where TLS begins.
pub(super) struct Encrypted {
    records: [Records; 2],
    /// Where TLS begins in each direction.
    starts: [i64; 2],
    /// The end of the last ClientHello, where the client's second flight begins.
    hello_end: Option<i64>,
    /// The end of the client's Finished, or of its first encrypted record in TLS 1.3.
    finished_end: Option<i64>,
    is_tls_1_3: Option<bool>,
    may_be_http_2: bool,
}

impl Encrypted {
    /// `None` where no TLS is seen: no hello of either side, nor records of both.
    pub(super) fn of(streams: &[Stream<'_>; 2]) -> Option<Self> {
        let records = [(0, message::CLIENT_HELLO), (1, message::SERVER_HELLO)]
            .map(|(way, hello): (usize, u8)| Records::of(&streams[way]).begun_by(&streams[way], hello));
        let client_hello = records[0].rows().iter().find(|record| record.message == message::CLIENT_HELLO);
        let server_hello = records[1].rows().iter().find(|record| record.message == message::SERVER_HELLO);
        if client_hello.is_none() && server_hello.is_none() && records.iter().any(Records::is_empty) {
            return None;
        }
        let first = |way: usize, from: Option<&Record>| {
            from.or(records[way].rows().first()).map_or(i64::MAX, |record| record.offset)
        };
        let starts = [first(0, client_hello), first(1, server_hello)];
        let last_hello = records[0].rows().iter().rfind(|record| record.message == message::CLIENT_HELLO);
        let hello_end = last_hello.map(|record| record.end);
        let offered = client_hello.map(|record| hello(&streams[0], record)).unwrap_or_default();
        let chosen = server_hello.map(|record| hello(&streams[1], record)).unwrap_or_default();
        let second_flight = hello_end.map_or(&[][..], |end| records[0].between(end, i64::MAX));
        let is_tls_1_3 = chosen.is_tls_1_3.or_else(|| {
            let after_hello = records[1].rows().iter().skip_while(|record| record.message != message::SERVER_HELLO);
            let seen = [protected_first(after_hello), protected_first(second_flight.iter())];
            seen.into_iter().flatten().min() // what was cut off hides messages in the clear, and shows none
        });
        // In TLS 1.3 the server chooses the protocol in an encrypted message.
        let chosen_http_2 = if is_tls_1_3 == Some(false) { chosen.has_http_2 } else { None };
        let finished_end = match is_tls_1_3 {
            Some(false) => finished_end_1_2(second_flight),
            _ => finished_end_1_3(second_flight),
        };
        Some(Encrypted {
            starts,
            hello_end,
            finished_end,
            is_tls_1_3,
            may_be_http_2: chosen_http_2.or(offered.has_http_2).unwrap_or(true),
            records,
        })
    }

    /// Whether the question ends, and the answer begins, where TLS is spoken: some clients ask for TLS and say their hello
    /// without waiting (MySQL).
    pub(super) fn has(&self, turn: &Turn) -> bool {
        let (asked, answering) = ways(turn);
        turn.question_end > self.starts[asked] && turn.answer_offset >= self.starts[answering]
    }

    /// The kind, and whether it is strict.
    pub(super) fn kind(&self, turn: &Turn) -> (Kind, bool) {
        let (asked, answering) = ways(turn);
        let question = self.question(asked, turn);
        let answer = self.records[answering].at(turn.answer_offset);
        let handshake = if asked == 0 {
            self.asked_by_client(turn, question, answer)
        } else {
            self.asked_by_server(turn, question, answer)
        };
        handshake.unwrap_or_else(|| {
            let is_control = |record: Option<&Record>| record.is_some_and(|record| self.is_control(record));
            let control = is_control(question.last()) || is_control(answer);
            (if control { Kind::TlsControl } else { Kind::TlsData }, false)
        })
    }

    /// The records that begin in a question, and the hello that it ends, if that began in the SYN (RFC 7413).
    fn question(&self, asked: usize, turn: &Turn) -> &[Record] {
        let may_end_hello = asked == 0 && turn.first && self.starts[0] < turn.question_offset;
        let ends = |first: &&Record| first.message == message::CLIENT_HELLO && first.end > turn.question_offset;
        let from = self.records[asked].rows().first().filter(|first| may_end_hello && ends(first));
        self.records[asked].between(from.map_or(turn.question_offset, |hello| hello.offset), turn.question_end)
    }

    fn asked_by_client(&self, turn: &Turn, question: &[Record], answer: Option<&Record>) -> Option<(Kind, bool)> {
        if question.iter().any(|record| record.message == message::CLIENT_HELLO) {
            // Early data behind the hello, or part of the hello, may be no part of what is answered.
            let whole =
                question.iter().all(is_opening) && question.last().is_some_and(|it| it.end == turn.question_end);
            let answers = answer.is_none_or(|record| record.message == message::SERVER_HELLO);
            return Some((Kind::TlsHello, whole && answers));
        }
        if self.is_tls_1_3 != Some(false) && self.hello_end == Some(turn.question_offset) {
            // What answers a Finished, first of all, is session tickets.
            return Some((Kind::TlsControl, false));
        }
        let Some(finished_end) = self.finished_end else {
            return self.finished_that_was_cut_off(turn, question, answer);
        };
        if turn.question_offset >= finished_end || turn.question_end < finished_end {
            return None;
        }
        if self.is_tls_1_3 != Some(false) {
            return Some((Kind::TlsControl, false));
        }
        if answer.is_some_and(|record| record.content == content::APPLICATION_DATA) {
            return None; // a session was resumed, so that the server's Finished came first
        }
        // With False Start the request is not what the server's Finished answers.
        let answers = answer.is_none_or(is_opening);
        Some((Kind::TlsFinished, answers && turn.question_end == finished_end))
    }

    /// The client's second flight of TLS 1.2 where the capture holds its key exchange alone: what answers it in the clear
    /// is the server's Finished.
    fn finished_that_was_cut_off(
        &self,
        turn: &Turn,
        question: &[Record],
        answer: Option<&Record>,
    ) -> Option<(Kind, bool)> {
        let key_exchange = question.first()?;
        let is_flight = self.is_tls_1_3 == Some(false) && self.hello_end == Some(turn.question_offset);
        let behind_bytes = turn.question_end.saturating_sub(key_exchange.end);
        let is_whole = (1..=CHANGE_AND_FINISHED_BYTES).contains(&behind_bytes);
        (is_flight && answer.is_some_and(is_opening)).then_some((Kind::TlsFinished, is_whole))
    }

    fn asked_by_server(&self, turn: &Turn, question: &[Record], answer: Option<&Record>) -> Option<(Kind, bool)> {
        let behind_change = |record: &Record| match record.content {
            content::CHANGE_CIPHER_SPEC => self.records[0].at(record.end).copied().unwrap_or(*record),
            _ => *record,
        };
        if answer.is_some_and(|record| behind_change(record).message == message::CLIENT_HELLO) {
            return Some((Kind::TlsHello, question.iter().all(is_opening)));
        }
        if self.hello_end == Some(turn.answer_offset) {
            let continues = answer.is_none_or(|record| record.content != content::ALERT);
            return Some((Kind::TlsFinished, continues && turn.question_span_ns <= FLIGHT_SPAN_NS));
        }
        let Some(finished_end) = self.finished_end else {
            let finished = self.is_tls_1_3 == Some(false) && question.first().is_some_and(is_opening);
            return finished.then_some((Kind::TlsSecondFinished, false));
        };
        if turn.answer_offset != finished_end {
            return None;
        }
        if self.is_tls_1_3 == Some(false) {
            return Some((Kind::TlsSecondFinished, false));
        }
        // The client had sent nothing but its Finished, so the server had nothing to answer but that.
        Some((Kind::TlsControl, false))
    }

    /// Whether a record begins here that waits for nothing.
    pub(super) fn is_control_at(&self, way: usize, offset: i64) -> bool {
        self.records[way].at(offset).is_some_and(|record| self.is_control(record))
    }

    /// Whether a record goes on here that began before.
    pub(super) fn goes_on_at(&self, way: usize, offset: i64) -> bool {
        self.records[way].is_midst(offset)
    }

    fn is_control(&self, record: &Record) -> bool {
        if record.content == content::ALERT {
            return true;
        }
        let added = if self.is_tls_1_3 == Some(false) { ADDED_BYTES_1_2 } else { ADDED_BYTES_1_3 };
        let plain = added.iter().map(|added| record.body_bytes().saturating_sub(*added));
        let alert = self.is_tls_1_3 != Some(false) && record.body_bytes() == ADDED_BYTES_1_3[0] + ALERT_BYTES;
        record.content == content::APPLICATION_DATA
            && (alert || self.may_be_http_2 && plain.into_iter().any(is_control_frames))
    }
}

/// Directions of question and answer.
fn ways(turn: &Turn) -> (usize, usize) {
    if turn.asked == 0 {
        (0, 1)
    } else {
        (1, 0)
    }
}

/// Whether a record may belong to a handshake that is not encrypted yet.
fn is_opening(record: &Record) -> bool {
    matches!(record.content, content::HANDSHAKE | content::CHANGE_CIPHER_SPEC)
}

/// The end of the client's Finished in its second flight of TLS 1.2: the first record behind its ChangeCipherSpec.
fn finished_end_1_2(flight: &[Record]) -> Option<i64> {
    let mut records = flight.iter();
    records.find(|record| record.content == content::CHANGE_CIPHER_SPEC)?;
    records.find(|record| record.content == content::HANDSHAKE).map(|record| record.end)
}

/// The end of the client's first encrypted record in TLS 1.3. Where that was cut off behind ChangeCipherSpec, it ends
/// before the next one that was captured.
fn finished_end_1_3(flight: &[Record]) -> Option<i64> {
    let mut change = None;
    for record in flight {
        match record.content {
            content::CHANGE_CIPHER_SPEC => change = Some(record.end),
            content::APPLICATION_DATA if change.is_some_and(|end| end < record.offset) => return Some(record.offset),
            content::APPLICATION_DATA => return Some(record.end),
            _ => change = None,
        }
    }
    None
}

/// Whether the first record but for hellos and ChangeCipherSpec is encrypted, as it is in TLS 1.3 alone; `None` where
/// there is none.
fn protected_first<'a>(mut records: impl Iterator<Item = &'a Record>) -> Option<bool> {
    let is_hello = |record: &Record| matches!(record.message, message::CLIENT_HELLO | message::SERVER_HELLO);
    let record = records.find(|record| record.content != content::CHANGE_CIPHER_SPEC && !is_hello(record))?;
    match record.content {
        content::HANDSHAKE => Some(false),
        content::APPLICATION_DATA => Some(true),
        _ => None,
    }
}

/// Whether so many bytes are the length of HTTP/2 frames that ask for nothing (RFC 9113, section 6): an empty SETTINGS,
/// WINDOW_UPDATE or RST_STREAM, PING or GOAWAY; pairs of them; SETTINGS of up to eight values, alone, with an
/// acknowledgement or with a WINDOW_UPDATE.
fn is_control_frames(bytes: i64) -> bool {
    const EMPTY: i64 = 9;
    const UPDATE: i64 = 13;
    const PING: i64 = 17;
    const SETTING: i64 = 6;
    let one = [0, EMPTY, UPDATE, PING];
    let pair = one.iter().any(|first| one.iter().any(|second| bytes > 0 && first + second == bytes));
    let settings = [0, EMPTY, UPDATE].iter().any(|other| {
        let values = bytes - EMPTY - other;
        values > 0 && values <= 8 * SETTING && values % SETTING == 0
    });
    pair || settings
}
