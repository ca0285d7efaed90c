//! Jitter, reordering and duplication: transcripts, closed forms, and an oracle that sorts.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use crate::probe::{Driver, Probe};
use pepscope_path::{
    Direction, Hop, ImpairedLineSettings, Impairments, ImpairmentsSettings, Nanoseconds, MILLISECOND, NEVER,
};
use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest, Strategy};

fn hop(down: ImpairedLineSettings) -> Driver<Impairments<Probe>> {
    let settings = ImpairmentsSettings { down, up: ImpairedLineSettings::default() };
    Driver::new(Impairments::new(&settings, 5, "impairments").unwrap())
}

/// `count` packets, one each `apart`.
fn send(driver: &mut Driver<Impairments<Probe>>, count: u64, apart: Nanoseconds) {
    for number in 0..count {
        driver.run_until(number * apart);
        driver.send(Direction::Down, Probe { bytes: 100, ..Probe::default() });
    }
    driver.run_to_the_end();
}

fn delays(driver: &Driver<Impairments<Probe>>) -> Vec<Nanoseconds> {
    driver.left.iter().map(|left| left.at_ns - left.probe.sent_ns).collect()
}

#[test]
fn nothing_set_is_a_delay() {
    let mut driver = hop(ImpairedLineSettings { delay_ns: 7, ..ImpairedLineSettings::default() });
    send(&mut driver, 3, 2);
    assert_eq!(driver.transcript(), [(0, 7), (1, 9), (2, 11)]);
}

#[test]
fn jitter_of_distant_packets_is_uniform() {
    let settings = ImpairedLineSettings { delay_ns: MILLISECOND, jitter_ns: MILLISECOND, ..Default::default() };
    let mut driver = hop(settings);
    send(&mut driver, 20_000, 10 * MILLISECOND);
    let extra: Vec<f64> = delays(&driver).iter().map(|&ns| (ns - MILLISECOND) as f64 / MILLISECOND as f64).collect();
    let count = extra.len() as f64;
    let mean = extra.iter().sum::<f64>() / count;
    let variance = extra.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count;
    // Standard errors: sqrt(1/12 / n) = 0.0020 and sqrt(1/180 / n) = 0.0005; four of each are allowed.
    assert!((mean - 0.5).abs() < 0.0082, "{mean}");
    assert!((variance - 1.0 / 12.0).abs() < 0.0022, "{variance}");
    assert!(extra.iter().all(|one| (0.0..1.0).contains(one)));
}

#[test]
fn shares_of_held_back_and_copied_packets_are_those_asked_for() {
    let settings =
        ImpairedLineSettings { reordered: 0.2, reorder_ns: MILLISECOND, duplicated: 0.1, ..Default::default() };
    let mut driver = hop(settings);
    send(&mut driver, 20_000, 10 * MILLISECOND);
    let counts = driver.hop.counts(Direction::Down);
    let copied = counts.duplicated_packets as f64 / 20_000.0;
    assert!((copied - 0.1).abs() < 4.0 * (0.09f64 / 20_000.0).sqrt(), "{copied}");
    assert_eq!(counts.delivered_packets, 20_000 + counts.duplicated_packets);
    assert_eq!(counts.delivered_bytes, 100 * counts.delivered_packets);
    let held = delays(&driver).iter().filter(|&&ns| ns == MILLISECOND).count() as f64 / driver.left.len() as f64;
    assert!((held - 0.2).abs() < 4.0 * (0.16f64 / 22_000.0).sqrt(), "{held}");
    assert!(delays(&driver).iter().all(|&ns| ns == 0 || ns == MILLISECOND));
}

#[test]
fn a_packet_held_back_is_overtaken_by_as_many_as_leave_meanwhile() {
    let settings = ImpairedLineSettings { reordered: 0.1, reorder_ns: 4 * MILLISECOND, ..Default::default() };
    let mut driver = hop(settings);
    send(&mut driver, 2_000, MILLISECOND);
    let numbers: Vec<u64> = driver.left.iter().map(|left| left.probe.number).collect();
    let mut overtaken = 0;
    for (place, number) in numbers.iter().enumerate() {
        let earlier = numbers[..place].iter().filter(|other| *other > number).count();
        // Four packets enter while it is held; those of them that are held too do not overtake it, and the fourth enters
        // when it leaves.
        assert!(earlier <= 3, "packet {number} was overtaken by {earlier}");
        overtaken += usize::from(earlier > 0);
    }
    assert!(overtaken > 100, "{overtaken}");
}

#[test]
fn impossible_settings_are_refused_in_a_sentence() {
    let refused = |down: ImpairedLineSettings| {
        let settings = ImpairmentsSettings { down, ..Default::default() };
        Impairments::<Probe>::new(&settings, 1, "x").unwrap_err().to_string()
    };
    let fields = ImpairedLineSettings::default();
    assert_eq!(
        refused(ImpairedLineSettings { reordered: 0.1, ..fields }),
        "reorder_s must be above 0 where packets are reordered, got 0"
    );
    assert_eq!(
        refused(ImpairedLineSettings { duplicated: 1.5, ..fields }),
        "duplicated must be a probability from 0 to 1, got 1.5"
    );
    assert!(refused(ImpairedLineSettings { reordered: f64::NAN, ..fields }).starts_with("reordered must be"));
}

fn any_line() -> impl Strategy<Value = ImpairedLineSettings> {
    (0..50u64, 0..50u64, 0.0..1.0f64, 1..50u64, 0.0..1.0f64).prop_map(
        |(delay_ns, jitter_ns, reordered, reorder_ns, duplicated)| ImpairedLineSettings {
            delay_ns,
            jitter_ns,
            reordered,
            reorder_ns,
            duplicated,
        },
    )
}

proptest! {
    #[test]
    fn every_packet_leaves_within_its_bounds_and_order_holds_without_reordering(
        line in any_line(), gaps in prop::collection::vec(0..30u64, 1..80), keeps_order in proptest::bool::ANY,
    ) {
        let line = ImpairedLineSettings { reordered: if keeps_order { 0.0 } else { line.reordered }, ..line };
        let mut driver = hop(line);
        for gap in &gaps {
            driver.run_until(driver.now + gap);
            driver.send(Direction::Down, Probe { bytes: 100, ..Probe::default() });
        }
        driver.run_to_the_end();
        prop_assert_eq!(driver.hop.poll_timeout(), NEVER);
        for number in 0..gaps.len() as u64 {
            let copies = driver.left.iter().filter(|left| left.probe.number == number).count();
            prop_assert!((1..=2).contains(&copies));
        }
        let held_ns = if keeps_order { 0 } else { line.reorder_ns };
        for delay in delays(&driver) {
            prop_assert!(delay >= line.delay_ns);
            prop_assert!(delay <= line.delay_ns + line.jitter_ns + held_ns);
        }
        if keeps_order {
            prop_assert!(driver.left.windows(2).all(|pair| pair[0].probe.number <= pair[1].probe.number));
        }
    }
}
