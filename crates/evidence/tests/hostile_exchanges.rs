//! Exchanges of packets that mean nothing and of bytes that only begin like a protocol.

use crate::conversation::{record, Conversation};
use pepscope_evidence::exchanges::{ExchangeReader, Kind};
use pepscope_evidence::packets::Packets;
use pepscope_evidence::payload::sample::PayloadSample;
use proptest::prelude::*;

/// One packet: time, sequence, acknowledgement and round trip; payload; flags and marks; direction.
type Row = ([i64; 4], u32, [u16; 2], u8);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let near = || prop_oneof![4 => -1_i64..500, 1 => any::<i64>()];
    let bytes = prop_oneof![0_u32..300, any::<u32>()];
    let numbers = [near().boxed(), near().boxed(), near().boxed(), near().boxed()];
    prop::collection::vec((numbers, bytes, [0_u16..64, 0_u16..512], 0_u8..3), 0..60)
}

/// What looks like TLS, HTTP and lines of text often enough to be read as such.
fn hostile_bytes() -> impl Strategy<Value = Vec<u8>> {
    let some = |most| prop::collection::vec(prop_oneof![Just(0_u8), Just(16), Just(255), any::<u8>()], 0..most);
    let cut_record = (18_u8..26, any::<u16>(), some(60))
        .prop_map(|(content, length, body)| [&[content, 3, 3][..], &length.to_be_bytes(), &body].concat());
    let hello = (0_u8..4, any::<u16>(), some(120)).prop_map(|(kind, length, body)| {
        let [high, low] = length.to_be_bytes();
        record(22, &[&[kind, 0, high, low][..], &body].concat())
    });
    let texts = [&b"GET / HTTP/1.1\r\n"[..], b"HTTP/1.1 200 OK\r\n", b"220 ready\r\n", b"EHLO me\r\n", b""];
    let of_proxies = [&b"CONNECT a:1 HTTP/1.1\r\n"[..], b"GET http://a/ HTTP/1.1\r\n", b"\x05\x01\0", b"\x05\0"];
    let requests = [&b"\x05\x01\0\x01\0\0\0\0\0\x50"[..], b"\x04\x01\0\x50\0\0\0\x01a\0b\0", b"\0\x5a\0\0\0\0\0\0"];
    let known = [&texts[..], &of_proxies, &requests].concat();
    prop_oneof![some(40), cut_record, hello, prop::sample::select(known).prop_map(<[u8]>::to_vec)]
}

fn pieces() -> impl Strategy<Value = Vec<(i64, Vec<u8>)>> {
    prop::collection::vec((prop_oneof![4 => 0_i64..300, 1 => any::<i64>()], hostile_bytes()), 0..12)
}

fn sample(pieces: &[(i64, Vec<u8>)]) -> PayloadSample {
    pieces.iter().map(|(offset, bytes)| (*offset, bytes.as_slice())).collect()
}

fn read(rows: &[Row], payload: [&PayloadSample; 2]) -> ExchangeReader {
    let number = |place: usize| -> Vec<i64> { rows.iter().map(|row| row.0[place]).collect() };
    let word = |place: usize| -> Vec<u16> { rows.iter().map(|row| row.2[place]).collect() };
    let numbers = [0, 1, 2, 3].map(number);
    let [time_ns, sequence_offset, acknowledgement_offset, round_trip_time_ns] = &numbers;
    let packets = Packets {
        time_ns,
        direction: &rows.iter().map(|row| row.3).collect::<Vec<u8>>(),
        sequence_offset,
        acknowledgement_offset,
        payload_bytes: &rows.iter().map(|row| row.1).collect::<Vec<u32>>(),
        flags: &word(0),
        marks: &word(1),
        round_trip_time_ns,
        ..Packets::default()
    };
    let mut reader = ExchangeReader::default();
    reader.add(0, &packets, payload.map(PayloadSample::pieces), || Some(3128));
    reader
}

proptest! {
    #[test]
    fn any_packets_and_bytes_are_taken(rows in rows(), up in pieces(), down in pieces()) {
        let reader = read(&rows, [&sample(&up), &sample(&down)]);
        let found = reader.exchanges;
        for row in 0..found.connection.len() {
            prop_assert!(usize::from(found.kind[row]) < Kind::ALL.len());
            prop_assert!(!(found.strict[row] && found.crossed[row]));
            prop_assert!(found.question_bytes[row] > 0 && found.answer_bytes[row] > 0);
            prop_assert!(found.question_span_ns[row] >= 0 && found.flight_bytes[row] >= 0 && found.idle_ns[row] >= -1);
            prop_assert!(found.repeated[row] || found.question_ns[row] <= found.answered_ns[row]);
        }
        for way in 0..2 {
            let firsts = found.asked.iter().zip(&found.first).filter(|row| *row.0 == way && *row.1);
            prop_assert!(firsts.count() <= 1);
        }
        prop_assert_eq!(reader.round_trips.connection.len(), 2);
    }

    #[test]
    fn what_a_capture_cuts_off_changes_no_times(
        turns in prop::collection::vec((0_u8..2, 1_usize..40, hostile_bytes()), 1..30),
        kept_bytes in 0_usize..40,
    ) {
        let [whole, cut] = [256, kept_bytes].map(|kept_bytes| {
            let mut talk = Conversation::opened();
            talk.kept_bytes = kept_bytes;
            for (place, (way, length, bytes)) in turns.iter().enumerate() {
                talk.say(*way, place as i64, &[&bytes[..], &vec![0; *length]].concat());
            }
            talk.exchanges()
        });
        prop_assert_eq!(whole.exchanges.question_ns, cut.exchanges.question_ns);
        prop_assert_eq!(whole.exchanges.answered_ns, cut.exchanges.answered_ns);
        prop_assert_eq!(whole.exchanges.answer_bytes, cut.exchanges.answer_bytes);
        prop_assert_eq!(whole.round_trips, cut.round_trips);
    }
}
