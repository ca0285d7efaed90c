//! A finished transfer through any rewriter is the transfer that was asked for.

use pepscope_path::{Direction, Hop, MILLISECOND, SECOND};
use proptest::prelude::{any, prop_assert_eq, proptest, Just, ProptestConfig, Strategy};
use proptest::{option, prop_oneof};

use super::{AcknowledgementThinning, Rewriter, RewriterSettings};
use crate::applications::script::Script;
use crate::host::Outcome;
use crate::packets::packet::Packet;
use crate::packets::segment::ContentId;
use crate::settings::Settings;
use crate::test_path::{wired, TestPath};

fn rewriters() -> impl Strategy<Value = RewriterSettings> {
    let thinning = (0u32..6, 0u64..50)
        .prop_map(|(keep_one_of, hold_ms)| AcknowledgementThinning { keep_one_of, hold_ns: hold_ms * MILLISECOND });
    let numbers = (option::of(200u16..2000), option::of(1u32..200_000), 0u8..20, option::of(thinning));
    (numbers, any::<[bool; 6]>()).prop_map(|(numbers, flags)| RewriterSettings {
        maximum_segment_size_bytes: numbers.0,
        window_limit_bytes: numbers.1,
        routers: numbers.2,
        acknowledgement_thinning: numbers.3,
        shifts_sequence_numbers: flags[0],
        shifts_timestamps: flags[1],
        zeroes_ip_identification: flags[2],
        strips_timestamps: flags[3],
        strips_sack: flags[4],
        strips_window_scale: flags[5],
    })
}

fn path(first: RewriterSettings, second: RewriterSettings, loss: f64) -> TestPath {
    let hops: Vec<Box<dyn Hop<Packet>>> = vec![
        Box::new(Rewriter::new(first, 1, "first")),
        wired(10_000_000, 20, 50, loss),
        Box::new(Rewriter::new(second, 1, "second")),
    ];
    TestPath::new(hops)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn both_directions_arrive_whole(
        first in rewriters(),
        second in rewriters(),
        loss in prop_oneof![Just(0.0), Just(0.02)],
        down_bytes in 1u64..300_000,
        up_bytes in 1u64..100_000,
    ) {
        let mut path = path(first, second, loss);
        // Near the end of the sequence space, so that every number wraps on the way.
        let near_the_end = Settings { initial_sequence_number: u32::MAX - 20_000, ..Settings::default() };
        let scripts = [
            Script::exchanger(ContentId(1), down_bytes, up_bytes),
            Script::exchanger(ContentId(2), up_bytes, down_bytes),
        ];
        path.add(0, 0, [near_the_end; 2], scripts);
        path.run_until(50_000 * SECOND);
        prop_assert_eq!(path.server_result(0).outcome, Outcome::Closed);
        prop_assert_eq!(path.mobile_result(0).outcome, Outcome::Closed);
        path.assert_intact(0);
        prop_assert_eq!(path.mobile_result(0).application.read_bytes, down_bytes);
        for direction in [Direction::Down, Direction::Up] {
            let counts = path.hops[0].counts(direction);
            prop_assert_eq!(counts.offered_packets, counts.delivered_packets + counts.lost_packets);
        }
    }
}

#[test]
fn thinning_drops_acknowledgements_and_little_speed() {
    let end_ns = |thinning| {
        let settings = RewriterSettings { acknowledgement_thinning: thinning, ..RewriterSettings::default() };
        let mut path = path(settings, RewriterSettings::default(), 0.0);
        path.add(0, 0, [Settings::default(); 2], [Script::sender(ContentId(1), 5_000_000), Script::receiver()]);
        path.run_until(100 * SECOND);
        path.assert_intact(0);
        let counts = path.hops[0].counts(Direction::Up);
        let share = counts.lost_packets as f64 / counts.offered_packets as f64;
        (path.mobile_result(0).application.last_read_ns.unwrap_or(0), share)
    };
    let (plain_ns, none) = end_ns(None);
    let (thinned_ns, dropped) = end_ns(Some(AcknowledgementThinning { keep_one_of: 4, hold_ns: 10 * MILLISECOND }));
    assert_eq!(none, 0.0);
    assert!((0.5..=0.75).contains(&dropped), "{dropped}");
    assert!(thinned_ns < plain_ns * 11 / 10, "{thinned_ns} {plain_ns}");
}
