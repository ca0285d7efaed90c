//! The dedicated channel beside the theory in docs/models/umts_dch.md.
#![allow(clippy::unwrap_used)]

use crate::dedicated_channel::{bearer, probe, settings, DELAY_NS, INTERVAL_NS, MS, PAYLOAD_BYTES};
use pepscope_path::umts::{PollSettings, RadioLinkControlSettings};
use pepscope_path::{Direction, Hop, Random, SECOND};

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
        // The last PDU may be lost with nothing behind it to reveal that; all else is settled.
        assert!(counts.offered_packets - counts.delivered_packets - counts.lost_packets <= 1);
    }
}
