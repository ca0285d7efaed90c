//! Round trips besides TCP: datagrams and echo messages of two hosts, in any order and with any content.
//!
//! An input is a list of datagrams, each a byte that says who sends and to which port, a byte of milliseconds since the
//! one before it, two bytes of length, and the content.

use pepscope_connections::References;
use pepscope_wire::{Datagram, Echo};

const PORTS: [u16; 6] = [53, 123, 443, 7, 3478, 9000];
const IS_ANSWER: u8 = 0x80;
const IS_ECHO: u8 = 0x40;
/// Datagrams with QUIC's Initial packets are at least this long; most inputs are not.
const IS_PADDED: u8 = 0x20;
const PADDED_BYTES: u32 = 1200;

pub fn seeds() -> Vec<Vec<u8>> {
    let one =
        |control: u8, payload: &[u8]| [&[control, 5], &(payload.len() as u16).to_be_bytes()[..], payload].concat();
    let dns = |flags: u8| [0xab, 0xcd, flags, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let stun = |class: u8| [&[class, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42], &[9; 12][..]].concat();
    let quic = |first: u8, to: &[u8], from: &[u8]| {
        [&[first, 0, 0, 0, 1, to.len() as u8], to, &[from.len() as u8], from, &[0; 20]].concat()
    };
    let (client, server, random) = ([1; 8], [2; 8], [3; 8]);
    vec![
        [one(0, &dns(1)), one(IS_ANSWER, &dns(0x81))].concat(),
        [one(4, &stun(0)), one(4 | IS_ANSWER, &stun(1))].concat(),
        [one(3, b"echo"), one(3 | IS_ANSWER, b"echo"), one(5, b"question"), one(5 | IS_ANSWER, b"answer")].concat(),
        [one(IS_ECHO, &[0, 1, 0, 2]), one(IS_ECHO | IS_ANSWER, &[0, 1, 0, 2])].concat(),
        [
            one(2 | IS_PADDED, &quic(0xc0, &random, &client)),
            one(2 | IS_PADDED | IS_ANSWER, &quic(0xc0, &client, &server)),
            one(2, &quic(0xe0, &server, &client)),
        ]
        .concat(),
    ]
}

/// Takes all in; gives the kinds of what was found.
pub fn run(mut input: &[u8]) -> Vec<u8> {
    let mut references = References::default();
    let mut times: [Vec<i64>; 2] = Default::default();
    let mut time_ns = 0_i64;
    while let Some(([control, spent, high, low], rest)) = input.split_first_chunk::<4>() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (payload, behind) = rest.split_at(length);
        input = behind;
        time_ns += i64::from(*spent) * 1_000_000;
        let is_answer = control & IS_ANSWER != 0;
        times[usize::from(is_answer)].push(time_ns);
        let ends = [([1; 16], 40_000), ([2; 16], PORTS[usize::from(control & 7) % PORTS.len()])];
        let [(source, source_port), (destination, destination_port)] =
            if is_answer { [ends[1], ends[0]] } else { ends };
        if control & IS_ECHO != 0 {
            let [id_high, id_low, sequence_high, sequence_low] =
                payload.first_chunk::<4>().copied().unwrap_or_default();
            references.push_echo(&Echo {
                frame_index: 0,
                time_ns,
                ip_version: 4,
                source,
                destination,
                is_reply: is_answer,
                identifier: u16::from_be_bytes([id_high, id_low]),
                sequence: u16::from_be_bytes([sequence_high, sequence_low]),
                data_bytes: length as u32,
            });
            continue;
        }
        let padded = if control & IS_PADDED != 0 { PADDED_BYTES } else { 0 };
        references.push(&Datagram {
            frame_index: 0,
            time_ns,
            ip_version: 4,
            source,
            destination,
            source_port,
            destination_port,
            payload_length: (length as u32).max(padded),
            payload,
        });
    }
    let rows = references.finish();
    for row in &rows {
        let asked_by_server = usize::from(row.asker == [2; 16]);
        assert!(times[asked_by_server].contains(&row.asked_ns), "nobody asked then");
        let answered_ns = row.asked_ns + row.round_trip_ns;
        assert!(times[1 - asked_by_server].contains(&answered_ns), "nobody answered then");
        assert!((0..=row.round_trip_ns).contains(&row.repeated_ns), "asked again after the answer");
    }
    rows.iter().map(|row| row.kind as u8).collect()
}
