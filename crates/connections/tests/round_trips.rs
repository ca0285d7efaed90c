//! Round-trip samples: which acknowledgements give one, and of what.

use crate::transcript::*;
use pepscope_wire::segment::{Segment, TcpOptions};

fn samples(segments: &[Segment<'static>]) -> Vec<i64> {
    let (connections, _) = after_handshake(segments);
    columns(&connections).round_trip_time_ns[3..].iter().map(|&time_ns| time_ns / 1000).collect()
}

#[test]
fn an_acknowledgement_samples_the_last_segment_it_covers() {
    let taken = samples(&[
        up(30_000, ACK, 0, 0, 100),
        up(31_000, ACK, 100, 0, 100),
        up(32_000, ACK, 200, 0, 100),
        down(50_000, ACK, 0, 200, 0),
        down(51_000, ACK, 0, 200, 0),
        down(60_000, ACK, 0, 250, 0),
        down(70_000, ACK, 0, 300, 0),
    ]);
    assert_eq!(taken, [0, 0, 0, 19_000, 0, 0, 38_000]);
}

#[test]
fn both_directions_are_sampled_and_summed_up() {
    let (connections, _) = after_handshake(&[
        up(30_000, ACK, 0, 0, 100),
        down(50_000, ACK, 0, 100, 500),
        up(51_000, ACK, 100, 500, 100),
        down(81_000, ACK, 500, 200, 0),
    ]);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    let (up, down) = (summary.up, summary.down);
    assert_eq!((up.round_trip_time_samples, down.round_trip_time_samples), (2, 1));
    assert_eq!((up.round_trip_time_min_ns, up.round_trip_time_max_ns), (Some(20_000_000), Some(30_000_000)));
    assert_eq!((up.round_trip_time_mean_ns, down.round_trip_time_mean_ns), (Some(25_000_000.0), Some(1_000_000.0)));
}

#[test]
fn karn_takes_no_sample_across_a_retransmission() {
    let taken = samples(&[
        up(30_000, ACK, 0, 0, 100),
        up(31_000, ACK, 100, 0, 100),
        up(90_000, ACK, 0, 0, 100),
        up(91_000, ACK, 200, 0, 100),
        down(110_000, ACK, 0, 200, 0),
        down(111_000, ACK, 0, 300, 0),
    ]);
    assert_eq!(taken, [0, 0, 0, 0, 0, 20_000]);
}

#[test]
fn the_echo_of_the_first_copy_saves_its_sample() {
    let exchange = |echo: u32| {
        samples(&[
            timestamps(up(30_000, ACK, 0, 0, 100), 30, 1),
            timestamps(up(90_000, ACK, 0, 0, 100), 90, 1),
            timestamps(down(95_000, ACK, 0, 100, 0), 5, echo),
        ])[2]
    };
    assert_eq!(exchange(30), 65_000, "the retransmission was needless");
    assert_eq!(exchange(90), 0, "a delayed acknowledgement echoes the later copy as well");
}

#[test]
fn bytes_that_were_not_captured_give_no_sample() {
    let taken = samples(&[
        up(30_000, ACK, 0, 0, 100),
        up(31_000, ACK, 200, 0, 100),
        down(50_000, ACK, 0, 200, 0),
        down(51_000, ACK, 0, 300, 0),
        up(60_000, ACK, 300, 0, 100),
        down(95_000, ACK, 0, 500, 0),
    ]);
    assert_eq!(taken, [0, 0, 0, 20_000, 0, 0]);
}

#[test]
fn a_segment_that_came_late_gives_no_sample_to_the_one_before() {
    let taken = samples(&[
        up(30_000, ACK, 0, 0, 100),
        up(30_000, ACK, 200, 0, 100),
        up(45_000, ACK, 100, 0, 100),
        down(60_000, ACK, 0, 200, 0),
    ]);
    assert_eq!(taken, [0, 0, 0, 0]);
}

#[test]
fn a_fin_behind_data_and_a_part_of_the_next_segment_are_acknowledged_with_it() {
    let taken = samples(&[
        up(30_000, ACK, 0, 0, 100),
        up(30_000, ACK, 100, 0, 100),
        down(50_000, ACK, 0, 150, 0),
        up(51_000, FIN, 200, 0, 0),
        down(71_000, ACK, 0, 201, 0),
    ]);
    assert_eq!(taken, [0, 0, 20_000, 0, 41_000]);
}

#[test]
fn what_waited_for_late_bytes_gives_no_sample() {
    let taken = samples(&[
        down(30_000, ACK, 100, 0, 100),
        down(70_000, ACK, 0, 0, 100),
        up(70_100, ACK, 0, 200, 0),
        down(71_000, ACK, 200, 0, 100),
        up(71_500, ACK, 0, 300, 0),
    ]);
    assert_eq!(taken, [0, 0, 0, 0, 500]);
}

#[test]
fn a_clock_that_is_set_back_gives_no_sample() {
    assert_eq!(samples(&[up(30_000, ACK, 0, 0, 100), down(29_000, ACK, 0, 100, 0)]), [0, 0]);
}

#[test]
fn selective_acknowledgements_are_kept_as_offsets() {
    let mut options = TcpOptions { sack_count: 2, ..TcpOptions::default() };
    options.sack_blocks[0] = (wire(NUMBERS.client, 300), wire(NUMBERS.client, 400));
    options.sack_blocks[1] = (wire(NUMBERS.client, 200), wire(NUMBERS.client, 250));
    let (connections, _) =
        after_handshake(&[up(30_000, ACK, 0, 0, 400), Segment { options, ..down(50_000, ACK, 0, 100, 0) }]);
    let blocks: Vec<_> =
        columns(&connections).sack_blocks_of(0).iter().map(|block| (block.packet, block.left, block.right)).collect();
    assert_eq!(blocks, [(4, 300, 400), (4, 200, 250)]);
}
