//! Managed queues: a plain one against the wired link, and each discipline against its closed form.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use crate::probe::{assert_settled, Driver, Entry, Probe};
use pepscope_path::{
    Arrivals, CoDelSettings, CrossSettings, Direction, Discipline, FairSettings, Hop, LineSettings, Managed,
    ManagedLineSettings, ManagedQueueSettings, ManagedSettings, Nanoseconds, PieSettings, QueueLimit, QueueSettings,
    RedSettings, Wired, WiredSettings, MILLISECOND, SECOND,
};
use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest, Strategy};

/// 1,000 bytes take 1 ms.
const RATE_BIT_S: u64 = 8_000_000;
const PACKET_NS: Nanoseconds = MILLISECOND;

fn settings(discipline: Discipline, limit_packets: u32, marks: bool) -> ManagedSettings {
    let queue = ManagedQueueSettings { discipline, limit_packets, marks };
    let line = ManagedLineSettings { rate_bit_s: RATE_BIT_S, delay_ns: 3 * MILLISECOND, queue, cross: None };
    ManagedSettings { down: line.clone(), up: line }
}

fn hop(discipline: Discipline, limit_packets: u32, marks: bool) -> Driver<Managed<Probe>> {
    Driver::new(Managed::new(&settings(discipline, limit_packets, marks), 7, "managed").unwrap())
}

/// A packet each `apart` until `until`.
fn stream(driver: &mut Driver<Managed<Probe>>, probe: Probe, apart: Nanoseconds, until: Nanoseconds) {
    while driver.now < until {
        driver.send(Direction::Down, probe);
        driver.run_until(driver.now + apart);
    }
}

const PACKET: Probe = Probe {
    number: 0,
    bytes: 1_000,
    headers: 40,
    sent_ns: 0,
    understands_marks: false,
    marked: false,
    report: None,
    flow: 1,
};

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    prop::collection::vec((0u64..3 * MILLISECOND, prop::bool::ANY, 40u32..1_500), 1..80).prop_map(|drawn| {
        let mut at_ns = 0;
        let entry = |(gap, is_down, bytes)| {
            at_ns += gap;
            Entry { at_ns, direction: if is_down { Direction::Down } else { Direction::Up }, bytes }
        };
        drawn.into_iter().map(entry).collect()
    })
}

proptest! {
    #[test]
    fn a_plain_queue_is_a_wired_link(entries in entries(), limit in 1u32..8) {
        let queue = QueueSettings { limit: QueueLimit::Packets(limit), ..QueueSettings::default() };
        let line = LineSettings { rate_bit_s: Some(RATE_BIT_S), delay_ns: 3 * MILLISECOND, queue, ..Default::default() };
        let wired = WiredSettings { down: line.clone(), up: line };
        let mut expected = Driver::new(Wired::new(&wired, 7, "wired").unwrap());
        let mut found = hop(Discipline::DropTail, limit, false);
        expected.send_all(&entries);
        found.send_all(&entries);
        expected.run_to_the_end();
        found.run_to_the_end();
        prop_assert_eq!(found.transcript(), expected.transcript());
        for direction in [Direction::Down, Direction::Up] {
            prop_assert_eq!(found.hop.counts(direction), expected.hop.counts(direction));
        }
    }

    #[test]
    fn every_packet_leaves_or_is_counted(entries in entries(), limit in 1u32..8, kind in 0usize..4) {
        let interval = CoDelSettings { target_ns: MILLISECOND, interval_ns: 4 * MILLISECOND };
        let discipline = [
            Discipline::CoDel(interval),
            Discipline::Red(RedSettings { least_packets: 1.0, most_packets: 3.0, weight: 0.5, ..Default::default() }),
            Discipline::Pie(PieSettings { target_ns: MILLISECOND, update_ns: MILLISECOND, burst_ns: MILLISECOND }),
            Discipline::Fair(FairSettings { codel: interval, queues: 2, quantum_bytes: 300 }),
        ][kind];
        let mut driver = hop(discipline, limit, false);
        driver.send_all(&entries);
        driver.run_to_the_end();
        for direction in [Direction::Down, Direction::Up] {
            let left: Vec<_> = driver.left_in(direction).collect();
            let bytes = left.iter().map(|one| u64::from(one.probe.bytes)).sum();
            assert_settled(driver.hop.counts(direction), left.len() as u64, bytes);
            if kind < 3 {
                prop_assert!(left.windows(2).all(|pair| pair[0].probe.number < pair[1].probe.number));
            }
        }
    }
}

/// Times at which a packet left behind one or more that were dropped, for packets that came in order.
fn drops(driver: &Driver<Managed<Probe>>) -> Vec<Nanoseconds> {
    let left = driver.left.windows(2);
    left.filter(|pair| pair[1].probe.number > pair[0].probe.number + 1).map(|pair| pair[1].at_ns).collect()
}

#[test]
fn codel_drops_ever_faster_by_its_control_law() {
    let mut driver = hop(Discipline::CoDel(CoDelSettings::default()), 1_000_000, false);
    // A tenth too much: waits stay above the target, however many are dropped one by one.
    stream(&mut driver, PACKET, PACKET_NS / 2, 1_500 * MILLISECOND);
    let times = drops(&driver);
    assert!(times.len() > 20, "{}", times.len());
    for (count, pair) in (1u32..).zip(times.windows(2)) {
        let expected_ns = 100.0 * MILLISECOND as f64 / f64::from(count).sqrt();
        let found_ns = (pair[1] - pair[0]) as f64;
        // A drop happens when a packet leaves, at most one packet later than the law has it.
        assert!((found_ns - expected_ns).abs() <= 1.01 * PACKET_NS as f64, "{count}: {found_ns} {expected_ns}");
    }
}

#[test]
fn codel_leaves_bursts_alone() {
    let mut driver = hop(Discipline::CoDel(CoDelSettings::default()), 1_000, false);
    for _ in 0..10 {
        // 90 packets at once wait up to 90 ms: less than the interval, and then the queue is empty.
        for _ in 0..90 {
            driver.send(Direction::Down, PACKET);
        }
        driver.run_until(driver.now + 300 * MILLISECOND);
    }
    assert_eq!((driver.left.len(), driver.hop.counts(Direction::Down).overflowed_packets), (900, 0));
}

#[test]
fn who_understands_marks_gets_them_instead_of_drops() {
    for discipline in [
        Discipline::CoDel(CoDelSettings::default()),
        Discipline::Fair(FairSettings::default()),
        Discipline::Red(RedSettings { weight: 0.1, ..Default::default() }),
    ] {
        let mut driver = hop(discipline, 1_000_000, true);
        let capable = Probe { understands_marks: true, ..PACKET };
        stream(&mut driver, capable, PACKET_NS * 99 / 100, 2 * SECOND);
        let counts = driver.hop.counts(Direction::Down);
        let marked = driver.left.iter().filter(|one| one.probe.marked).count() as u64;
        assert!(marked > 5 && marked <= counts.marked_packets, "{discipline:?}: {counts:?}");
        assert_eq!(counts.overflowed_packets, 0, "{discipline:?}");
        let mut deaf = hop(discipline, 1_000_000, true);
        stream(&mut deaf, PACKET, PACKET_NS * 99 / 100, 2 * SECOND);
        let counts = deaf.hop.counts(Direction::Down);
        assert!(counts.overflowed_packets > 5 && counts.marked_packets == 0, "{discipline:?}: {counts:?}");
    }
}

#[test]
fn pie_drops_what_is_too_much_and_holds_the_delay() {
    let mut driver = hop(Discipline::Pie(PieSettings::default()), 100_000, false);
    stream(&mut driver, PACKET, PACKET_NS / 2, 60 * SECOND);
    let late: Vec<_> = driver.left.iter().filter(|one| one.at_ns > 30 * SECOND).collect();
    let mean_ns = late.iter().map(|one| one.at_ns - one.probe.sent_ns).sum::<u64>() / late.len() as u64;
    // Of twice the rate a half is dropped; the rest waits for the target of 15 ms, is sent in 1 ms and travels 3 ms.
    assert!(mean_ns.abs_diff(19 * MILLISECOND) < 8 * MILLISECOND, "{mean_ns}");
    let counts = driver.hop.counts(Direction::Down);
    let share = counts.overflowed_packets as f64 / counts.offered_packets as f64;
    assert!((share - 0.5).abs() < 0.03, "{share}");
}

#[test]
fn a_sparse_flow_does_not_wait_for_a_greedy_one() {
    let mut driver = hop(Discipline::Fair(FairSettings::default()), 10_000, false);
    let greedy = Probe { flow: 1, ..PACKET };
    let sparse = Probe { flow: 2, bytes: 100, ..PACKET };
    for _ in 0..100 {
        let until = driver.now + 50 * MILLISECOND;
        stream(&mut driver, greedy, PACKET_NS / 2, until);
        driver.send(Direction::Down, sparse);
    }
    let waits = driver.left.iter().filter(|one| one.probe.flow == 2).map(|one| one.at_ns - one.probe.sent_ns);
    // At most the packet that is being sent, its own 0.1 ms and the way of 3 ms.
    assert!(waits.max().unwrap() <= PACKET_NS + 3_100_000);
    let greedy_wait = driver.left.iter().filter(|one| one.probe.flow == 1).map(|one| one.at_ns - one.probe.sent_ns);
    assert!(greedy_wait.max().unwrap() > 50 * MILLISECOND);
}

#[test]
fn flows_share_by_bytes_whatever_they_offer() {
    let mut driver = hop(Discipline::Fair(FairSettings::default()), 200, false);
    let flows = [(1, 1_500), (1, 1_500), (1, 1_500), (2, 300), (2, 300), (2, 300), (2, 300), (2, 300)];
    while driver.now < 10 * SECOND {
        for (flow, bytes) in flows {
            driver.send(Direction::Down, Probe { flow, bytes, ..PACKET });
        }
        driver.run_until(driver.now + PACKET_NS);
    }
    let bytes = |flow| -> f64 {
        let own = driver.left.iter().filter(|one| one.probe.flow == flow && one.at_ns > SECOND);
        own.map(|one| f64::from(one.probe.bytes)).sum()
    };
    let (one, other) = (bytes(1), bytes(2));
    assert!((one / other - 1.0).abs() < 0.02, "{one} {other}");
}

/// A line over which others send so much.
fn loaded(discipline: Discipline, limit_packets: u32, cross: CrossSettings) -> Driver<Managed<Probe>> {
    let mut line = settings(discipline, limit_packets, false);
    line.down.cross = Some(cross);
    Driver::new(Managed::new(&line, 7, "managed").unwrap())
}

#[test]
fn packets_wait_for_others_as_in_an_m_d_1_queue() {
    for load in [0.3, 0.6, 0.8] {
        let rate_bit_s = (load * RATE_BIT_S as f64) as u64;
        let cross = CrossSettings { rate_bit_s, packet_bytes: 1_000, arrivals: Arrivals::Poisson };
        let mut driver = loaded(Discipline::DropTail, 1_000_000, cross);
        // Few and small ones of ours, which load nothing.
        stream(&mut driver, Probe { bytes: 1, ..PACKET }, 97 * MILLISECOND, 4_000 * SECOND);
        let waits = driver.left.iter().map(|one| (one.at_ns - one.probe.sent_ns) as f64 / PACKET_NS as f64 - 3.001);
        let mean = waits.sum::<f64>() / driver.left.len() as f64;
        // Pollaczek and Khinchine: load / (2 (1 - load)) transmission times.
        let expected = load / (2.0 * (1.0 - load));
        assert!((mean / expected - 1.0).abs() < 0.05, "{load}: {mean} {expected}");
    }
}

#[test]
fn a_greedy_flow_gets_what_others_leave_and_counts_are_ours_alone() {
    let cross = CrossSettings { rate_bit_s: RATE_BIT_S / 4, packet_bytes: 1_000, arrivals: Arrivals::Poisson };
    for discipline in [Discipline::Fair(FairSettings::default()), Discipline::DropTail] {
        let mut driver = loaded(discipline, 50, cross);
        stream(&mut driver, PACKET, PACKET_NS / 2, 20 * SECOND);
        driver.run_to_the_end();
        assert_settled(driver.hop.counts(Direction::Down), driver.left.len() as u64, 1_000 * driver.left.len() as u64);
        if discipline != Discipline::DropTail {
            let share = driver.left.len() as f64 / 20_000.0;
            assert!((share - 0.75).abs() < 0.02, "{share}");
        }
    }
}

#[test]
fn impossible_settings_are_refused() {
    let refused = |discipline| Managed::<Probe>::new(&settings(discipline, 10, false), 1, "x").unwrap_err().to_string();
    let none = CoDelSettings { interval_ns: 0, ..CoDelSettings::default() };
    assert_eq!(refused(Discipline::CoDel(none)), "interval_s must be above 0, got 0");
    let turned = RedSettings { least_packets: 20.0, ..RedSettings::default() };
    assert_eq!(refused(Discipline::Red(turned)), "most_packets must be above least_packets, got 15");
    let no_queue = FairSettings { queues: 0, ..FairSettings::default() };
    assert_eq!(refused(Discipline::Fair(no_queue)), "queues must be at least 1, got 0");
    let still = PieSettings { update_ns: 0, ..PieSettings::default() };
    assert_eq!(refused(Discipline::Pie(still)), "update_s must be above 0, got 0");
}
