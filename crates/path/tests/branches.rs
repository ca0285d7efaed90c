//! Links beside each other: each mobile's packets take its own.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use crate::radio_packet::{run_until, RadioPacket};
use pepscope_path::{Branches, BranchesSettings, Direction, Hop, LineSettings, WiredSettings, MILLISECOND, SECOND};
use proptest::prelude::*;

fn link(delay_ms: u64) -> WiredSettings {
    let line =
        LineSettings { rate_bit_s: Some(12_000_000), delay_ns: delay_ms * MILLISECOND, ..LineSettings::default() };
    WiredSettings { down: line.clone(), up: line }
}

#[test]
fn each_mobile_has_its_own_delay_and_queue() {
    let settings = BranchesSettings { links: vec![link(5), link(50)], ..BranchesSettings::default() };
    let mut hop = Branches::new(&settings, 1, "branches").unwrap();
    for number in 0..4 {
        hop.handle_packet(0, Direction::Down, RadioPacket::new((number % 2) as u16, 1500, number));
    }
    let times: Vec<_> = run_until(&mut hop, SECOND).iter().map(|one| (one.user, one.time / MILLISECOND)).collect();
    assert_eq!(times, [(0, 6), (0, 7), (1, 51), (1, 52)]);
}

#[test]
fn a_mobile_without_a_link_loses_its_packets() {
    let mut hop =
        Branches::new(&BranchesSettings { links: vec![link(5)], ..BranchesSettings::default() }, 1, "branches")
            .unwrap();
    hop.handle_packet(0, Direction::Up, RadioPacket::new(3, 100, 0));
    assert!(run_until(&mut hop, SECOND).is_empty());
    assert_eq!((hop.counts(Direction::Up).offered_packets, hop.counts(Direction::Up).lost_packets), (1, 1));
    let none = Branches::<RadioPacket>::new(&BranchesSettings::default(), 1, "branches").unwrap_err();
    assert!(none.to_string().contains("at least one"));
}

proptest! {
    #[test]
    fn every_packet_comes_out_once_and_in_the_order_of_its_mobile(
        packets in prop::collection::vec((0u64..200, 0u16..4, any::<bool>()), 1..100),
    ) {
        let settings = BranchesSettings { links: [3, 17, 4, 90].map(link).to_vec(), ..BranchesSettings::default() };
        let mut hop = Branches::new(&settings, 1, "branches").unwrap();
        let mut sorted = packets;
        sorted.sort_by_key(|packet| packet.0);
        let mut arrivals = Vec::new();
        for (number, (at_ms, user, is_up)) in sorted.iter().enumerate() {
            arrivals.extend(run_until(&mut hop, at_ms * MILLISECOND));
            let direction = if *is_up { Direction::Up } else { Direction::Down };
            hop.handle_packet(at_ms * MILLISECOND, direction, RadioPacket::new(*user, 1500, number as u64));
        }
        arrivals.extend(run_until(&mut hop, 100 * SECOND));
        prop_assert_eq!(arrivals.len(), sorted.len());
        for user in 0..4 {
            for direction in [Direction::Down, Direction::Up] {
                let own: Vec<u64> = arrivals
                    .iter()
                    .filter(|one| one.user == user && one.direction == direction)
                    .map(|one| one.number)
                    .collect();
                prop_assert!(own.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }
}
