//! Files whose packets stand in another order than that of time are read in time, unless their clock was set back.

use crate::transcript::*;
use pepscope_connections::spill::Spill;
use pepscope_connections::{Columns, Connections, Payload, Settings};
use pepscope_wire::segment::Segment;
use proptest::prelude::*;

const SECOND_NS: i64 = 1_000_000_000;

/// Questions of a client and answers of a server 30 ms later, `lost` of which were not captured.
fn dialogue(numbers: Numbers, turns: i64, lost: &[usize]) -> Vec<Segment<'static>> {
    let mut segments = numbers.handshake();
    for turn in 0..turns {
        let (at_us, asked, answered) = (30_000 + 100_000 * turn, 100 * turn, 2_000 * turn);
        segments.push(numbers.up(at_us, ACK, asked, answered, 100));
        segments.push(numbers.down(at_us + 30_000, ACK, answered, asked + 100, 1_000));
        segments.push(numbers.down(at_us + 30_100, ACK, answered + 1_000, asked + 100, 1_000));
        segments.push(numbers.up(at_us + 31_000, ACK, asked + 100, answered + 2_000, 0));
    }
    let end_us = 30_000 + 100_000 * turns;
    segments.push(numbers.up(end_us, FIN, 100 * turns, 2_000 * turns, 0));
    segments.push(numbers.down(end_us + 30_000, FIN, 2_000 * turns, 100 * turns + 1, 0));
    segments.push(numbers.up(end_us + 30_100, ACK, 100 * turns + 1, 2_000 * turns + 1, 0));
    let mut place = 0;
    segments.retain(|_| {
        place += 1;
        !lost.contains(&(place - 1))
    });
    segments
}

/// As the reader takes in a file with these packets.
fn read(segments: &[Segment<'_>]) -> Connections {
    let Ok(mut spill) = Spill::create(None, 1) else { unreachable!() };
    for (frame, segment) in segments.iter().enumerate() {
        assert!(spill.push(&Segment { frame_index: frame as u64, ..*segment }).is_ok());
    }
    let settings = Settings { columns: true, payload: Payload::Sample };
    let Ok(connections) = spill.finish().and_then(|partitions| partitions.analyse(0, settings)) else { unreachable!() };
    connections
}

fn seen(connections: &Connections) -> (Vec<String>, Columns) {
    let summaries = connections.summaries().map(|summary| {
        let summary = pepscope_connections::ConnectionSummary { first_frame: 0, ..summary };
        format!("{summary:?}")
    });
    (summaries.collect(), columns(connections))
}

fn other_ports(segments: Vec<Segment<'static>>) -> impl Iterator<Item = Segment<'static>> {
    segments.into_iter().map(|segment| Segment {
        source_port: segment.source_port ^ 1,
        destination_port: segment.destination_port ^ 1,
        ..segment
    })
}

proptest! {
    #[test]
    fn a_direction_or_a_later_part_first_changes_nothing(
        client in any::<u32>(),
        server in any::<u32>(),
        turns in 3..20_i64,
        lost in prop::collection::vec(3..60_usize, 0..3),
        part in 0.1..0.9_f64,
    ) {
        let segments = dialogue(Numbers { client, server }, turns, &lost);
        let expected = seen(&read(&segments));
        let mut later_first = segments.clone();
        later_first.rotate_left((part * segments.len() as f64) as usize);
        let apart = [CLIENT_PORT, SERVER_PORT].map(|first| {
            let mut apart = segments.clone();
            apart.sort_by_key(|segment| segment.source_port != first);
            apart
        });
        let [client_first, server_first] = apart;
        for file in [later_first, client_first, server_first] {
            prop_assert!(seen(&read(&file)) == expected);
        }
    }

    #[test]
    fn a_clock_that_was_set_back_leaves_packets_in_their_order(
        turns in 4..20_i64,
        part in 0.2..0.8_f64,
        back_ms in 150..2_000_i64,
    ) {
        let mut segments = dialogue(NUMBERS, turns, &[]);
        let set_at = (part * segments.len() as f64) as usize;
        for segment in &mut segments[set_at..] {
            segment.time_ns -= back_ms * 1_000_000;
        }
        let connections = read(&segments);
        prop_assert_eq!(connections.len(), 1);
        let times: Vec<i64> = segments.iter().map(|segment| segment.time_ns).collect();
        prop_assert_eq!(columns(&connections).time_ns, times);
    }
}

#[test]
fn connections_stay_in_the_order_of_their_first_packets() {
    let mut file = dialogue(NUMBERS, 5, &[]);
    file.sort_by_key(|segment| segment.source_port != SERVER_PORT);
    let syn = file.iter().position(|segment| segment.flags == SYN);
    let Some(syn) = syn else { unreachable!() };
    let beside: Vec<_> = other_ports(dialogue(NUMBERS, 4, &[])).collect();
    file.splice(1..1, beside);
    let connections = read(&file);
    let found: Vec<(u16, u64)> =
        connections.summaries().map(|summary| (summary.client_port, summary.first_frame)).collect();
    let length = dialogue(NUMBERS, 4, &[]).len();
    assert_eq!(found, [(CLIENT_PORT ^ 1, 1), (CLIENT_PORT, (syn + length) as u64)]);
    let Some(packets) = connections.packets() else { unreachable!() };
    assert_eq!(packets.frame_indices(0).collect::<Vec<_>>(), (1..=length as u64).collect::<Vec<_>>());
    let Some(payload) = connections.payload() else { unreachable!() };
    let sampled = |connection: usize| payload.of(connection, 0).map(|(_, piece)| piece.len()).sum::<usize>();
    assert_eq!((sampled(0), sampled(1)), (400, 500));
}

#[test]
fn two_connections_of_one_four_tuple_stay_two() {
    let later = Numbers { client: 77, server: 3_000_000_000 };
    let mut file = dialogue(NUMBERS, 6, &[]);
    file.extend(
        dialogue(later, 4, &[])
            .into_iter()
            .map(|segment| Segment { time_ns: segment.time_ns + 60 * SECOND_NS, ..segment }),
    );
    let mut apart = file.clone();
    apart.sort_by_key(|segment| segment.source_port != CLIENT_PORT);
    let mut later_first = file.clone();
    later_first.rotate_left(10);
    let summaries = |file: &[Segment<'_>]| {
        let mut summaries = seen(&read(file)).0;
        summaries.sort();
        summaries
    };
    assert_eq!(summaries(&file).len(), 2);
    assert!(summaries(&apart) == summaries(&file));
    assert!(summaries(&later_first) == summaries(&file));
}
