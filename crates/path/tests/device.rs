//! Packets through a device: what is not set takes no time, order is kept, pauses count in both directions.

use crate::probe::{Driver, Probe};
use pepscope_path::{
    Cooling, Device, DeviceSettings, Direction, Nanoseconds, ProcessingTime, MICROSECOND, MILLISECOND,
};
use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

fn settings(spread: f64) -> DeviceSettings {
    DeviceSettings {
        down: None,
        up: Some(ProcessingTime::log_normal(2e3, 5e3, spread)),
        apart: ProcessingTime::log_normal(0.0, 0.0, 0.0),
        interrupted_share: 0.0,
        interruption: ProcessingTime::log_normal(1e6, 1e6, 0.0),
        cold: 10.0,
        cooling: Cooling { full_ns: 1e6, exponent: 0.5 },
    }
}

fn device(seed: u64, spread: f64) -> Driver<Device<Probe>> {
    Driver::new(Device::new(&settings(spread), seed, "device"))
}

#[test]
fn a_share_of_packets_waits_for_something_else() {
    let settings = DeviceSettings { interrupted_share: 0.1, ..settings(0.5) };
    let mut driver = Driver::new(Device::new(&settings, 1, "device"));
    for number in 0..2000 {
        driver.run_until(number * 10 * MILLISECOND);
        driver.send(Direction::Up, Probe { bytes: 100, ..Probe::default() });
    }
    driver.run_to_the_end();
    let waited = delays(&driver).iter().filter(|delay| **delay == MILLISECOND).count();
    // Standard deviation: sqrt(2000 * 0.1 * 0.9) = 13.4; four of them are allowed.
    assert!(waited.abs_diff(200) < 54, "{waited}");
}

fn delays(driver: &Driver<Device<Probe>>) -> Vec<Nanoseconds> {
    driver.left.iter().map(|left| left.at_ns - left.probe.sent_ns).collect()
}

#[test]
fn a_direction_without_a_time_is_left_alone() {
    let mut driver = device(1, 0.5);
    for number in 0..20 {
        driver.run_until(number * MILLISECOND);
        driver.send(Direction::Down, Probe { bytes: 100, ..Probe::default() });
    }
    driver.run_to_the_end();
    assert_eq!(delays(&driver), [0; 20]);
}

#[test]
fn packets_after_a_pause_take_longer_whichever_way_the_last_one_went() {
    let mut driver = device(1, 0.0);
    let at = |number: u64| number * 10 * MILLISECOND;
    driver.run_until(at(1));
    driver.send(Direction::Up, Probe { bytes: 100, ..Probe::default() });
    driver.run_until(at(2));
    driver.send(Direction::Down, Probe { bytes: 100, ..Probe::default() });
    driver.run_until(at(2) + 10 * MICROSECOND);
    driver.send(Direction::Up, Probe { bytes: 100, ..Probe::default() });
    driver.run_to_the_end();
    // After 10 us of 1 ms the factor is 1 + 9 * sqrt(0.01).
    assert_eq!(delays(&driver), [50_000, 0, 9_500]);
}

#[test]
fn packets_that_waited_leave_apart() {
    let settings = DeviceSettings { apart: ProcessingTime::log_normal(700.0, 700.0, 0.0), ..settings(0.0) };
    let mut driver = Driver::new(Device::new(&settings, 1, "device"));
    for _ in 0..3 {
        driver.send(Direction::Up, Probe { bytes: 100, ..Probe::default() });
    }
    driver.run_to_the_end();
    assert_eq!(delays(&driver), [50_000, 50_700, 51_400]);
}

proptest! {
    #[test]
    fn order_and_number_of_packets_stay(seed in 0..1000_u64, gaps in prop::collection::vec(0..20_000_u64, 1..50)) {
        let mut driver = device(seed, 1.0);
        let mut now = 0;
        for gap in &gaps {
            now += gap;
            driver.run_until(now);
            driver.send(Direction::Up, Probe { bytes: 100, ..Probe::default() });
        }
        driver.run_to_the_end();
        let sent: Vec<_> = driver.left.iter().map(|left| left.probe.sent_ns).collect();
        prop_assert_eq!(sent.len(), gaps.len());
        prop_assert!(sent.is_sorted());
        prop_assert!(delays(&driver).iter().all(|delay| *delay >= 2_000));
    }
}
