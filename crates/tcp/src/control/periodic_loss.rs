//! Mean windows under periodic loss, for which there are closed forms.

use pepscope_path::{LineSettings, LossSettings, Wired, WiredSettings, MILLISECOND, NEVER, SECOND};

use super::{kind, ControlKind, RENO};
use crate::applications::script::Script;
use crate::packets::segment::ContentId;
use crate::settings::Settings;
use crate::test_path::TestPath;

const ROUND_TRIP_S: f64 = 0.1;

/// Segments a round trip over `duration_s` after `warm_up_s`, where each packet number that is a multiple of `period` is
/// lost on a path of 100 ms that never queues. `guess` is where slow start ends.
fn mean_window(control: ControlKind, period: u64, guess: u64, warm_up_s: u64, duration_s: u64) -> f64 {
    let numbers = (1..1_000).map(|number| number * period).collect();
    let delay_ns = 50 * MILLISECOND;
    let down = LineSettings { delay_ns, loss: LossSettings::Listed { numbers }, ..LineSettings::default() };
    let up = LineSettings { delay_ns, ..LineSettings::default() };
    let link = Wired::new(&WiredSettings { down, up }, 1, "link").expect("a valid link");
    let mut path = TestPath::new(vec![Box::new(link)]);
    let settings = Settings {
        control,
        delayed_acknowledgement: None,
        initial_slow_start_threshold_bytes: guess * 1448,
        ..Settings::default()
    };
    path.add(0, 0, [settings; 2], [Script::sender_for(ContentId(1), NEVER), Script::receiver()]);
    path.run_until(warm_up_s * SECOND);
    let before = path.mobile_result(0).application.read_bytes;
    path.run_until((warm_up_s + duration_s) * SECOND);
    let segments = (path.mobile_result(0).application.read_bytes - before) as f64 / 1448.0;
    assert_eq!(path.server_result(0).statistics.timeouts, 0);
    segments * ROUND_TRIP_S / duration_s as f64
}

#[test]
fn reno_has_the_mean_window_of_mathis() {
    // sqrt(3 / (2 p)) (Mathis, Semke, Mahdavi and Ott 1997) with p = 1 / 1000; a sawtooth of 1000 segments takes 2.6 s.
    let expected = (1.5f64 * 1_000.0).sqrt();
    let window = mean_window(RENO, 1_000, 38, 20, 200);
    assert!((window / expected - 1.0).abs() < 0.05, "{window} instead of {expected}");
}

#[test]
fn cubic_has_the_mean_window_of_its_equation() {
    // RFC 9438, equation 6: (C (3 + beta) / (4 (1 - beta)))^(1/4) RTT^(3/4) / p^(3/4), with p = 1 / 10000.
    let expected = (0.4f64 * 3.7 / 1.2).powf(0.25) * ROUND_TRIP_S.powf(0.75) * 10_000f64.powf(0.75);
    let window = mean_window(kind("cubic-without-hystart"), 10_000, 180, 30, 100);
    assert!((window / expected - 1.0).abs() < 0.05, "{window} instead of {expected}");
}

#[test]
fn cubic_has_the_window_of_reno_where_it_is_friendly() {
    // At p = 1 / 1000 equation 6 gives 33 segments, and Reno has 39.
    let expected = (1.5f64 * 1_000.0).sqrt();
    let window = mean_window(kind("cubic-without-hystart"), 1_000, 38, 20, 200);
    assert!((window / expected - 1.0).abs() < 0.1, "{window} instead of {expected}");
}
