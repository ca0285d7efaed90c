//! Header prediction changes nothing: with and without it the same packets leave at the same times.

use pepscope_path::{Direction, Nanoseconds, SECOND};
use proptest::prelude::{any, prop_assert_eq, proptest, Just, ProptestConfig};
use proptest::prop_oneof;

use super::super::transfers::{ends, read_by, readers};
use super::super::FlowResult;
use crate::applications::script::Script;
use crate::packets::packet::Packet;
use crate::packets::segment::ContentId;
use crate::settings::Settings;
use crate::test_path::{wired, TestPath};

type Log = Vec<(Nanoseconds, usize, Direction, Packet)>;

/// What passed, and what each end says of it in the end.
fn run(mut path: TestPath) -> (Log, Vec<FlowResult>) {
    path.log = Some(Vec::new());
    path.run_until(600 * SECOND);
    let results = path.server.flows().chain(path.mobile.flows()).collect();
    (path.log.unwrap_or_default(), results)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_same_packets_leave_without_prediction(
        ends in [ends(), ends()],
        large in any::<bool>(),
        readers in [readers(), readers()],
        bytes in (1u64..400_000, prop_oneof![Just(0u64), 1u64..80_000]),
        line in (100_000u64..20_000_000, 0u64..100, 2u32..60, prop_oneof![Just(0.0), Just(0.005), Just(0.05)]),
    ) {
        let (rate_bit_s, delay_ms, queue_packets, loss) = line;
        let (down_bytes, up_bytes) = bytes;
        let ends = ends.map(|end| if large {
            Settings { receive_buffer_bytes: 1 << 20, send_buffer_bytes: 1 << 20, window_scale: Some(7), ..end }
        } else {
            end
        });
        let make = |header_prediction| {
            let ends = ends.map(|end| Settings { header_prediction, ..end });
            let mut path = TestPath::new(vec![wired(rate_bit_s, delay_ms, queue_packets, loss)]);
            let scripts = [
                read_by(Script::exchanger(ContentId(1), down_bytes, up_bytes), readers[0]),
                read_by(Script::exchanger(ContentId(2), up_bytes, down_bytes), readers[1]),
            ];
            path.add(0, 0, ends, scripts);
            path.add(1, SECOND / 3, ends, [Script::sender_for(ContentId(3), SECOND), Script::receiver()]);
            path
        };
        let (predicted, results) = run(make(true));
        let (plain, plain_results) = run(make(false));
        prop_assert_eq!(predicted.len(), plain.len());
        for (one, other) in predicted.iter().zip(&plain) {
            prop_assert_eq!(one, other);
        }
        prop_assert_eq!(results, plain_results);
    }
}
