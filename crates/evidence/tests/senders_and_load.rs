//! What senders show and how data respond to load, on columns of any content.
#![allow(clippy::unwrap_used)]

use pepscope_evidence::packets::{flag, mark, Packets, NO_ACKNOWLEDGEMENT};
use proptest::prelude::*;

/// Direction, time, sequence, acknowledgement, payload, window, flags, marks and round trip of a packet.
type Row = (u8, i64, i64, i64, u32, u32, u16, u16, i64);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let offset = || prop_oneof![0_i64..3000, any::<i64>(), Just(NO_ACKNOWLEDGEMENT), Just(i64::MAX), Just(i64::MIN)];
    let flags = prop_oneof![Just(flag::ACK), Just(flag::SYN), Just(flag::RST | flag::ACK), any::<u16>()];
    let payload = prop_oneof![Just(0), 1_u32..1500, any::<u32>()];
    let window = prop_oneof![Just(0), any::<u32>()];
    let marks = prop_oneof![Just(0), Just(mark::HAS_TIMESTAMPS), any::<u16>()];
    let round_trip = prop_oneof![Just(-1_i64), 0_i64..1000, any::<i64>()];
    let times = prop_oneof![0_i64..1000, any::<i64>()];
    let row = (0_u8..2, times, offset(), offset(), payload, window, flags, marks, round_trip);
    proptest::collection::vec(row, 0..60)
}

proptest! {
    #[test]
    fn any_columns_give_numbers_that_fit_together(rows in rows()) {
        let bytes: Vec<u8> = rows.iter().map(|row| row.4 as u8).collect();
        let wide: Vec<u32> = rows.iter().map(|row| row.4).collect();
        let packets = Packets {
            direction: &rows.iter().map(|row| row.0).collect::<Vec<_>>(),
            time_ns: &rows.iter().map(|row| row.1).collect::<Vec<_>>(),
            sequence_offset: &rows.iter().map(|row| row.2).collect::<Vec<_>>(),
            acknowledgement_offset: &rows.iter().map(|row| row.3).collect::<Vec<_>>(),
            payload_bytes: &wide,
            window_bytes: &rows.iter().map(|row| row.5).collect::<Vec<_>>(),
            flags: &rows.iter().map(|row| row.6).collect::<Vec<_>>(),
            marks: &rows.iter().map(|row| row.7).collect::<Vec<_>>(),
            round_trip_time_ns: &rows.iter().map(|row| row.8).collect::<Vec<_>>(),
            tsval: &wide,
            tsecr: &wide,
            ip_id: &rows.iter().map(|row| row.7).collect::<Vec<_>>(),
            ttl: &bytes,
            payload_hash: &wide,
            ..Packets::default()
        };
        for direction in [0, 1] {
            let sender = packets.sender(5, direction);
            prop_assert!(sender.ticked_packets <= sender.later_packets);
            prop_assert_eq!(sender.hop_limit < 0, sender.later_packets == 0);
            prop_assert!(sender.train_bytes >= 0 && sender.train_spread_ns >= 0);
            // No train counts as slower than 2 ms a full segment.
            let most_ns = i128::from(sender.train_bytes) * 2_000_000 / 1460;
            prop_assert!(i128::from(sender.train_spread_ns) <= most_ns);
            let load = packets.load_response(5, direction);
            prop_assert_eq!(load.samples == 0, load.idle_ns < 0 && load.loaded_ns < 0);
            prop_assert!(load.samples == 0 || load.least_ns <= load.idle_ns.min(load.loaded_ns));
            prop_assert!(load.samples == 0 || load.idle_flight_bytes <= load.loaded_flight_bytes);
            prop_assert!(load.rank_correlation.is_nan() || load.rank_correlation.abs() <= 1.0 + 1e-9);
            prop_assert!(load.shut_ns >= 0);
        }
    }
}
