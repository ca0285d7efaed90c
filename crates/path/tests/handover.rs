//! Handovers: transcripts, the shares of an alternating renewal process, and what holds for any traffic.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use crate::probe::{assert_settled, Driver, Probe};
use pepscope_path::{Direction, HandoverSettings, Handovers, Hop, Nanoseconds, MILLISECOND, NEVER, SECOND};
use proptest::prelude::{prop, prop_assert, prop_assert_eq, prop_oneof, proptest, Just};

/// Nothing moves from 1 s to 1.2 s, from 2.2 s to 2.4 s, and so on.
const FIXED: HandoverSettings =
    HandoverSettings { interval_ns: SECOND, is_random: false, interruption_ns: 200 * MILLISECOND, forwards: true };

fn driver(settings: HandoverSettings) -> Driver<Handovers<Probe>> {
    Driver::new(Handovers::new(settings, 4, "handover").unwrap())
}

fn send_at(driver: &mut Driver<Handovers<Probe>>, at_ms: u64, direction: Direction) {
    driver.run_until(at_ms * MILLISECOND);
    driver.send(direction, Probe { bytes: 100, ..Probe::default() });
}

/// Direction, and milliseconds in and out, of the packets that left.
fn left_ms(driver: &Driver<Handovers<Probe>>) -> Vec<(Direction, Nanoseconds, Nanoseconds)> {
    let in_ms = |ns: Nanoseconds| ns / MILLISECOND;
    driver.left.iter().map(|left| (left.direction, in_ms(left.probe.sent_ns), in_ms(left.at_ns))).collect()
}

#[test]
fn packets_wait_for_the_end_of_a_handover_in_their_order() {
    use Direction::{Down, Up};
    let mut driver = driver(FIXED);
    for (at_ms, direction) in [(999, Down), (1_000, Down), (1_100, Up), (1_199, Down), (1_200, Up), (7_290, Down)] {
        send_at(&mut driver, at_ms, direction);
    }
    driver.run_to_the_end();
    let expected = [
        (Down, 999, 999),
        (Down, 1_000, 1_200),
        (Up, 1_100, 1_200),
        (Down, 1_199, 1_200),
        (Up, 1_200, 1_200),
        // The sixth handover lasts from 7 s to 7.2 s.
        (Down, 7_290, 7_290),
    ];
    assert_eq!(left_ms(&driver), expected);
}

#[test]
fn without_forwarding_what_comes_down_is_lost_and_what_is_sent_up_waits() {
    let mut driver = driver(HandoverSettings { forwards: false, ..FIXED });
    for (at_ms, direction) in [(1_050, Direction::Down), (1_100, Direction::Up), (1_300, Direction::Down)] {
        send_at(&mut driver, at_ms, direction);
    }
    driver.run_to_the_end();
    assert_eq!(left_ms(&driver), [(Direction::Up, 1_100, 1_200), (Direction::Down, 1_300, 1_300)]);
    assert_eq!(driver.hop.counts(Direction::Down).lost_packets, 1);
    assert_settled(driver.hop.counts(Direction::Down), 1, 100);
    assert_settled(driver.hop.counts(Direction::Up), 1, 100);
}

#[test]
fn random_handovers_take_their_share_of_the_time() {
    let mut driver = driver(HandoverSettings { is_random: true, ..FIXED });
    for number in 0..1_000_000 {
        send_at(&mut driver, 10 * number, Direction::Down);
    }
    driver.run_to_the_end();
    let waits: Vec<_> = left_ms(&driver).iter().map(|(_, sent, left)| left - sent).filter(|wait| *wait > 0).collect();
    // 200 ms of each 1,200 ms on average, some 8,333 handovers; the share's standard error is about
    // 0.2 * 1 * sqrt(8,333) / (8,333 * 1.2^2) = 0.0015, four of which are allowed.
    let share = waits.len() as f64 / 1e6;
    assert!((share - 1.0 / 6.0).abs() < 0.006, "{share}");
    let mean_ms = waits.iter().sum::<u64>() as f64 / waits.len() as f64;
    assert!((mean_ms - 100.0).abs() < 6.0, "{mean_ms}");
    assert!(waits.iter().all(|wait| *wait <= 200));
}

#[test]
fn handovers_without_time_between_them_are_refused() {
    let refused = Handovers::<Probe>::new(HandoverSettings { interval_ns: 0, ..FIXED }, 1, "x").unwrap_err();
    assert_eq!(refused.to_string(), "interval_s must be at least 0.001, got 0");
}

proptest! {
    #[test]
    fn packets_keep_their_order_and_leave_together_after_a_handover(
        is_random in proptest::bool::ANY,
        interruption_ms in 0u64..300,
        drawn in prop::collection::vec((0u64..300, prop_oneof![Just(Direction::Down), Just(Direction::Up)]), 1..100),
    ) {
        let settings =
            HandoverSettings { is_random, interruption_ns: interruption_ms * MILLISECOND, ..FIXED };
        let mut driver = driver(settings);
        let mut at_ms = 0;
        for &(gap_ms, direction) in &drawn {
            at_ms += gap_ms;
            send_at(&mut driver, at_ms, direction);
        }
        driver.run_to_the_end();
        prop_assert_eq!(driver.hop.poll_timeout(), NEVER);
        prop_assert!(driver.left.iter().map(|left| left.probe.number).eq(0..drawn.len() as u64));
        for pair in driver.left.windows(2) {
            let waited = pair[0].at_ns > pair[0].probe.sent_ns;
            prop_assert!(pair[0].at_ns - pair[0].probe.sent_ns <= settings.interruption_ns);
            // Who comes while another waits leaves with it.
            if waited && pair[1].probe.sent_ns < pair[0].at_ns {
                prop_assert_eq!(pair[1].at_ns, pair[0].at_ns);
            }
        }
    }
}
