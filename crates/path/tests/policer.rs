//! Token buckets: the bound of what passes, oracles in whole numbers, marks, and whose bucket it is.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use crate::probe::{assert_settled, Driver, Probe};
use pepscope_path::{Direction, Hop, Policed, Policer, PolicerLineSettings, PolicerSettings, MILLISECOND, SECOND};
use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

fn hop(rate_bit_s: Option<u64>, burst_bytes: u32, marks: bool) -> Driver<Policer<Probe>> {
    let line = PolicerLineSettings { rate_bit_s, burst_bytes, marks, policed: Policed::Together };
    Driver::new(Policer::new(&PolicerSettings { down: line, up: line }).unwrap())
}

proptest! {
    #[test]
    fn no_span_of_time_lets_more_pass_than_burst_and_rate(
        rate_bit_s in 1_000u64..100_000_000,
        burst_bytes in 40u32..20_000,
        drawn in prop::collection::vec((0u64..2 * MILLISECOND, 40u32..1_500), 1..120),
    ) {
        let mut driver = hop(Some(rate_bit_s), burst_bytes, false);
        // The bucket as a number of bits times 1e9, counted up from its beginning.
        let full = i128::from(burst_bytes) * 8_000_000_000;
        let (mut tokens, mut at_ns) = (full, 0);
        for &(gap, bytes) in &drawn {
            driver.run_until(at_ns + gap);
            at_ns += gap;
            tokens = full.min(tokens + i128::from(gap) * i128::from(rate_bit_s));
            let before = driver.left.len();
            driver.send(Direction::Down, Probe { bytes, ..Probe::default() });
            let passes = tokens >= i128::from(bytes) * 8_000_000_000;
            prop_assert_eq!(driver.left.len() > before, passes);
            tokens -= if passes { i128::from(bytes) * 8_000_000_000 } else { 0 };
        }
        for (place, first) in driver.left.iter().enumerate() {
            let mut passed = 0;
            for last in &driver.left[place..] {
                passed += u128::from(last.probe.bytes) * 8_000_000_000;
                let span = u128::from(last.at_ns - first.at_ns) * u128::from(rate_bit_s);
                prop_assert!(passed <= u128::from(burst_bytes) * 8_000_000_000 + span);
            }
            prop_assert_eq!(first.at_ns, first.probe.sent_ns);
        }
        let bytes = driver.left.iter().map(|one| u64::from(one.probe.bytes)).sum();
        assert_settled(driver.hop.counts(Direction::Down), driver.left.len() as u64, bytes);
    }
}

proptest! {
    /// The virtual scheduling algorithm (ITU-T I.371, annex A, here for packets of any length) has no bucket: a packet
    /// conforms if all that has passed would be sent, at the rate, no more than burst / rate after now.
    #[test]
    fn what_passes_is_what_virtual_scheduling_lets_pass(
        rate_bit_s in 1u64..1_000_000_000_000,
        burst_bytes in 1u32..5_000,
        // How many bytes the rate carries between two packets, so that some of them pass at any rate.
        drawn in prop::collection::vec((0u64..2_000, 1u32..2_000), 1..200),
    ) {
        let mut driver = hop(Some(rate_bit_s), burst_bytes, false);
        let parts = |bytes: u32| u128::from(bytes) * 8_000_000_000;
        let (mut theoretical, mut expected) = (0u128, Vec::new());
        for (number, &(gap_bytes, bytes)) in drawn.iter().enumerate() {
            driver.run_until(driver.now + gap_bytes * 8_000_000_000 / rate_bit_s);
            driver.send(Direction::Down, Probe { bytes, ..Probe::default() });
            let present = u128::from(driver.now) * u128::from(rate_bit_s);
            let ends = theoretical.max(present) + parts(bytes);
            if ends <= present + parts(burst_bytes) {
                theoretical = ends;
                expected.push(number as u64);
            }
        }
        let passed: Vec<u64> = driver.left.iter().map(|left| left.probe.number).collect();
        prop_assert_eq!(passed, expected);
    }
}

/// A bucket of 100 bytes that gains one a millisecond.
fn hop_for(policed: Policed) -> Driver<Policer<Probe>> {
    let line = PolicerLineSettings { rate_bit_s: Some(8_000), burst_bytes: 100, marks: false, policed };
    Driver::new(Policer::new(&PolicerSettings { down: line, up: line }).unwrap())
}

#[test]
fn connections_have_buckets_of_their_own_where_asked() {
    let passing = |policed: Policed| {
        let mut driver = hop_for(policed);
        for flow in [1, 1, 2, 3] {
            driver.send(Direction::Down, Probe { bytes: 60, flow, ..Probe::default() });
        }
        driver.left.iter().map(|left| left.probe.number).collect::<Vec<_>>()
    };
    assert_eq!(passing(Policed::Together), [0]);
    assert_eq!(passing(Policed::EachMobile), [0], "all are one mobile's");
    assert_eq!(passing(Policed::EachConnection), [0, 2, 3]);
}

#[test]
fn of_many_connections_only_those_with_full_buckets_are_forgotten() {
    let mut driver = hop_for(Policed::EachConnection);
    for flow in 0..5_000 {
        driver.run_until(flow * 10 * MILLISECOND);
        driver.send(Direction::Down, Probe { bytes: 60, flow, ..Probe::default() });
        // The one before has regained 10 of 60 bytes; were it forgotten, its bucket would be full.
        let before = flow.saturating_sub(1);
        driver.send(Direction::Down, Probe { bytes: 60, flow: before, ..Probe::default() });
    }
    assert!(driver.left.iter().map(|left| left.probe.flow).eq(0..5_000));
}

#[test]
fn of_twice_the_rate_a_half_passes() {
    let mut driver = hop(Some(8_000_000), 3_000, false);
    while driver.now < 10 * SECOND {
        driver.send(Direction::Down, Probe { bytes: 1_000, ..Probe::default() });
        driver.run_until(driver.now + MILLISECOND / 2);
    }
    let passed = driver.left.len() as i64;
    assert!((passed - 10_000).abs() <= 3, "{passed}");
}

#[test]
fn marks_let_pass_and_no_rate_lets_everything_pass() {
    let capable = Probe { bytes: 1_000, understands_marks: true, ..Probe::default() };
    let mut driver = hop(Some(8), 1_000, true);
    driver.send(Direction::Up, capable);
    driver.send(Direction::Up, capable);
    driver.send(Direction::Up, Probe { understands_marks: false, ..capable });
    let counts = driver.hop.counts(Direction::Up);
    assert_eq!((counts.delivered_packets, counts.marked_packets, counts.overflowed_packets), (2, 1, 1));
    assert_eq!(driver.left.iter().map(|one| one.probe.marked).collect::<Vec<_>>(), [false, true]);
    let mut open = hop(None, 1, false);
    open.send(Direction::Up, capable);
    assert_eq!(open.left.len(), 1);
    let line = PolicerLineSettings { rate_bit_s: None, burst_bytes: 0, marks: false, policed: Policed::Together };
    let refused = Policer::<Probe>::new(&PolicerSettings { down: line, up: line }).unwrap_err();
    assert_eq!(refused.to_string(), "burst_bytes must be at least 1, got 0");
}
