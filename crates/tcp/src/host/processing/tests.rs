use pepscope_path::{Nanoseconds, ProcessingTime, Random, MICROSECOND, QUANTILES, SECOND};

use super::{News, Processing, ProcessingSettings};
use crate::packets::packet::Packet;
use crate::packets::segment::{Flags, Segment};

fn processing(seed: u64) -> Processing {
    let settings = ProcessingSettings { interrupted_share: 0.0, ..ProcessingSettings::default() };
    Processing::new(settings, Random::new(seed, "processing"))
}

fn median(mut times: Vec<Nanoseconds>) -> Nanoseconds {
    times.sort_unstable();
    times[times.len() / 2]
}

fn answers(pause: Nanoseconds) -> Vec<Nanoseconds> {
    let packet = Packet::Tcp(Segment::default());
    let one_of = |seed| {
        let mut processing = processing(seed);
        processing.push_arriving(0, &packet, false);
        let now = SECOND + pause;
        processing.push_arriving(SECOND, &packet, false);
        processing.push_arriving(now, &packet, false);
        processing.arriving.last_ns() - now
    };
    (0..200).map(one_of).collect()
}

#[test]
fn a_machine_that_was_idle_answers_later() {
    let (warm, cold) = (answers(MICROSECOND * 500), answers(SECOND));
    assert!(warm.iter().all(|time| *time >= 3 * MICROSECOND));
    assert!((6_000..9_000).contains(&median(warm.clone())), "{}", median(warm));
    assert!((20_000..38_000).contains(&median(cold.clone())), "{}", median(cold));
}

#[test]
fn data_and_the_first_of_a_connection_have_times_of_their_own() {
    let constant = |us: f64| {
        let ns = us * MICROSECOND as f64;
        ProcessingTime::log_normal(ns, ns, 0.0)
    };
    let settings = ProcessingSettings {
        receiving: constant(5.0),
        receiving_data: Some(constant(10.0)),
        first_data: 3.0,
        cold_receiving: 1.0,
        interrupted_share: 0.0,
        ..ProcessingSettings::default()
    };
    let mut processing = Processing::new(settings, Random::new(1, "processing"));
    let packet = |flow, payload_bytes| Packet::Tcp(Segment { flow, payload_bytes, ..Segment::default() });
    let mut taken = |now, packet: Packet| {
        processing.push_arriving(now, &packet, false);
        (processing.arriving.last_ns() - now) / MICROSECOND
    };
    let packets = [packet(0, 0), packet(0, 100), packet(0, 100), packet(1, 100), packet(0, 0)];
    let times: Vec<_> = (1..).zip(packets).map(|(second, packet)| taken(second * SECOND, packet)).collect();
    assert_eq!(times, [5, 30, 10, 30, 5]);
}

#[test]
fn the_first_packet_of_all_has_a_time_of_its_own_where_it_is_said() {
    let constant = |us: f64| ProcessingTime::log_normal(us * MICROSECOND as f64, us * MICROSECOND as f64, 0.0);
    let taken = |first_opening| {
        let opening = constant(10.0);
        let settings =
            ProcessingSettings { opening, first_opening, cold_opening: 2.0, ..ProcessingSettings::default() };
        let settings = ProcessingSettings { machine_spread: 0.0, ..settings };
        let mut processing = Processing::new(settings, Random::new(1, "processing"));
        let packet = Packet::Tcp(Segment { flags: Flags::SYN, ..Segment::default() });
        [SECOND, 2 * SECOND].map(|now| {
            processing.push_arriving(now, &packet, false);
            (processing.arriving.last_ns() - now) / MICROSECOND
        })
    };
    assert_eq!((taken(None), taken(Some(constant(50.0)))), ([20, 20], [50, 20]));
}

#[test]
fn data_behind_a_gap_have_a_time_of_their_own_where_it_is_said() {
    let constant = |us: f64| ProcessingTime::log_normal(us * MICROSECOND as f64, us * MICROSECOND as f64, 0.0);
    let taken = |receiving_out_of_order, is_out_of_order| {
        let settings = ProcessingSettings {
            receiving: constant(5.0),
            receiving_data: Some(constant(10.0)),
            receiving_out_of_order,
            cold_receiving: 1.0,
            interrupted_share: 0.0,
            ..ProcessingSettings::default()
        };
        let mut processing = Processing::new(settings, Random::new(1, "processing"));
        assert_eq!(processing.asks_for_order(), receiving_out_of_order.is_some());
        let packet = Packet::Tcp(Segment { payload_bytes: 100, ..Segment::default() });
        processing.push_arriving(SECOND, &packet, is_out_of_order);
        assert!(!processing.asks_for_order()); // what the connection expects next is not known meanwhile
        (processing.arriving.last_ns() - SECOND) / MICROSECOND
    };
    assert_eq!([taken(None, true), taken(Some(constant(3.0)), false), taken(Some(constant(3.0)), true)], [10, 10, 3]);
}

#[test]
fn the_second_packet_of_a_burst_takes_longer_than_later_ones_where_it_is_said() {
    let constant = |us: f64| ProcessingTime::log_normal(us * MICROSECOND as f64, us * MICROSECOND as f64, 0.0);
    // A slower machine would make these longer as a whole.
    let measured = ProcessingTime { quantiles_ns: Some([1_000.0; QUANTILES]), ..constant(1.0) };
    let gaps = |sending_second: Option<ProcessingTime>| {
        let settings = ProcessingSettings {
            sending_second,
            sending_in_burst: if sending_second.is_some() { measured } else { constant(1.0) },
            sending: constant(5.0),
            ..ProcessingSettings::default()
        };
        let mut processing = Processing::new(settings, Random::new(1, "processing"));
        let mut times = Vec::new();
        for number in 0..7u32 {
            let flags = if number == 3 { Flags::ACK | Flags::PSH } else { Flags::ACK };
            let segment = Segment { flags, payload_bytes: 100, sequence: 100 * number, ..Segment::default() };
            processing.push_leaving(SECOND, &Packet::Tcp(segment));
            times.push(processing.leaving.last_ns());
        }
        times.windows(2).map(|pair| (pair[1] - pair[0]) / MICROSECOND).collect::<Vec<_>>()
    };
    assert_eq!(gaps(None), [1, 1, 1, 5, 1, 1]);
    assert_eq!(gaps(Some(constant(2.0))), [2, 1, 1, 5, 2, 1]);
}

#[test]
fn the_end_takes_as_long_as_reading_or_acting_unless_it_is_said() {
    let median_of = |settings: ProcessingSettings, only_reads| {
        let of = |seed| Processing::new(settings, Random::new(seed, "end")).waking_time(News::End { only_reads });
        median((0..200).map(of).collect())
    };
    let usual = ProcessingSettings::default();
    assert!(2 * median_of(usual, true) < median_of(usual, false));
    let said = ProcessingSettings { closing: Some(usual.connected), ..usual };
    assert_eq!(median_of(said, true), median_of(said, false));
}

#[test]
fn packets_leave_one_after_the_other_in_their_order() {
    let mut processing = processing(1);
    for identification in 0..50 {
        let segment = Segment { ip_identification: identification, ..Segment::default() };
        processing.push_leaving(SECOND, &Packet::Tcp(segment));
    }
    assert!(processing.pop_leaving(SECOND - 1).is_none());
    let (mut last, mut seen) = (0, 0);
    while processing.next_time() < 2 * SECOND {
        let now = processing.next_time();
        assert!(now > last);
        last = now;
        let Some(Packet::Tcp(segment)) = processing.pop_leaving(now) else { panic!("a segment is due") };
        assert_eq!(segment.ip_identification, seen);
        seen += 1;
    }
    assert_eq!(seen, 50);
}

#[test]
fn programs_take_longer_to_act_than_to_read() {
    let times = |news| median((0..200).map(|seed| processing(seed).waking_time(news)).collect());
    assert!(2 * times(News::ToRead) < times(News::ToActOn));
}
