//! Token buckets: the bound of what passes, an oracle in whole numbers, and marks.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod probe;

use pepscope_path::{Direction, Hop, Policer, PolicerLineSettings, PolicerSettings, MILLISECOND, SECOND};
use probe::{assert_settled, Driver, Probe};
use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

fn hop(rate_bit_s: Option<u64>, burst_bytes: u32, marks: bool) -> Driver<Policer<Probe>> {
    let line = PolicerLineSettings { rate_bit_s, burst_bytes, marks };
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
    let line = PolicerLineSettings { rate_bit_s: None, burst_bytes: 0, marks: false };
    let refused = Policer::<Probe>::new(&PolicerSettings { down: line, up: line }).unwrap_err();
    assert_eq!(refused.to_string(), "burst_bytes must be at least 1, got 0");
}
