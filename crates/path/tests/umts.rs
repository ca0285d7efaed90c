//! The dedicated channel: transcripts, properties, and the theory in docs/models/umts_dch.md.
#![allow(clippy::unwrap_used)]

mod probe;

use pepscope_path::umts::{
    DedicatedChannel, DedicatedChannelSettings, HeaderCompression, PollSettings, RadioLinkControlSettings,
    StatusFormat, TransportChannelSettings,
};
use pepscope_path::{Direction, Hop, Nanoseconds, QueueLimit, Random, MILLISECOND, SECOND};
use probe::{assert_settled, Driver, Probe};
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest, Strategy};

const MS: Nanoseconds = MILLISECOND;
const INTERVAL_NS: Nanoseconds = 10 * MS;
const DELAY_NS: Nanoseconds = 20 * MS;
const PAYLOAD_BYTES: u32 = 38; // 320 bits without the header of 16

fn channel(rate_bit_s: u64, block_error_rate: f64) -> TransportChannelSettings {
    TransportChannelSettings {
        rate_bit_s,
        transmission_time_interval_ns: INTERVAL_NS,
        block_error_rate,
        delay_ns: DELAY_NS,
        buffer: QueueLimit::Unlimited,
    }
}

fn settings(rate_bit_s: u64, block_error_rate: f64) -> DedicatedChannelSettings {
    DedicatedChannelSettings {
        down: channel(rate_bit_s, block_error_rate),
        up: channel(rate_bit_s, block_error_rate),
        compression: HeaderCompression::default(),
        radio_link_control: RadioLinkControlSettings::default(),
    }
}

fn bearer(settings: &DedicatedChannelSettings) -> Driver<DedicatedChannel<Probe>> {
    Driver::new(DedicatedChannel::new(settings, 2, "dch").unwrap())
}

fn probe(bytes: u32) -> Probe {
    Probe { bytes, headers: 0, ..Probe::default() }
}

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
    assert_eq!(arrivals_ms(&[2 * 38, 1]), [50, 50]); // no room for the indicator: the next PDU tells the end
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

/// Polls alone: a lost PDU is repeated each time that Timer_Poll runs out, so n losses cost n timers: P(n) = (1 - p) p^n.
#[test]
fn with_polls_the_delay_is_geometric() {
    let (p, timer_ns) = (0.3, 200 * MS);
    let mut settings = settings(64_000, 0.0);
    settings.down.block_error_rate = p;
    settings.radio_link_control = RadioLinkControlSettings {
        status_periodic_ns: None,
        poll: PollSettings { on_last_pdu: true, timer_ns: Some(timer_ns) },
        status_prohibit_ns: 0,
        maximum_transmissions: None,
        ..RadioLinkControlSettings::default()
    };
    let mut driver = bearer(&settings);
    let packets = 20_000;
    for packet in 0..packets {
        driver.run_until(packet * 8 * SECOND);
        driver.send(Direction::Down, probe(20));
    }
    driver.run_to_the_end();
    let mut counts = [0u32; 40];
    for left in &driver.left {
        let delay = left.at_ns - left.probe.sent_ns - INTERVAL_NS - INTERVAL_NS - DELAY_NS;
        assert_eq!(delay % timer_ns, 0);
        counts[(delay / timer_ns) as usize] += 1;
    }
    for (losses, &count) in counts.iter().take(6).enumerate() {
        let probability = (1.0 - p) * p.powi(losses as i32);
        let deviation = (packets as f64 * probability * (1.0 - probability)).sqrt();
        let expected = packets as f64 * probability;
        assert!((f64::from(count) - expected).abs() < 4.0 * deviation, "{losses}: {count} for {expected}");
    }
}

/// Periodic reports alone, errors both ways: docs/models/umts_dch.md derives
/// P(no wait) = 1 - p and P(delay = W + forth + back + j T) = p s (1 - s)^j, s = (1 - p)(1 - q), W uniform.
#[test]
fn with_periodic_reports_the_delay_has_its_closed_form() {
    let (p, q, period_ns) = (0.2, 0.1, 100 * MS);
    let one_way_ns = INTERVAL_NS + DELAY_NS;
    let mut settings = settings(64_000, 0.0);
    settings.down.block_error_rate = p;
    settings.up.block_error_rate = q;
    settings.radio_link_control = RadioLinkControlSettings {
        status_periodic_ns: Some(period_ns),
        status_prohibit_ns: 0,
        status_on_gap: false,
        maximum_transmissions: None,
        unreported_is_lost_after_ns: Some(2 * one_way_ns),
        ..RadioLinkControlSettings::default()
    };
    let mut driver = bearer(&settings);
    let mut random = Random::new(8, "phases");
    let packets = 20_000u64;
    for packet in 0..packets {
        // Just before the beginning of an interval, at any of the ten in a period.
        let phase = 1 + u64::from(random.below(10));
        driver.run_until(packet * 5 * SECOND + phase * INTERVAL_NS - 1);
        driver.send(Direction::Down, probe(20));
    }
    driver.run_until((packets + 1) * 5 * SECOND);
    let delays_ms: Vec<u64> =
        driver.left.iter().map(|left| (left.at_ns - left.probe.sent_ns - 1 - one_way_ns) / MS).collect();
    assert_eq!(delays_ms.len() as u64, packets);
    // Beyond the first transmission's delay: W - one way + one way + one way, W - one way in 0, 10, .. 90 ms.
    let s = (1.0 - p) * (1.0 - q);
    let distribution = |delay_ms: u64| -> f64 {
        let cycles = |bound: u64| -> f64 { (0..=bound).map(|j| s * (1.0 - s).powi(j as i32)).sum() };
        let mut probability = 1.0 - p;
        for wait in (0..10).map(|step| 60 + 10 * step) {
            if delay_ms >= wait {
                probability += 0.1 * p * cycles((delay_ms - wait) / 100);
            }
        }
        probability
    };
    for bound in (0..1_000).step_by(10) {
        let share = delays_ms.iter().filter(|&&delay| delay <= bound).count() as f64 / packets as f64;
        let theory = distribution(bound);
        let deviation = (theory * (1.0 - theory) / packets as f64).sqrt();
        assert!((share - theory).abs() < 4.5 * deviation + 1e-4, "{bound} ms: {share} for {theory}");
    }
    let mean = delays_ms.iter().sum::<u64>() as f64 / packets as f64;
    let theory = p * (60.0 + 45.0 + 100.0 * (1.0 - s) / s);
    assert!((mean / theory - 1.0).abs() < 0.05, "{mean} for {theory}");
}

/// Rate, less one report a period, times 1 - BLER, times what headers and length indicators leave.
#[test]
fn throughput_is_the_rate_less_errors_and_headers() {
    for (rate_bit_s, block_error_rate) in [(64_000, 0.0), (128_000, 0.1), (384_000, 0.1), (384_000, 0.3)] {
        let mut settings = settings(rate_bit_s, 0.0);
        settings.down.block_error_rate = block_error_rate;
        settings.radio_link_control.status_prohibit_ns = 90 * MS; // above the round trip: nothing is repeated twice
        settings.radio_link_control.maximum_transmissions = None;
        let mut driver = bearer(&settings);
        let (bytes, seconds) = (1_000, 200);
        for _ in 0..rate_bit_s * seconds / 8 / u64::from(bytes) {
            driver.send(Direction::Down, probe(bytes));
        }
        driver.run_until(seconds * SECOND);
        let pdus_s = rate_bit_s as f64 / 320.0 - 10.0;
        let payload = f64::from(PAYLOAD_BYTES) * f64::from(bytes) / f64::from(bytes + 1);
        let theory = pdus_s * (1.0 - block_error_rate) * payload * 8.0;
        let measured = driver.left.iter().map(|left| f64::from(left.probe.bytes) * 8.0).sum::<f64>() / seconds as f64;
        assert!((measured / theory - 1.0).abs() < 0.015, "{rate_bit_s} {block_error_rate}: {measured} for {theory}");
        let (sent, repeated) = driver.hop.data_pdus(Direction::Down);
        let share = repeated as f64 / sent as f64;
        assert!((share - block_error_rate).abs() < 0.01, "{share} repeated");
    }
}

/// A packet in a PDU of its own is given up if all its transmissions fail: BLER^n.
#[test]
fn packets_are_given_up_after_their_transmissions() {
    for (p, transmissions) in [(0.1f64, 1), (0.1, 2), (0.3, 3)] {
        let mut settings = settings(384_000, 0.0);
        settings.down.block_error_rate = p;
        settings.radio_link_control.status_prohibit_ns = 90 * MS;
        settings.radio_link_control.maximum_transmissions = Some(transmissions);
        let mut driver = bearer(&settings);
        let packets = 60_000;
        for _ in 0..packets {
            driver.send(Direction::Down, probe(37));
        }
        driver.run_until(400 * SECOND);
        let counts = driver.hop.counts(Direction::Down);
        let expected = f64::from(packets) * p.powi(transmissions as i32);
        let deviation = expected.sqrt();
        assert!((counts.lost_packets as f64 - expected).abs() < 5.0 * deviation, "{counts:?} for {expected}");
        assert!(driver.left.windows(2).all(|pair| pair[0].probe.number < pair[1].probe.number));
        // The last PDU may be lost with nothing behind it to tell; all else is settled.
        assert!(counts.offered_packets - counts.delivered_packets - counts.lost_packets <= 1);
    }
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
        "window_pdus is 2048, but must be from 1 to 2047"
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
