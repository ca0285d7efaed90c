//! The radio links take no memory once their rings have grown.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod radio_packet;

use pepscope_path::hsdpa::presets::{data_and_speech, SpeechChannel};
use pepscope_path::hsdpa::Hsdpa;
use pepscope_path::lte::{Lte, LteSettings};
use pepscope_path::{Direction, Hop, Nanoseconds, MILLISECOND, SECOND};
use radio_packet::RadioPacket;

/// Every 10 ms from `start` to `end`, four packets down to each terminal and one up; how many come out.
fn load(hop: &mut impl Hop<RadioPacket>, users: u16, start: Nanoseconds, end: Nanoseconds) -> u64 {
    let mut delivered = 0;
    let mut now = start;
    while now < end {
        for user in 0..users {
            for number in 0..4 {
                hop.handle_packet(now, Direction::Down, RadioPacket::new(user, 400, number));
            }
            hop.handle_packet(now, Direction::Up, RadioPacket::new(user, 60, 0));
        }
        let next = now + 10 * MILLISECOND;
        while hop.poll_timeout() < next {
            let time = hop.poll_timeout();
            hop.handle_timeout(time);
            while hop.poll_transmit(time).is_some() {
                delivered += 1;
            }
        }
        now = next;
    }
    delivered
}

fn allocations_after_warming_up(mut hop: impl Hop<RadioPacket>, users: u16) -> u64 {
    load(&mut hop, users, 0, 30 * SECOND);
    let mut delivered = 0;
    let measured = allocation_counter::measure(|| delivered = load(&mut hop, users, 30 * SECOND, 40 * SECOND));
    assert!(delivered > 1000);
    measured.count_total
}

#[test]
fn a_busy_hsdpa_cell_allocates_nothing() {
    let link: Hsdpa<RadioPacket> = Hsdpa::new(&data_and_speech(4, SpeechChannel::Shared, 2), 2, "hsdpa").unwrap();
    assert_eq!(allocations_after_warming_up(link, 5), 0);
}

#[test]
fn a_busy_lte_cell_allocates_nothing() {
    let link: Lte<RadioPacket> = Lte::new(&LteSettings::default(), 2, "lte").unwrap();
    assert_eq!(allocations_after_warming_up(link, 1), 0);
}
