//! The dedicated channel: transcripts and properties.
#![allow(clippy::unwrap_used)]

use crate::dedicated_channel::{bearer, probe, settings, MS, PAYLOAD_BYTES};
use crate::probe::{assert_settled, Driver, Probe};
use pepscope_path::umts::{
    DedicatedChannel, DedicatedChannelSettings, HeaderCompression, PollSettings, RadioLinkControlSettings,
    StatusFormat, TransportChannelSettings,
};
use pepscope_path::{Direction, Hop, QueueLimit, SECOND};
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest, Strategy};

/// Times in ms at which packets of these lengths, all sent at once at 1 ms, arrive over a faultless 64 kbit/s: two PDUs
/// in each interval from 10 ms on.
fn arrivals_ms(lengths: &[u32]) -> Vec<u64> {
    let mut driver = bearer(&settings(64_000, 0.0));
    driver.run_until(MS);
    for &bytes in lengths {
        driver.send(Direction::Down, probe(bytes));
    }
    driver.run_until(10 * SECOND);
    driver.left.iter().map(|left| left.at_ns / MS).collect()
}

#[test]
fn packets_are_cut_into_pdus_and_share_them() {
    assert_eq!(arrivals_ms(&[37]), [40]); // 10 ms, an interval, the delay
    assert_eq!(arrivals_ms(&[2 * 38 - 1]), [40]); // two PDUs and one length indicator
    assert_eq!(arrivals_ms(&[2 * 38, 1]), [50, 50]); // no room for the indicator: the next PDU marks the end
    assert_eq!(arrivals_ms(&[18, 18, 37, 37]), [40, 40, 40, 50]); // 18 + 1 + 18 + 1 fill one PDU
    assert_eq!(arrivals_ms(&[20, 20, 33]), [40, 40, 40]); // 20 + 1 + 17, then 3 + 1 + 33 + 1
    assert_eq!(arrivals_ms(&[20, 20, 34]), [40, 40, 50]);
}

#[test]
fn headers_are_compressed_before_they_are_cut() {
    let compression = HeaderCompression { compressed_header_bytes: Some(4), pdcp_header_bytes: 1 };
    assert_eq!(compression.sdu_bytes(552, 40), 517);
    assert_eq!(compression.sdu_bytes(40, 40), 5);
    assert_eq!(compression.sdu_bytes(30, 2), 31);
    assert_eq!(HeaderCompression::default().sdu_bytes(552, 40), 552);
    let mut compressed = settings(64_000, 0.0);
    compressed.compression = compression;
    let mut driver = bearer(&compressed);
    driver.send(Direction::Up, Probe { bytes: 40 + 32, headers: 40, ..Probe::default() }); // 37 bytes
    driver.run_until(SECOND);
    assert_eq!(driver.transcript(), [(0, 40 * MS)]);
}

#[test]
fn what_comes_as_an_interval_begins_waits_for_the_next() {
    let mut driver = bearer(&settings(64_000, 0.0));
    driver.send(Direction::Down, probe(300));
    driver.run_until(20 * MS);
    driver.send(Direction::Down, probe(10)); // the first takes eight PDUs until 50 ms, this one shares the last
    driver.run_until(300 * MS);
    driver.send(Direction::Down, probe(10));
    driver.run_until(SECOND);
    assert_eq!(driver.transcript(), [(0, 70 * MS), (1, 80 * MS), (2, 340 * MS)]);
}

#[test]
fn status_reports_take_the_place_of_data() {
    let arrived_by = |periodic_ns, until| {
        let mut settings = settings(64_000, 0.0);
        settings.radio_link_control.status_periodic_ns = Some(periodic_ns);
        let mut driver = bearer(&settings);
        driver.send(Direction::Down, probe(PAYLOAD_BYTES * 10_000));
        for _ in 0..4_000 {
            driver.send(Direction::Down, probe(37));
        }
        driver.run_until(until);
        driver.hop.data_pdus(Direction::Down).0
    };
    // 200 PDUs a second, of which the RNC's reports on the up direction take 10 or 2.
    assert_eq!(arrived_by(100 * MS, 50 * SECOND + 1), 10_000 - 500);
    assert_eq!(arrived_by(500 * MS, 50 * SECOND + 1), 10_000 - 100);
}

#[test]
fn a_full_buffer_refuses() {
    let mut settings = settings(64_000, 0.0);
    settings.down.buffer = QueueLimit::Packets(3);
    let mut driver = bearer(&settings);
    for _ in 0..10 {
        driver.send(Direction::Down, probe(500));
    }
    assert_eq!(driver.hop.counts(Direction::Down).overflowed_packets, 6);
    driver.run_until(10 * SECOND);
    assert_eq!(driver.left.len(), 4);
}

#[test]
fn without_answers_the_window_closes() {
    let mut settings = settings(128_000, 0.0);
    settings.radio_link_control.window_pdus = 10;
    settings.radio_link_control.status_on_gap = false;
    settings.radio_link_control.status_periodic_ns = Some(SECOND);
    let mut driver = bearer(&settings);
    for _ in 0..100 {
        driver.send(Direction::Down, probe(37));
    }
    driver.run_until(900 * MS);
    assert_eq!(driver.left.len(), 10);
    driver.run_until(1_900 * MS); // the report leaves at 1 s
    assert_eq!(driver.left.len(), 20);
}

#[test]
fn no_packet_is_lost_where_none_is_given_up() {
    let mut settings = settings(384_000, 0.2);
    settings.radio_link_control.maximum_transmissions = None;
    settings.radio_link_control.unreported_is_lost_after_ns = Some(60 * MS);
    let mut driver = bearer(&settings);
    for _ in 0..2_000 {
        driver.send(Direction::Down, probe(500)); // 27,000 PDUs: the 12 bits wrap six times
        driver.send(Direction::Up, probe(60));
    }
    driver.run_until(200 * SECOND);
    for direction in [Direction::Down, Direction::Up] {
        assert_eq!(driver.left_in(direction).count(), 2_000);
        let numbers: Vec<u64> = driver.left_in(direction).map(|left| left.probe.number).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    }
    assert!(driver.hop.data_pdus(Direction::Down).0 > 6 * 4_096);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let refused = |change: &dyn Fn(&mut DedicatedChannelSettings)| {
        let mut changed = settings(64_000, 0.1);
        change(&mut changed);
        DedicatedChannel::<Probe>::new(&changed, 1, "dch").unwrap_err().to_string()
    };
    assert_eq!(
        refused(&|settings| settings.radio_link_control.window_pdus = 2_048),
        "window_pdus must be from 1 to 2047, got 2048"
    );
    refused(&|settings| settings.down.rate_bit_s = 0);
    refused(&|settings| settings.up.transmission_time_interval_ns = 0);
    refused(&|settings| settings.up.block_error_rate = 1.0);
    refused(&|settings| settings.down.block_error_rate = f64::NAN);
    refused(&|settings| settings.down.buffer = QueueLimit::Frames(3));
    refused(&|settings| settings.radio_link_control.pdu_bits = 321);
    refused(&|settings| settings.radio_link_control.maximum_transmissions = Some(0));
    refused(&|settings| settings.radio_link_control.status_periodic_ns = None);
    refused(&|settings| settings.radio_link_control.status_periodic_ns = Some(0));
}

fn any_channel() -> impl Strategy<Value = TransportChannelSettings> {
    (64_000u64..400_000, prop::sample::select(vec![10u64, 20, 40]), 0.0..0.5f64, 0..60 * MS).prop_map(
        |(rate_bit_s, interval_ms, block_error_rate, delay_ns)| TransportChannelSettings {
            rate_bit_s,
            transmission_time_interval_ns: interval_ms * MS,
            block_error_rate,
            delay_ns,
            buffer: QueueLimit::Packets(40),
        },
    )
}

fn any_control() -> impl Strategy<Value = RadioLinkControlSettings> {
    let sizes = prop::sample::select(vec![128u32, 320, 336, 1_016, 2_048]);
    let windows = prop::sample::select(vec![16u32, 200, 1_024, 2_047]);
    (sizes, windows, prop::option::of(1..5u32), any::<bool>(), any::<bool>(), any::<bool>(), 0..120 * MS).prop_map(
        |(pdu_bits, window_pdus, maximum_transmissions, polls, status_on_gap, is_list, status_prohibit_ns)| {
            RadioLinkControlSettings {
                pdu_bits,
                window_pdus,
                maximum_transmissions,
                status_on_gap,
                status_prohibit_ns,
                status_format: if is_list { StatusFormat::List } else { StatusFormat::Bitmap },
                poll: PollSettings { on_last_pdu: polls, timer_ns: polls.then_some(300 * MS) },
                status_periodic_ns: (!polls).then_some(100 * MS),
                unreported_is_lost_after_ns: (!polls).then_some(250 * MS),
                ..RadioLinkControlSettings::default()
            }
        },
    )
}

proptest! {
    #[test]
    fn packets_are_conserved_and_in_sequence(
        down in any_channel(), up in any_channel(), radio_link_control in any_control(),
        entries in prop::collection::vec((0..100 * MS, any::<bool>(), 1..1_500u32), 1..100),
    ) {
        let settings =
            DedicatedChannelSettings { down, up, compression: HeaderCompression::default(), radio_link_control };
        let mut driver = bearer(&settings);
        let mut nervous = bearer(&settings);
        let mut lazy = bearer(&settings);
        let mut at_ns = 0;
        for (gap, is_down, bytes) in entries {
            at_ns += gap;
            let direction = if is_down { Direction::Down } else { Direction::Up };
            driver.run_until(at_ns);
            driver.send(direction, probe(bytes));
            while nervous.now < at_ns {
                nervous.run_until((nervous.now + 3 * MS).min(at_ns));
                nervous.wake();
            }
            nervous.send(direction, probe(bytes));
            lazy.now = at_ns;
            lazy.send(direction, probe(bytes));
        }
        let is_settled = |driver: &Driver<DedicatedChannel<Probe>>| {
            [Direction::Down, Direction::Up].into_iter().all(|direction| {
                let counts = driver.hop.counts(direction);
                counts.offered_packets == counts.delivered_packets + counts.overflowed_packets + counts.lost_packets
            })
        };
        let mut end = at_ns;
        while end < at_ns + 2_000 * SECOND && !is_settled(&driver) {
            end += 20 * SECOND;
            driver.run_until(end);
        }
        nervous.run_until(end);
        lazy.now = end;
        lazy.wake();
        prop_assert_eq!(&driver.left, &nervous.left);
        for direction in [Direction::Down, Direction::Up] {
            let left: Vec<_> = driver.left_in(direction).collect();
            prop_assert!(left.windows(2).all(|pair| pair[0].probe.number < pair[1].probe.number));
            let bytes = left.iter().map(|left| u64::from(left.probe.bytes)).sum();
            assert_settled(driver.hop.counts(direction), left.len() as u64, bytes);
            prop_assert_eq!(driver.hop.counts(direction), lazy.hop.counts(direction));
            if radio_link_control.maximum_transmissions.is_none() {
                prop_assert_eq!(driver.hop.counts(direction).lost_packets, 0);
            }
        }
    }
}
