//! The wired link: transcripts, properties and the theory of its queue.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use crate::probe::{assert_settled, Driver, Entry, Probe};
use pepscope_path::{
    Direction, Hop, LineSettings, LossSettings, MarkingSettings, Nanoseconds, Places, QueueLimit, QueueSettings,
    Random, Wired, WiredSettings, MILLISECOND, NEVER, SECOND,
};
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest, Just, Strategy};

const PACKET: Probe = Probe {
    number: 0,
    bytes: 1_000,
    headers: 40,
    sent_ns: 0,
    understands_marks: false,
    marked: false,
    report: None,
    flow: 0,
};

/// Down as given; up without limits.
fn link(down: LineSettings) -> Wired<Probe> {
    Wired::new(&WiredSettings { down, up: LineSettings::default() }, 1, "link").unwrap()
}

fn line(rate_bit_s: u64, delay_ns: Nanoseconds, limit: QueueLimit) -> LineSettings {
    let queue = QueueSettings { limit, ..QueueSettings::default() };
    LineSettings { rate_bit_s: Some(rate_bit_s), delay_ns, queue, loss: LossSettings::None }
}

#[test]
fn packets_leave_one_service_time_apart_after_the_delay() {
    let mut driver = Driver::new(link(line(8_000_000, 20 * MILLISECOND, QueueLimit::Unlimited)));
    for _ in 0..3 {
        driver.send(Direction::Down, PACKET);
    }
    driver.run_until(5 * MILLISECOND);
    driver.send(Direction::Down, PACKET);
    driver.run_to_the_end();
    let expected = [(0, 21), (1, 22), (2, 23), (3, 26)].map(|(number, ms)| (number, ms * MILLISECOND));
    assert_eq!(driver.transcript(), expected);
}

#[test]
fn a_full_buffer_refuses_and_a_departure_frees_a_place() {
    let mut driver = Driver::new(link(line(8_000_000, 0, QueueLimit::Packets(2))));
    for _ in 0..4 {
        driver.send(Direction::Down, PACKET); // one in service, two wait, one refused
    }
    driver.run_until(MILLISECOND - 1);
    driver.send(Direction::Down, PACKET); // refused: the first is still in service
    driver.run_until(MILLISECOND);
    driver.send(Direction::Down, PACKET);
    driver.run_to_the_end();
    let expected = [(0, 1), (1, 2), (2, 3), (5, 4)].map(|(number, ms)| (number, ms * MILLISECOND));
    assert_eq!(driver.transcript(), expected);
    assert_eq!(driver.hop.counts(Direction::Down).overflowed_packets, 2);
}

#[test]
fn limits_in_bytes_count_bytes() {
    let mut settings = line(8_000_000, 0, QueueLimit::Bytes(2_000));
    settings.queue.places = Places::WaitingAndInService;
    let mut driver = Driver::new(link(settings));
    for bytes in [1_000, 1_001, 900, 100, 1] {
        driver.send(Direction::Down, Probe { bytes, ..PACKET });
    }
    driver.run_to_the_end();
    assert_eq!(driver.left.iter().map(|left| left.probe.bytes).collect::<Vec<_>>(), [1_000, 900, 100]);
}

#[test]
fn a_wired_link_refuses_radio_frames() {
    let refused = |settings: LineSettings| {
        let settings = WiredSettings { down: settings, up: LineSettings::default() };
        Wired::<Probe>::new(&settings, 1, "link").unwrap_err().to_string()
    };
    let frames = refused(line(1_000, 0, QueueLimit::Frames(200)));
    assert_eq!(frames, "queue limit of a wired link must be in packets or bytes, got 200 frames");
    assert_eq!(refused(line(0, 0, QueueLimit::Unlimited)), "rate_bit_s must be at least 1 bit/s, got 0");
}

#[test]
fn an_infinite_rate_takes_no_time_and_refuses_nothing() {
    let queue = QueueSettings { limit: QueueLimit::Packets(0), ..QueueSettings::default() };
    let settings = LineSettings { rate_bit_s: None, delay_ns: 7, queue, loss: LossSettings::None };
    let mut driver = Driver::new(link(settings));
    for _ in 0..100 {
        driver.send(Direction::Down, PACKET);
        driver.send(Direction::Up, PACKET);
    }
    assert_eq!(driver.left_in(Direction::Up).count(), 100); // no delay at all
    driver.run_to_the_end();
    assert_eq!(driver.left_in(Direction::Down).filter(|left| left.at_ns == 7).count(), 100);
}

#[test]
fn lost_packets_take_their_time_on_the_link() {
    let mut settings = line(8_000_000, 0, QueueLimit::Unlimited);
    settings.loss = LossSettings::Listed { numbers: vec![1] };
    let mut driver = Driver::new(link(settings));
    for _ in 0..3 {
        driver.send(Direction::Down, PACKET);
    }
    driver.run_to_the_end();
    assert_eq!(driver.transcript(), [(0, MILLISECOND), (2, 3 * MILLISECOND)]);
    assert_eq!(driver.hop.counts(Direction::Down).lost_packets, 1);
}

#[test]
fn every_capable_packet_is_marked_while_the_average_queue_is_long() {
    let mut settings = line(8_000_000, 0, QueueLimit::Unlimited);
    settings.queue.marking = Some(MarkingSettings { threshold_packets: 3.0, weight: 1.0 });
    let mut driver = Driver::new(link(settings));
    for number in 0..10 {
        driver.send(Direction::Down, Probe { understands_marks: number != 7, ..PACKET });
    }
    driver.run_to_the_end();
    // Packet n finds n - 1 waiting; above three means from the fifth on, but for the one that does not understand.
    let marked: Vec<u64> = driver.left.iter().filter(|left| left.probe.marked).map(|left| left.probe.number).collect();
    assert_eq!(marked, [5, 6, 8, 9]);
    assert_eq!(driver.hop.counts(Direction::Down).marked_packets, 4);
}

#[test]
fn a_late_driver_shifts_packets_but_not_the_rate() {
    let mut driver = Driver::new(link(line(8_000_000, 0, QueueLimit::Unlimited)));
    for _ in 0..10 {
        driver.send(Direction::Down, PACKET);
    }
    driver.now = 7 * MILLISECOND + 1;
    driver.wake();
    assert_eq!(driver.left.len(), 7);
    assert_eq!(driver.hop.poll_timeout(), 8 * MILLISECOND);
}

#[test]
fn the_series_shows_what_waits_now() {
    let mut driver = Driver::new(link(line(8_000_000, SECOND, QueueLimit::Unlimited)));
    for _ in 0..10 {
        driver.send(Direction::Down, PACKET);
    }
    let seen = |hop: &Wired<Probe>, now| {
        let mut values = Vec::new();
        hop.observe(now, &mut |name, value| values.push((name, value)));
        values
    };
    assert!(seen(&driver.hop, 0).contains(&("down_system_packets", 10.0)));
    assert!(seen(&driver.hop, 4 * MILLISECOND).contains(&("down_system_packets", 6.0)));
    assert!(seen(&driver.hop, 4 * MILLISECOND).contains(&("down_system_bytes", 6_000.0)));
    assert!(seen(&driver.hop, SECOND).contains(&("down_system_packets", 0.0)));
}

/// Pollaczek and Khinchine for constant service times: mean waiting time = rho s / (2 (1 - rho)).
#[test]
fn poisson_arrivals_wait_as_in_m_d_1() {
    let service_s = 0.001;
    for (load, tolerance) in [(0.3, 0.02), (0.6, 0.02), (0.8, 0.04)] {
        let mut driver = Driver::new(link(line(8_000_000, 0, QueueLimit::Unlimited)));
        let mut random = Random::new(5, "arrivals");
        let mut time_s = 0.0;
        for _ in 0..400_000 {
            time_s += random.exponential(service_s / load);
            driver.run_until((time_s * 1e9) as Nanoseconds);
            driver.send(Direction::Down, PACKET);
        }
        driver.run_to_the_end();
        let waits_s = driver.left.iter().map(|left| (left.at_ns - left.probe.sent_ns) as f64 * 1e-9 - service_s);
        let mean_s = waits_s.sum::<f64>() / driver.left.len() as f64;
        let theory_s = load * service_s / (2.0 * (1.0 - load));
        assert!((mean_s / theory_s - 1.0).abs() < tolerance, "load {load}: {mean_s} s for {theory_s} s");
    }
}

/// A loss system of one server: with no waiting place a share rho / (1 + rho) is refused (Erlang's B for one server).
#[test]
fn without_waiting_places_the_refused_share_is_erlangs() {
    let mut driver = Driver::new(link(line(8_000_000, 0, QueueLimit::Packets(0))));
    let mut random = Random::new(6, "arrivals");
    let mut time_s = 0.0;
    for _ in 0..300_000 {
        time_s += random.exponential(0.001 / 0.5);
        driver.run_until((time_s * 1e9) as Nanoseconds);
        driver.send(Direction::Down, PACKET);
    }
    let counts = driver.hop.counts(Direction::Down);
    let refused = counts.overflowed_packets as f64 / counts.offered_packets as f64;
    assert!((refused - 1.0 / 3.0).abs() < 0.005, "{refused}");
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    prop::collection::vec((0..3 * MILLISECOND, any::<bool>(), 20..1_501u32), 1..200).prop_map(|steps| {
        let mut at_ns = 0;
        let entry = |(gap, is_down, bytes)| {
            at_ns += gap;
            Entry { at_ns, direction: if is_down { Direction::Down } else { Direction::Up }, bytes }
        };
        steps.into_iter().map(entry).collect()
    })
}

fn limits() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        Just(QueueLimit::Unlimited),
        (0..20u32).prop_map(QueueLimit::Packets),
        (0..20_000u64).prop_map(QueueLimit::Bytes)
    ]
}

fn any_line() -> impl Strategy<Value = LineSettings> {
    (1_000u64..50_000_000, 0..SECOND, limits(), 0.0..0.5f64).prop_map(|(rate_bit_s, delay_ns, limit, probability)| {
        LineSettings { loss: LossSettings::Independent { probability }, ..line(rate_bit_s, delay_ns, limit) }
    })
}

proptest! {
    #[test]
    fn packets_are_conserved_in_order_and_no_faster_than_the_rate(
        down in any_line(), up in any_line(), entries in entries(),
    ) {
        let settings = WiredSettings { down, up };
        let mut driver = Driver::new(Wired::new(&settings, 3, "link").unwrap());
        driver.send_all(&entries);
        driver.run_to_the_end();
        prop_assert_eq!(driver.hop.poll_timeout(), NEVER);
        for (direction, line) in [(Direction::Down, &settings.down), (Direction::Up, &settings.up)] {
            let left: Vec<_> = driver.left_in(direction).collect();
            assert_settled(
                driver.hop.counts(direction),
                left.len() as u64,
                left.iter().map(|left| u64::from(left.probe.bytes)).sum(),
            );
            for pair in left.windows(2) {
                prop_assert!(pair[0].probe.number < pair[1].probe.number);
                let service = u64::from(pair[1].probe.bytes) * 8 * SECOND / line.rate_bit_s.unwrap();
                prop_assert!(pair[1].at_ns - pair[0].at_ns >= service);
            }
            for packet in left {
                prop_assert!(packet.at_ns >= packet.probe.sent_ns + line.delay_ns);
            }
        }
    }

    #[test]
    fn the_queue_is_never_over_its_limit(line in any_line(), entries in entries()) {
        let mut driver = Driver::new(link(line.clone()));
        for entry in entries {
            driver.run_until(entry.at_ns);
            driver.send(Direction::Down, Probe { bytes: entry.bytes, ..PACKET });
            let mut system = [0.0; 2];
            driver.hop.observe(driver.now, &mut |name, value| match name {
                "down_system_packets" => system[0] = value,
                "down_system_bytes" => system[1] = value,
                _ => {}
            });
            match line.queue.limit {
                QueueLimit::Unlimited | QueueLimit::Frames(_) => {}
                QueueLimit::Packets(limit) => prop_assert!(system[0] <= f64::from(limit) + 1.0),
                QueueLimit::Bytes(limit) => prop_assert!(system[1] <= limit as f64 + 1_500.0),
            }
        }
    }

    #[test]
    fn early_wake_ups_change_nothing(line in any_line(), entries in entries()) {
        let mut driver = Driver::new(link(line.clone()));
        let mut nervous = Driver::new(link(line));
        driver.send_all(&entries);
        for entry in &entries {
            while nervous.now < entry.at_ns {
                nervous.run_until((nervous.now + MILLISECOND / 3).min(entry.at_ns));
                nervous.wake();
            }
            nervous.send_all(&[*entry]);
        }
        driver.run_to_the_end();
        nervous.run_to_the_end();
        prop_assert_eq!(driver.left, nervous.left);
    }
}
