//! A connection written as a script of who says what and when.

use pepscope_evidence::exchanges::ExchangeReader;
use pepscope_evidence::packets::{flag, Packets, NO_ACKNOWLEDGEMENT};
use pepscope_evidence::payload::sample::PayloadSample;

pub const CLIENT: u8 = 0;
pub const SERVER: u8 = 1;

/// A TLS record.
pub fn record(content: u8, body: &[u8]) -> Vec<u8> {
    [&[content, 3, 3][..], &(body.len() as u16).to_be_bytes(), body].concat()
}

/// Packets and payload so far. Every packet acknowledges all that the other side has sent, unless told otherwise.
pub struct Conversation {
    pub flags: u16,
    /// Of each packet so many bytes were captured.
    pub kept_bytes: usize,
    sent: [i64; 2],
    time_ns: Vec<i64>,
    direction: Vec<u8>,
    sequence_offset: Vec<i64>,
    acknowledgement_offset: Vec<i64>,
    payload_bytes: Vec<u32>,
    packet_flags: Vec<u16>,
    marks: Vec<u16>,
    round_trip_time_ns: Vec<i64>,
    pieces: [Vec<(i64, Vec<u8>)>; 2],
}

struct Packet {
    way: u8,
    time_ns: i64,
    start: i64,
    acknowledgement: i64,
    bytes: u32,
    marks: u16,
    round_trip_ns: i64,
}

impl Conversation {
    pub fn met_late() -> Self {
        Conversation {
            flags: flag::ACK,
            kept_bytes: 256,
            sent: [0, 0],
            time_ns: Vec::new(),
            direction: Vec::new(),
            sequence_offset: Vec::new(),
            acknowledgement_offset: Vec::new(),
            payload_bytes: Vec::new(),
            packet_flags: Vec::new(),
            marks: Vec::new(),
            round_trip_time_ns: Vec::new(),
            pieces: [Vec::new(), Vec::new()],
        }
    }

    /// With a handshake: the SYN-ACK after 10 ns, and the ACK after 10 more, all before time 0.
    pub fn opened() -> Self {
        let mut talk = Self::met_late();
        for (way, time_ns, flags) in
            [(CLIENT, -20, flag::SYN), (SERVER, -10, flag::SYN | flag::ACK), (CLIENT, 0, flag::ACK)]
        {
            talk.flags = flags;
            let start = if flags & flag::SYN != 0 { -1 } else { 0 };
            let acknowledgement = if flags & flag::ACK != 0 { 0 } else { NO_ACKNOWLEDGEMENT };
            talk.push(Packet { way, time_ns, start, acknowledgement, bytes: 0, marks: 0, round_trip_ns: -1 });
        }
        talk
    }

    /// With bytes in the SYN (RFC 7413), which the SYN-ACK acknowledges.
    pub fn opened_fast(bytes: &[u8]) -> Self {
        let mut talk = Self::met_late();
        let length = bytes.len() as i64;
        talk.pieces[usize::from(CLIENT)].push((0, bytes.to_vec()));
        talk.sent[usize::from(CLIENT)] = length;
        for (way, flags, start, acknowledgement, bytes) in [
            (CLIENT, flag::SYN, -1, NO_ACKNOWLEDGEMENT, length as u32),
            (SERVER, flag::SYN | flag::ACK, -1, length, 0),
            (CLIENT, flag::ACK, length, 0, 0),
        ] {
            let time_ns = -20 + 10 * talk.time_ns.len() as i64;
            talk.flags = flags;
            talk.push(Packet { way, time_ns, start, acknowledgement, bytes, marks: 0, round_trip_ns: -1 });
        }
        talk
    }

    pub fn say(&mut self, way: u8, time_ns: i64, bytes: &[u8]) -> &mut Self {
        self.speak(way, time_ns, bytes, self.sent[1 - usize::from(way)], -1)
    }

    /// As `say`, and a round trip of the other side's data ends with it.
    pub fn say_after(&mut self, way: u8, time_ns: i64, bytes: &[u8], round_trip_ns: i64) -> &mut Self {
        self.speak(way, time_ns, bytes, self.sent[1 - usize::from(way)], round_trip_ns)
    }

    /// As `say`, with an acknowledgement of an earlier moment.
    pub fn cross(&mut self, way: u8, time_ns: i64, bytes: &[u8], acknowledgement: i64) -> &mut Self {
        self.speak(way, time_ns, bytes, acknowledgement, -1)
    }

    fn speak(&mut self, way: u8, time_ns: i64, bytes: &[u8], acknowledgement: i64, round_trip_ns: i64) -> &mut Self {
        let start = self.sent[usize::from(way)];
        let kept = bytes[..bytes.len().min(self.kept_bytes)].to_vec();
        self.pieces[usize::from(way)].push((start, kept));
        self.sent[usize::from(way)] += bytes.len() as i64;
        let length = bytes.len() as u32;
        self.push(Packet { way, time_ns, start, acknowledgement, bytes: length, marks: 0, round_trip_ns })
    }

    pub fn acknowledge(&mut self, way: u8, time_ns: i64) -> &mut Self {
        self.round_trip(way, time_ns, -1)
    }

    /// An acknowledgement with which a round trip of the other side's data ends.
    pub fn round_trip(&mut self, way: u8, time_ns: i64, round_trip_ns: i64) -> &mut Self {
        let (start, acknowledgement) = (self.sent[usize::from(way)], self.sent[1 - usize::from(way)]);
        self.push(Packet { way, time_ns, start, acknowledgement, bytes: 0, marks: 0, round_trip_ns })
    }

    /// Bytes from `start` on, that were sent before.
    pub fn again(&mut self, way: u8, time_ns: i64, start: i64, bytes: u32, marks: u16) -> &mut Self {
        let acknowledgement = self.sent[1 - usize::from(way)];
        self.push(Packet { way, time_ns, start, acknowledgement, bytes, marks, round_trip_ns: -1 })
    }

    /// Bytes that the capture does not hold.
    pub fn skip(&mut self, way: u8, bytes: i64) -> &mut Self {
        self.sent[usize::from(way)] += bytes;
        self
    }

    fn push(&mut self, packet: Packet) -> &mut Self {
        self.time_ns.push(packet.time_ns);
        self.direction.push(packet.way);
        self.sequence_offset.push(packet.start);
        self.acknowledgement_offset.push(packet.acknowledgement);
        self.payload_bytes.push(packet.bytes);
        self.packet_flags.push(self.flags);
        self.marks.push(packet.marks);
        self.round_trip_time_ns.push(packet.round_trip_ns);
        self
    }

    pub fn exchanges(&self) -> ExchangeReader {
        let packets = Packets {
            time_ns: &self.time_ns,
            direction: &self.direction,
            sequence_offset: &self.sequence_offset,
            acknowledgement_offset: &self.acknowledgement_offset,
            payload_bytes: &self.payload_bytes,
            flags: &self.packet_flags,
            marks: &self.marks,
            round_trip_time_ns: &self.round_trip_time_ns,
            ..Packets::default()
        };
        let sample = |way: usize| -> PayloadSample {
            self.pieces[way].iter().map(|(offset, bytes)| (*offset, bytes.as_slice())).collect()
        };
        let mut reader = ExchangeReader::default();
        let [up, down] = [sample(0), sample(1)];
        reader.add(0, &packets, [up.pieces(), down.pieces()], || Some(3128));
        reader
    }
}
