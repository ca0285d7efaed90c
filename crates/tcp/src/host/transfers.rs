//! Whatever the control, the reader, the settings and the path: a transfer that finishes is the one that was asked for.

use pepscope_path::{MILLISECOND, SECOND};
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest, Just, ProptestConfig, Strategy};
use proptest::{option, prop_oneof, sample};

use super::Outcome;
use crate::applications::script::{Pause, Reading, Script};
use crate::control::ControlKind;
use crate::packets::segment::ContentId;
use crate::settings::{DelayedAcknowledgement, EcnMode, Recovery, RetransmissionSettings, Settings, Stack};
use crate::test_path::{wired, TestPath};

fn controls() -> impl Strategy<Value = ControlKind> {
    sample::select(ControlKind::all().collect::<Vec<_>>())
}

pub(super) fn ends() -> impl Strategy<Value = Settings> {
    let kinds = (
        controls(),
        sample::select(vec![Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Rack]),
        sample::select(vec![EcnMode::Off, EcnMode::Standard, EcnMode::EveryPacket]),
        prop_oneof![Just(RetransmissionSettings::CLASSIC), Just(RetransmissionSettings::default())],
    );
    let sizes = (200u16..1461, 3_000u64..200_000, 3_000u64..200_000, 1u32..12, option::of(0u8..8), any::<u32>());
    let stacks = sample::select(vec![Stack::Ideal, Stack::Linux, Stack::Windows, Stack::Darwin]);
    (kinds, sizes, any::<[bool; 5]>(), stacks).prop_map(|(kinds, sizes, flags, stack)| Settings {
        stack,
        timestamps_offered: flags[4],
        control: kinds.0,
        recovery: kinds.1,
        ecn: kinds.2,
        retransmission: kinds.3,
        maximum_segment_size: sizes.0,
        receive_buffer_bytes: sizes.1,
        send_buffer_bytes: sizes.2,
        initial_window_segments: sizes.3,
        window_scale: sizes.4,
        initial_sequence_number: sizes.5,
        timestamps: flags[0],
        sack: flags[1],
        version_6: flags[2],
        delayed_acknowledgement: flags[3].then(DelayedAcknowledgement::default),
        // Losses come one in twenty: no run of them may end the connection.
        handshake_retries: 40,
        retransmission_retries: 40,
        ..Settings::default()
    })
}

pub(super) fn readers() -> impl Strategy<Value = (Reading, Option<Pause>)> {
    let reading = prop_oneof![
        3 => Just(Reading::AtOnce),
        1 => (20_000u64..1_000_000, 1u64..20_000)
            .prop_map(|(rate_bytes_s, chunk_bytes)| Reading::Paced { rate_bytes_s, chunk_bytes }),
    ];
    let pause = (0u64..500, 1u64..5_000).prop_map(|(start_ms, duration_ms)| Pause {
        start_ns: start_ms * MILLISECOND,
        duration_ns: duration_ms * MILLISECOND,
    });
    (reading, option::weighted(0.3, pause))
}

pub(super) fn read_by(script: Script, (reading, pause): (Reading, Option<Pause>)) -> Script {
    script.reading(reading).pausing(pause.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn both_directions_arrive_whole(
        ends in [ends(), ends()],
        readers in [readers(), readers()],
        bytes in [1u64..200_000, 1u64..50_000],
        line in (100_000u64..20_000_000, 0u64..100, 2u32..60, prop_oneof![Just(0.0), Just(0.05)]),
    ) {
        let (rate_bit_s, delay_ms, queue_packets, loss) = line;
        let mut path = TestPath::new(vec![wired(rate_bit_s, delay_ms, queue_packets, loss)]);
        let [down_bytes, up_bytes] = bytes;
        let scripts = [
            read_by(Script::exchanger(ContentId(1), down_bytes, up_bytes), readers[0]),
            read_by(Script::exchanger(ContentId(2), up_bytes, down_bytes), readers[1]),
        ];
        path.add(0, 0, ends, scripts);
        path.run_until(1_000_000 * SECOND);
        path.assert_intact(0);
        prop_assert_eq!(path.mobile_result(0).application.read_bytes, down_bytes);
        prop_assert_eq!(path.server_result(0).application.read_bytes, up_bytes);
        prop_assert_eq!(path.mobile_result(0).outcome, Outcome::Closed);
        prop_assert_eq!(path.server_result(0).outcome, Outcome::Closed);
    }

    #[test]
    fn what_an_abort_leaves_is_a_beginning_of_what_was_sent(
        ends in [ends(), ends()],
        abort_ms in 1u64..2_000,
        aborts_at_server in any::<bool>(),
    ) {
        let mut path = TestPath::new(vec![wired(2_000_000, 20, 20, 0.0)]);
        let mut scripts = [Script::sender(ContentId(1), 10_000_000), Script::receiver()];
        let aborter = usize::from(!aborts_at_server);
        scripts[aborter] = scripts[aborter].clone().aborting_after(abort_ms * MILLISECOND);
        path.add(0, 0, ends, scripts);
        path.run_until(1_000_000 * SECOND);
        let (server, mobile) = (path.server_result(0), path.mobile_result(0));
        prop_assert!(mobile.application.read_bytes <= server.application.written_bytes);
        let outcomes = [server.outcome, mobile.outcome];
        prop_assert_eq!(outcomes[aborter], Outcome::Aborted);
        prop_assert_eq!(outcomes[1 - aborter], Outcome::Reset);
    }
}
