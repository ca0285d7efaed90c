//! UDP flows: who sent what, which datagrams are kept, and how memory stays bounded.
#![allow(clippy::unwrap_used)]

use pepscope_connections::{DatagramFlow, DatagramFlows};
use pepscope_wire::Datagram;

const SECOND_NS: i64 = 1_000_000_000;

fn datagram(source: u16, destination: u16, time_ns: i64, payload: &[u8]) -> Datagram<'_> {
    Datagram {
        frame_index: time_ns as u64,
        time_ns,
        ip_version: 4,
        source: [source as u8; 16],
        destination: [destination as u8; 16],
        source_port: source,
        destination_port: destination,
        payload_length: payload.len() as u32,
        payload,
    }
}

fn flows(datagrams: impl IntoIterator<Item = (u16, u16, i64, Vec<u8>)>, limit: usize) -> Vec<DatagramFlow> {
    let mut flows = DatagramFlows::new(limit);
    for (source, destination, time_ns, payload) in datagrams {
        flows.push(&datagram(source, destination, time_ns, &payload));
    }
    flows.finish()
}

#[test]
fn both_ways_are_one_flow_and_the_first_sender_is_side_0() {
    let flows =
        flows([(9, 4, 1, vec![7; 30]), (4, 9, 2, vec![8; 40]), (9, 4, 3, vec![9; 50]), (9, 5, 4, vec![1])], 1 << 20);
    assert_eq!(flows.len(), 2);
    let flow = &flows[0];
    assert_eq!((flow.ports, flow.first_time_ns, flow.last_time_ns), ([9, 4], 1, 3));
    assert_eq!(flow.sides.each_ref().map(|side| (side.datagrams, side.payload_bytes)), [(2, 80), (1, 40)]);
    let kept: Vec<_> = flow.sides[0].kept().map(|(kept, bytes)| (kept.number, kept.time_ns, bytes.to_vec())).collect();
    assert_eq!(kept, [(0, 1, vec![7; 30]), (1, 3, vec![9; 50])]);
}

#[test]
fn first_datagrams_are_kept_whole_and_later_ones_by_their_beginnings() {
    let flows = flows((0..4000).map(|number| (1, 2, number, vec![number as u8; 1400])), 1 << 30);
    let lengths: Vec<_> = flows[0].sides[0].kept().map(|(_, bytes)| bytes.len()).collect();
    assert!(lengths[..64].iter().all(|&length| length == 1400));
    assert!(lengths[64..].iter().all(|&length| length == 320));
    assert!(lengths.len() > 400 && lengths.len() <= 1024, "{}", lengths.len());
    assert_eq!(flows[0].sides[0].datagrams, 4000);
}

#[test]
fn short_flows_go_first_and_long_ones_keep_their_beginnings() {
    let limit = 1 << 20;
    let long = (0..400).map(|number| (1, 2, number, vec![1; 1400]));
    let short = (0..20_000_u16).map(|number| (number + 10, 3, SECOND_NS * i64::from(number / 50 + 1), vec![2; 200]));
    let mut flows = DatagramFlows::new(limit);
    for (source, destination, time_ns, payload) in long.chain(short) {
        flows.push(&datagram(source, destination, time_ns, &payload));
        assert!(flows.memory_bytes() <= limit + 2048);
    }
    assert_eq!(flows.left_out(), 0);
    let kept = flows.finish();
    assert_eq!(kept[0].ports, [1, 2]);
    assert!(kept[0].sides[0].kept().len() >= 32);
    assert!(kept.len() < 20_000);
}

#[test]
fn where_nothing_can_go_new_flows_are_left_out_and_counted() {
    let mut flows = DatagramFlows::new(1 << 20);
    for round in 0..40 {
        for flow in 0..300_u16 {
            flows.push(&datagram(flow + 10, 3, round, &[3; 1400]));
        }
    }
    assert!(flows.memory_bytes() <= (1 << 20) + 2048, "{}", flows.memory_bytes());
    for flow in 0..100_u16 {
        flows.push(&datagram(flow + 1000, 3, 50, &[3; 1400]));
    }
    assert_eq!(flows.left_out(), 100);
    assert_eq!(flows.finish().len(), 300);
}
