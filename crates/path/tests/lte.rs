//! The LTE link as its neighbours on a path see it.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use crate::radio_packet::{run_until, Arrival, RadioPacket};
use pepscope_path::lte::settings::{FadingRateSettings, LteUserSettings, RateSettings};
use pepscope_path::lte::{Lte, LteSettings, SlotPattern};
use pepscope_path::{Direction, Hop, QueueLimit, MILLISECOND, NEVER, SECOND};
use proptest::prelude::*;

fn settings(block_error_rate: f64, users: usize) -> LteSettings {
    let mut settings = LteSettings { users: vec![LteUserSettings::default(); users], ..LteSettings::default() };
    settings.hybrid_arq.block_error_rate = block_error_rate;
    for user in &mut settings.users {
        user.down_queue = QueueLimit::Unlimited;
        user.up_queue = QueueLimit::Unlimited;
    }
    settings
}

fn link(settings: &LteSettings) -> Lte<RadioPacket> {
    Lte::new(settings, 1, "test").unwrap()
}

fn push(link: &mut Lte<RadioPacket>, now: u64, direction: Direction, user: u16, bytes: u32, number: u64) {
    link.handle_packet(now, direction, RadioPacket::new(user, bytes, number));
}

/// Sends 1500-byte packets down to terminal 0 at once; when they come out.
fn burst(settings: &LteSettings, packets: u64) -> Vec<Arrival> {
    let mut link = link(settings);
    for number in 0..packets {
        push(&mut link, 0, Direction::Down, 0, 1500, number);
    }
    let arrivals = run_until(&mut link, 10_000 * SECOND);
    assert_eq!(link.poll_timeout(), NEVER);
    assert!(arrivals.windows(2).all(|pair| pair[0].number < pair[1].number));
    arrivals
}

#[test]
fn packets_down_take_their_intervals_and_the_time_to_decode() {
    let times: Vec<u64> = burst(&settings(0.0, 1), 9).iter().map(|arrival| arrival.time / MILLISECOND).collect();
    // 6250 bytes an interval: four packets and a sixth of the fifth in the first.
    assert_eq!(times, [4, 4, 4, 4, 5, 5, 5, 5, 6]);
}

#[test]
fn a_full_link_delivers_its_rate_exactly() {
    let mut settings = settings(0.0, 1);
    settings.users[0].down = RateSettings::Fixed { rate_bit_s: 12_345_678 };
    let arrivals = burst(&settings, 10_000);
    let seconds = (arrivals[9_999].time - 3 * MILLISECOND) as f64 * 1e-9;
    assert!((10_000.0 * 12_000.0 / 12_345_678.0 - seconds).abs() < 0.001);
}

#[test]
fn errors_cost_the_intervals_that_repetitions_take() {
    let settings = settings(0.1, 1);
    let arrivals = burst(&settings, 20_000);
    let rate = 20_000.0 * 12_000.0 / (arrivals[19_999].time as f64 * 1e-9);
    // Transmissions a block: 1 + 0.1 + 0.1 * 0.01 + ... = 1.101.
    assert!((rate * 1.101 / 50e6 - 1.0).abs() < 0.02, "{rate}");
}

#[test]
fn a_block_that_fails_holds_up_what_follows_for_a_round_trip() {
    let mut failing = settings(1.0, 1);
    failing.hybrid_arq.combining_ratio = 0.0; // fails once, never twice
    let times: Vec<u64> = burst(&failing, 8).iter().map(|arrival| arrival.time / MILLISECOND).collect();
    assert_eq!(times, [12, 12, 12, 12, 13, 13, 13, 13]);
}

#[test]
fn rlc_recovers_what_hybrid_arq_gives_up_and_in_its_absence_packets_are_lost() {
    let mut lossy = settings(0.05, 1);
    lossy.hybrid_arq.maximum_transmissions = 1;
    assert_eq!(burst(&lossy, 2000).len(), 2000);
    lossy.recovery = None;
    let delivered = burst(&lossy, 2000).len();
    // Each block of 6250 bytes touches 5.2 packets on average, 4.2 of 1500 bytes in it: about 6 % of packets are lost.
    assert!((1700..1980).contains(&delivered), "{delivered}");
}

#[test]
fn acknowledgements_leave_in_bunches() {
    let mut link = link(&settings(0.0, 1));
    let mut arrivals = Vec::new();
    for number in 0..1000 {
        let now = number * MILLISECOND + MILLISECOND / 2;
        arrivals.extend(run_until(&mut link, now));
        push(&mut link, now, Direction::Up, 0, 60, number);
    }
    arrivals.extend(run_until(&mut link, 10 * SECOND));
    assert_eq!(arrivals.len(), 1000);
    assert!(arrivals.windows(2).all(|pair| pair[0].number < pair[1].number));
    let mut times: Vec<u64> = arrivals.iter().map(|arrival| arrival.time).collect();
    times.dedup();
    // A report of what is left comes with each bunch and takes 8 ms to become leave to send: a bunch every 8 ms.
    assert!((110..=140).contains(&times.len()), "{}", times.len());
    assert!(arrivals.iter().all(|arrival| arrival.direction == Direction::Up));
}

#[test]
fn an_upload_fills_the_link_once_its_backlog_is_known() {
    let mut link = link(&settings(0.0, 1));
    for number in 0..1000 {
        push(&mut link, 0, Direction::Up, 0, 1500, number);
    }
    let arrivals = run_until(&mut link, 100 * SECOND);
    let seconds = arrivals[999].time as f64 * 1e-9;
    assert!((1.2..1.23).contains(&seconds), "{seconds}"); // 12 Mbit at 10 Mbit/s, request and grants before
}

#[test]
fn terminals_share_the_intervals() {
    let mut link = link(&settings(0.1, 2));
    for number in 0..4000 {
        push(&mut link, 0, Direction::Down, (number % 2) as u16, 1500, number);
    }
    let first: Vec<u16> = run_until(&mut link, SECOND / 2).iter().map(|arrival| arrival.user).collect();
    let share = first.iter().filter(|&&user| user == 0).count() as f64 / first.len() as f64;
    assert!((share - 0.5).abs() < 0.02, "{share}");
}

#[test]
fn a_shorter_interval_delivers_sooner() {
    let mut short = settings(0.0, 1);
    short.tti = MILLISECOND / 2;
    short.hybrid_arq.decoding = MILLISECOND;
    assert_eq!(burst(&short, 1)[0].time, MILLISECOND);
}

#[test]
fn a_fading_link_varies_and_a_deep_buffer_takes_its_bytes_and_no_more() {
    let mut settings = settings(0.1, 1);
    settings.users[0].down = RateSettings::Fading(FadingRateSettings {
        bandwidth_hz: 10e6,
        layers: 1,
        mean_sinr_db: 8.0,
        deviation_db: 6.0,
        correlation: SECOND,
        attenuation: 0.6,
        most_bit_s_hz: 4.4,
    });
    settings.users[0].down_queue = QueueLimit::Bytes(150_000);
    let mut link = link(&settings);
    let mut by_second = [0u32; 20];
    for step in 0..20_000u64 {
        let now = step * MILLISECOND;
        for _ in 0..5 {
            push(&mut link, now, Direction::Down, 0, 1500, step);
            assert!(link.queued_bytes(0, Direction::Down) <= 150_000);
        }
        by_second[(step / 1000) as usize] += run_until(&mut link, now).len() as u32;
    }
    let (least, most) = (by_second.iter().min().unwrap(), by_second.iter().max().unwrap());
    assert!(*most > 2 * least, "{by_second:?}");
    assert!(link.counts(Direction::Down).overflowed_packets > 0);
}

#[test]
fn settings_that_make_no_sense_are_refused_in_a_sentence() {
    let mut wrong = settings(0.1, 1);
    wrong.hybrid_arq.block_error_rate = 1.5;
    let refusal = Lte::<RadioPacket>::new(&wrong, 1, "test").unwrap_err();
    assert_eq!(refusal.to_string(), "block_error_rate must be from 0 to 1, got 1.5");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn packets_are_conserved_in_order_and_within_the_limit(
        seed in any::<u64>(),
        block_error_rate in 0.0..0.5f64,
        acknowledged in any::<bool>(),
        maximum_transmissions in 1u8..5,
        limit in 1500u64..30_000,
        packets in prop::collection::vec((0u16..3, any::<bool>(), 40u32..1500, 0u64..5), 1..300),
    ) {
        let mut settings = settings(block_error_rate, 3);
        settings.hybrid_arq.maximum_transmissions = maximum_transmissions;
        if !acknowledged {
            settings.recovery = None;
        }
        for user in &mut settings.users {
            user.down_queue = QueueLimit::Bytes(limit);
            user.up_queue = QueueLimit::Bytes(limit);
        }
        let mut link: Lte<RadioPacket> = Lte::new(&settings, seed, "property").unwrap();
        let mut now = 0;
        let mut arrivals = Vec::new();
        for (number, (user, up, bytes, wait)) in packets.iter().enumerate() {
            now += wait * MILLISECOND / 2;
            arrivals.extend(run_until(&mut link, now));
            let direction = if *up { Direction::Up } else { Direction::Down };
            push(&mut link, now, direction, *user, *bytes, number as u64);
            prop_assert!(link.queued_bytes(*user, direction) <= limit);
        }
        arrivals.extend(run_until(&mut link, now + 600 * SECOND));
        prop_assert_eq!(link.poll_timeout(), NEVER);
        for direction in [Direction::Down, Direction::Up] {
            let counts = link.counts(direction);
            let settled = counts.delivered_packets + counts.lost_packets + counts.overflowed_packets;
            prop_assert_eq!(settled, counts.offered_packets);
            let bytes = |arrival: &Arrival| u64::from(packets[arrival.number as usize].2);
            let delivered = arrivals.iter().filter(|arrival| arrival.direction == direction).map(bytes).sum::<u64>();
            prop_assert_eq!(counts.delivered_bytes, delivered);
            for user in 0..3 {
                let numbers: Vec<u64> = arrivals
                    .iter()
                    .filter(|arrival| arrival.user == user && arrival.direction == direction)
                    .map(|arrival| arrival.number)
                    .collect();
                prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }
}

/// NR at 30 kHz: slots of 0.5 ms, of which four in five are down but for a part of the last.
fn nr(letters: &str) -> LteSettings {
    let mut settings = settings(0.0, 1);
    settings.tti = MILLISECOND / 2;
    settings.slots = Some(SlotPattern::new(letters, 0.714).unwrap());
    settings
}

#[test]
fn time_division_leaves_each_direction_its_share() {
    for (letters, share) in [("DDDSU", 3.714 / 5.0), ("DSUUU", 1.714 / 5.0), ("DDDDDDDSUU", 7.714 / 10.0)] {
        let settings = nr(letters);
        assert!((settings.slots.as_ref().unwrap().mean_share(Direction::Down) - share).abs() < 1e-12);
        let arrivals = burst(&settings, 20_000);
        let rate = 20_000.0 * 12_000.0 / (arrivals[19_999].time as f64 * 1e-9);
        assert!((rate / (50e6 * share) - 1.0).abs() < 0.01, "{letters}: {rate}");
    }
}

#[test]
fn nothing_moves_in_the_slots_of_the_other_direction() {
    let settings = nr("DDDSU");
    let mut link = link(&settings);
    let mut arrivals = Vec::new();
    for number in 0..200 {
        let now = number * 7 * MILLISECOND / 3;
        arrivals.extend(run_until(&mut link, now));
        push(&mut link, now, Direction::Up, 0, 200, number);
        push(&mut link, now, Direction::Down, 0, 200, 1000 + number);
    }
    arrivals.extend(run_until(&mut link, 10 * SECOND));
    assert_eq!(arrivals.len(), 400);
    for arrival in arrivals {
        let slot = (arrival.time - settings.hybrid_arq.decoding) / settings.tti % 5;
        assert_eq!(slot == 4, arrival.direction == Direction::Up, "slot {slot}");
    }
}

#[test]
fn repetitions_wait_for_their_slot_and_everything_arrives() {
    let mut settings = nr("DSUUU");
    settings.hybrid_arq.block_error_rate = 0.3;
    assert_eq!(burst(&settings, 3000).len(), 3000);
}

#[test]
fn patterns_without_both_directions_are_refused() {
    for letters in ["", "DDD", "UUU", "DDXU", "SU"] {
        let error = SlotPattern::new(letters, 0.7).unwrap_err().to_string();
        assert!(error.contains("letters D, S and U"), "{error}");
    }
    assert!(SlotPattern::new("DU", 1.5).is_err());
}
