//! Exchanges are told by the payload that was chosen for them as by all of it.

use pepscope_evidence::exchanges::{AskedPayload, Data, ExchangeReader};
use pepscope_evidence::packets::{flag, mark, Packets};
use pepscope_evidence::payload::sample::PayloadSample;
use proptest::prelude::*;

/// Of each packet so many bytes are captured.
const CAPTURED_BYTES: usize = 48;

/// What a side does next.
#[derive(Clone, Debug)]
enum Step {
    /// It sends what comes next of its stream, so many bytes; the acknowledgement may be an old one.
    Say { bytes: usize, is_up_to_date: bool },
    /// The same in a packet that ends the stream, or is no speech: a SYN, a probe of a closed window.
    Utter { bytes: usize, flags: u16, marks: u16 },
    /// So many bytes that the capture misses.
    Miss { bytes: usize },
    /// Bytes from so far back on are sent again.
    Again { back: usize, bytes: usize },
}

/// One stream: how far it was sent and captured, and what was kept of it.
#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    sent: usize,
    holes: Vec<(usize, usize)>,
    every: Vec<(i64, Vec<u8>)>,
    chosen: Vec<(i64, Vec<u8>)>,
}

impl Stream {
    /// Whether the capture sees any of these bytes for the first time.
    fn brings(&mut self, start: usize, end: usize) -> bool {
        let filled = self.holes.iter().position(|&(low, high)| start < high && low < end);
        filled.map(|place| self.holes.remove(place)).is_some() || end > self.sent
    }
}

#[derive(Default)]
struct Talk {
    streams: [Stream; 2],
    asked: AskedPayload,
    acknowledged: [usize; 2],
    direction: Vec<u8>,
    sequence_offset: Vec<i64>,
    acknowledgement_offset: Vec<i64>,
    payload_bytes: Vec<u32>,
    flags: Vec<u16>,
    marks: Vec<u16>,
}

impl Talk {
    fn step(&mut self, side: usize, step: &Step) {
        let sent = self.streams[side].sent;
        match *step {
            Step::Say { bytes, is_up_to_date } => {
                if is_up_to_date {
                    self.acknowledged[side] = self.streams[1 - side].sent;
                }
                self.send(side, sent, bytes, (flag::ACK, 0));
            }
            Step::Utter { bytes, flags, marks } => self.send(side, sent, bytes, (flags, marks)),
            Step::Miss { bytes } => {
                self.streams[side].holes.push((sent, sent + bytes));
                self.streams[side].sent += bytes;
            }
            Step::Again { back, bytes } => self.send(side, sent.saturating_sub(back), bytes, (flag::ACK, 0)),
        }
    }

    fn send(&mut self, side: usize, start: usize, length: usize, (flags, marks): (u16, u16)) {
        let stream = &mut self.streams[side];
        let end = (start + length).min(stream.bytes.len());
        if start >= end {
            return;
        }
        let follows = start == stream.sent;
        let is_new = stream.brings(start, end);
        stream.sent = stream.sent.max(end);
        let bytes = &stream.bytes[start..end.min(start + CAPTURED_BYTES)];
        let marks = if follows { marks } else { mark::RETRANSMISSION };
        let data = Data {
            start: start as i64,
            end: end as i64,
            acknowledged: self.acknowledged[side] as i64,
            bytes: Some(bytes),
            is_new,
            flags,
            marks,
            begins: start == 0,
        };
        let is_asked_for = self.asked.asks_for(0, side, &data);
        if is_new {
            stream.every.push((start as i64, bytes.to_vec()));
            if is_asked_for {
                stream.chosen.push((start as i64, bytes.to_vec()));
            }
        }
        self.direction.push(side as u8);
        self.sequence_offset.push(start as i64);
        self.acknowledgement_offset.push(data.acknowledged);
        self.payload_bytes.push((end - start) as u32);
        self.flags.push(flags);
        self.marks.push(marks);
    }

    fn exchanges(&self, pieces: impl Fn(&Stream) -> &[(i64, Vec<u8>)]) -> ExchangeReader {
        let times: Vec<i64> = (0..self.direction.len() as i64).map(|place| place * 1_000_000).collect();
        let packets = Packets {
            time_ns: &times,
            direction: &self.direction,
            sequence_offset: &self.sequence_offset,
            acknowledgement_offset: &self.acknowledgement_offset,
            payload_bytes: &self.payload_bytes,
            flags: &self.flags,
            marks: &self.marks,
            round_trip_time_ns: &vec![-1; times.len()],
            ..Packets::default()
        };
        let sample = |stream: &Stream| -> PayloadSample {
            pieces(stream).iter().map(|(offset, bytes)| (*offset, bytes.as_slice())).collect()
        };
        let [up, down] = [sample(&self.streams[0]), sample(&self.streams[1])];
        let mut reader = ExchangeReader::default();
        reader.add(0, &packets, [up.pieces(), down.pieces()], || Some(3128));
        reader
    }
}

fn record(content: u8, body: &[u8]) -> Vec<u8> {
    [&[content, 3, 3][..], &(body.len() as u16).to_be_bytes(), body].concat()
}

/// What a side may send: TLS records with and without hellos, cut ones, lines of text, and bytes without form.
fn saying() -> impl Strategy<Value = Vec<u8>> {
    let some = |most| prop::collection::vec(prop_oneof![3 => Just(0xdd_u8), 1 => any::<u8>()], 1..most);
    let whole = (20_u8..=24, some(200)).prop_map(|(content, body)| match content {
        20 => record(20, &[1]),
        _ => record(content, &body),
    });
    let hello = (1_u8..=2, some(120), prop_oneof![Just(0_usize), 0_usize..40]).prop_map(|(kind, body, lies)| {
        let length = ((body.len() + lies) as u32).to_be_bytes();
        record(22, &[&[kind][..], &length[1..], &body].concat())
    });
    let texts = [&b"GET / HTTP/1.1\r\n\r\n"[..], b"HTTP/1.1 200 OK\r\n", b"220 ready\r\n", b"EHLO me\r\n"];
    let of_proxies = [&b"CONNECT a:1 HTTP/1.1\r\n"[..], b"GET http://a/ HTTP/1.1\r\n", b"\x05\x01\0", b"\x05\0"];
    let requests = [&b"\x05\x01\0\x01\0\0\0\0\0\x50"[..], b"\x04\x01\0\x50\0\0\0\x01a\0", b"\0\x5a\0\0\0\0\0\0"];
    let text = prop::sample::select([&texts[..], &of_proxies, &requests].concat()).prop_map(<[u8]>::to_vec);
    prop_oneof![4 => whole, 2 => hello, 2 => text, 1 => some(300)]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(saying(), 1..12).prop_map(|sayings| sayings.concat())
}

/// Lengths at which records begin and end as well as any others.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![1_usize..12, 30_usize..60, 1_usize..300]
}

fn in_order() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (length(), any::<bool>()).prop_map(|(bytes, is_up_to_date)| Step::Say { bytes, is_up_to_date }),
        1 => (length(), 0_usize..4).prop_map(|(bytes, kind)| {
            const KINDS: [(u16, u16); 4] = [
                (flag::ACK | flag::FIN, 0),
                (flag::ACK | flag::SYN, 0),
                (flag::ACK, mark::ZERO_WINDOW_PROBE),
                (flag::ACK, mark::KEEP_ALIVE),
            ];
            Step::Utter { bytes, flags: KINDS[kind].0, marks: KINDS[kind].1 }
        }),
    ]
}

/// Losses as well, and copies of what the capture has or of what it missed, with new bytes behind them or without.
fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => in_order(),
        1 => length().prop_map(|bytes| Step::Miss { bytes }),
        1 => (length(), length()).prop_map(|(back, bytes)| Step::Again { back, bytes }),
    ]
}

fn talk(streams: &[Vec<u8>; 2], steps: &[(usize, Step)]) -> Talk {
    let streams = streams.clone().map(|bytes| Stream { bytes, ..Stream::default() });
    let mut talk = Talk { streams, ..Talk::default() };
    steps.iter().for_each(|(side, step)| talk.step(*side, step));
    talk
}

fn steps(step: impl Strategy<Value = Step>) -> impl Strategy<Value = Vec<(usize, Step)>> {
    prop::collection::vec((prop_oneof![Just(0_usize), Just(1), 0_usize..2], step), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn chosen_payload_tells_the_same_as_all(
        streams in [stream(), stream()],
        steps in prop_oneof![steps(in_order()).boxed(), steps(any_step()).boxed()],
    ) {
        let talk = talk(&streams, &steps);
        let (every, chosen) = (talk.exchanges(|stream| &stream.every), talk.exchanges(|stream| &stream.chosen));
        prop_assert_eq!(every.exchanges, chosen.exchanges);
    }
}

#[test]
fn of_a_long_answer_little_is_chosen() {
    let answer = record(23, &[0xdd; 16_000]).repeat(4);
    let mut steps = vec![(0, Step::Say { bytes: 40, is_up_to_date: true })];
    steps.extend((0..44).map(|_| (1, Step::Say { bytes: 1448, is_up_to_date: true })));
    let talk = talk(&[b"GET / HTTP/1.1\r\n".repeat(4), answer], &steps);
    let [asked, answered] = talk.streams;
    assert_eq!((asked.every.len(), asked.chosen.len()), (1, 1));
    assert_eq!((answered.every.len(), answered.chosen.first()), (44, answered.every.first()));
    assert!(answered.chosen.len() <= 2, "{} of 44 pieces", answered.chosen.len());
}

#[test]
fn a_gap_ends_the_choice() {
    let say = || (1, Step::Say { bytes: 100, is_up_to_date: true });
    let steps = [say(), say(), say(), (1, Step::Miss { bytes: 100 }), say(), say(), say()];
    let talk = talk(&[Vec::new(), vec![b'x'; 700]], &steps);
    let offsets: Vec<i64> = talk.streams[1].chosen.iter().map(|piece| piece.0).collect();
    assert_eq!(offsets, [0, 400, 500, 600]);
}

#[test]
fn a_question_begins_behind_a_probe() {
    let say = |side, bytes| (side, Step::Say { bytes, is_up_to_date: true });
    let probe = Step::Utter { bytes: 8, flags: flag::ACK, marks: mark::ZERO_WINDOW_PROBE };
    let talk = talk(&[vec![b'q'; 40], vec![b'a'; 400]], &[(1, probe), say(1, 100), say(1, 100), say(0, 40)]);
    let offsets: Vec<i64> = talk.streams[1].chosen.iter().map(|piece| piece.0).collect();
    assert_eq!(offsets, [0, 8]);
}
