//! Links of variable rate: bits under each rate, frozen service, reports, mahimahi's opportunities.
#![allow(clippy::unwrap_used)]

use crate::probe::{assert_settled, Driver, Entry, Probe};
use pepscope_path::{
    parse_mahimahi, AfterLastStep, Direction, Hop, LossSettings, Nanoseconds, Places, QueueLimit, QueueReport,
    QueueSettings, RadioFrames, RateProfile, RateStep, ReportSettings, Service, ServiceRule, VariableRate,
    VariableRateSettings, VaryingLineSettings, MILLISECOND, SECOND,
};
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest, Just, Strategy};

const MS: Nanoseconds = MILLISECOND;

fn profile(steps: &[(Nanoseconds, u64)]) -> RateProfile {
    let steps = steps.iter().map(|&(duration_ns, rate_bit_s)| RateStep { duration_ns, rate_bit_s }).collect();
    RateProfile::Steps { steps, after: AfterLastStep::Repeat }
}

fn rates(profile: RateProfile, rule: ServiceRule, frame_bytes: Option<u32>) -> Service {
    Service::Rates { profile, rule, radio_frames: frame_bytes.map(|frame_bytes| RadioFrames { frame_bytes }) }
}

fn link(service: Service, limit: QueueLimit, report_period_ns: Option<Nanoseconds>) -> VariableRate<Probe> {
    let queue = QueueSettings { limit, places: Places::WaitingAndInService, ..QueueSettings::default() };
    let settings = VariableRateSettings {
        down: VaryingLineSettings { service, queue, ..VaryingLineSettings::default() },
        up: VaryingLineSettings::default(),
        reports: report_period_ns.map(|period_ns| ReportSettings { period_ns, user: 0 }),
    };
    VariableRate::new(&settings, 4, "cell").unwrap()
}

fn probe(bytes: u32) -> Probe {
    Probe { bytes, headers: 40, ..Probe::default() }
}

/// 8 Mbit/s and 2 Mbit/s in turn, 1.5 ms each: 1,000 bytes take 1 ms, then half a millisecond and three quarters at a
/// quarter of the rate.
#[test]
fn bits_are_served_under_each_rate() {
    let service = rates(profile(&[(3 * MS / 2, 8_000_000), (3 * MS / 2, 2_000_000)]), ServiceRule::Exact, None);
    let mut driver = Driver::new(link(service, QueueLimit::Unlimited, None));
    for _ in 0..3 {
        driver.send(Direction::Down, probe(1_000));
    }
    driver.run_to_the_end();
    // The second has 500 bytes left at 1.5 ms, of which 375 fit 1.5 ms; the last 125 take 0.125 ms from 3 ms on.
    assert_eq!(driver.transcript(), [(0, MS), (1, 3_125_000), (2, 4_125_000)]);
}

#[test]
fn a_frozen_packet_keeps_the_rate_that_it_began_with() {
    let service = rates(profile(&[(3 * MS / 2, 8_000_000), (3 * MS / 2, 2_000_000)]), ServiceRule::Frozen, None);
    let mut driver = Driver::new(link(service, QueueLimit::Unlimited, None));
    for _ in 0..4 {
        driver.send(Direction::Down, probe(1_000));
    }
    driver.run_to_the_end();
    assert_eq!(driver.transcript(), [(0, MS), (1, 2 * MS), (2, 6 * MS), (3, 7 * MS)]);
}

#[test]
fn service_waits_out_an_outage() {
    for (rule, second) in [(ServiceRule::Exact, 5_500_000), (ServiceRule::Frozen, 2 * MS)] {
        let service = rates(profile(&[(3 * MS / 2, 8_000_000), (7 * MS / 2, 0)]), rule, None);
        let mut driver = Driver::new(link(service, QueueLimit::Unlimited, None));
        for _ in 0..3 {
            driver.send(Direction::Down, probe(1_000));
        }
        driver.run_to_the_end();
        let third = if rule == ServiceRule::Exact { second + MS } else { 6 * MS };
        assert_eq!(driver.transcript(), [(0, MS), (1, second), (2, third)]);
    }
}

/// Seed 003: frames of 40 bytes, 13 a packet of 512 bytes, a buffer of 200 frames.
#[test]
fn packets_are_cut_into_whole_frames_and_the_buffer_counts_them() {
    let service = rates(RateProfile::constant(320_000), ServiceRule::Exact, Some(40)); // a frame a millisecond
    let mut driver = Driver::new(link(service, QueueLimit::Frames(200), None));
    for _ in 0..20 {
        driver.send(Direction::Down, probe(512));
    }
    assert_eq!(driver.hop.counts(Direction::Down).overflowed_packets, 5); // 15 x 13 = 195
    driver.run_until(8 * MS - 1);
    driver.send(Direction::Down, probe(512)); // 188 left in the buffer: 7 frames of the first are out
    driver.run_until(8 * MS);
    driver.send(Direction::Down, probe(512)); // 187 and 13 fit
    assert_eq!(driver.hop.counts(Direction::Down).overflowed_packets, 6);
    driver.run_to_the_end();
    let times: Vec<_> = driver.left.iter().map(|left| left.at_ns / MS).collect();
    assert_eq!(times, (1..=16).map(|packet| 13 * packet).collect::<Vec<_>>());
}

#[test]
fn reports_have_queued_served_dropped_and_offered_frames() {
    let frames = |rule| {
        let service = rates(profile(&[(25 * MS, 320_000), (25 * MS, 640_000)]), rule, Some(40));
        let mut driver = Driver::new(link(service, QueueLimit::Frames(50), Some(25 * MS)));
        for _ in 0..4 {
            driver.send(Direction::Down, probe(512));
        }
        driver.run_until(75 * MS);
        let reports: Vec<(Nanoseconds, QueueReport)> =
            driver.left_in(Direction::Up).map(|left| (left.at_ns, left.probe.report.unwrap())).collect();
        reports
    };
    let report = |step: u32, queued_frames, served_frames, dropped_frames, offered_frames| {
        let report = QueueReport { step, queued_frames, served_frames, dropped_frames, offered_frames };
        (u64::from(step + 1) * 25 * MS, report)
    };
    // Three packets are 39 frames, the fourth does not fit. 25 frames at one a millisecond, then two a millisecond.
    assert_eq!(
        frames(ServiceRule::Exact),
        [report(0, 14, 25, 13, 25), report(1, 0, 14, 0, 50), report(2, 0, 0, 0, 25)]
    );
    // The second packet keeps its one frame a millisecond until 26 ms.
    assert_eq!(
        frames(ServiceRule::Frozen),
        [report(0, 14, 25, 13, 25), report(1, 0, 14, 0, 50), report(2, 0, 0, 0, 25)]
    );
}

#[test]
fn a_late_driver_gets_every_report_as_of_its_time() {
    let service = rates(RateProfile::constant(320_000), ServiceRule::Exact, Some(40));
    let mut driver = Driver::new(link(service, QueueLimit::Unlimited, Some(10 * MS)));
    driver.send(Direction::Down, probe(1_000)); // 25 frames
    driver.now = 45 * MS;
    driver.send(Direction::Down, probe(1_000));
    let queued: Vec<_> =
        driver.left.iter().filter_map(|left| left.probe.report).map(|report| report.queued_frames).collect();
    assert_eq!(queued, [15, 5, 0, 0]);
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |service: Service, limit, reports| {
        let queue = QueueSettings { limit, ..QueueSettings::default() };
        let settings = VariableRateSettings {
            down: VaryingLineSettings { service, queue, ..VaryingLineSettings::default() },
            reports,
            ..VariableRateSettings::default()
        };
        VariableRate::<Probe>::new(&settings, 1, "cell").unwrap_err().to_string()
    };
    let plain = rates(RateProfile::constant(1_000), ServiceRule::Exact, None);
    assert_eq!(
        refused(plain.clone(), QueueLimit::Frames(9), None),
        "queue limit must be in packets or bytes without radio_frames, got 9 frames"
    );
    let reports = Some(ReportSettings { period_ns: MS, user: 0 });
    assert_eq!(
        refused(plain, QueueLimit::Unlimited, reports),
        "reports must be absent without radio_frames, got a report period"
    );
    let framed = rates(RateProfile::constant(1_000), ServiceRule::Exact, Some(40));
    refused(framed, QueueLimit::Unlimited, Some(ReportSettings { period_ns: 0, user: 0 }));
    refused(rates(RateProfile::constant(1_000), ServiceRule::Exact, Some(0)), QueueLimit::Unlimited, None);
    refused(rates(RateProfile::constant(0), ServiceRule::Exact, None), QueueLimit::Unlimited, None);
}

#[test]
fn a_saturated_trace_delivers_its_opportunities() {
    let service = Service::Opportunities(parse_mahimahi("2\n5\n5\n10\n").unwrap());
    let mut driver = Driver::new(link(service, QueueLimit::Packets(20), None));
    for _ in 0..1_000 {
        driver.run_until(driver.now + MS);
        driver.send(Direction::Down, probe(1_500));
    }
    assert_eq!(driver.left.len(), 400);
    assert_eq!(driver.hop.capacity_bits(driver.now, Direction::Down), Some(400 * 1_504 * 8));
    assert_eq!(driver.hop.capacity_bits(12 * MS, Direction::Down), Some(5 * 1_504 * 8));
}

/// A saturated exact link serves its integral to the bit, however fast the rate changes. A frozen one falls behind when
/// the rate changes within a packet's time, since slow packets hold it for longer than fast ones.
#[test]
fn no_bit_is_lost_at_a_change_of_rate() {
    let served_and_offered_bits = |period_ns, rule| {
        let random = RateProfile::Random { period_ns, low_bit_s: 91_000, high_bit_s: 638_000 };
        let mut driver = Driver::new(link(rates(random, rule, None), QueueLimit::Packets(15), None));
        let mut offered_bits = 0.0;
        for _ in 0..60_000 {
            driver.run_until(driver.now + MS);
            driver.send(Direction::Down, probe(512));
            let before = driver.now;
            driver.hop.observe(before, &mut |name, value| {
                if name == "down_rate_bit_s" {
                    offered_bits += value * 1e-3;
                }
            });
        }
        let capacity_bits = driver.hop.capacity_bits(driver.now, Direction::Down).unwrap() as f64;
        assert!((capacity_bits - offered_bits).abs() < 638.0, "{capacity_bits} counted, {offered_bits} seen");
        ((driver.left.len() * 512 * 8) as f64, offered_bits)
    };
    for period_ns in [20 * MS, 100 * MS, SECOND] {
        let (served, offered) = served_and_offered_bits(period_ns, ServiceRule::Exact);
        // Begins after the first millisecond; one packet may be on its way.
        assert!((served - offered).abs() < 2.0 * 4_096.0, "{served} of {offered}");
    }
    let (served, offered) = served_and_offered_bits(20 * MS, ServiceRule::Frozen);
    assert!((0.75..0.95).contains(&(served / offered)), "{served} of {offered}");
}

fn service() -> impl Strategy<Value = Service> {
    let steps =
        prop::collection::vec((1..30 * MS, prop_oneof![Just(0), 50_000..5_000_000u64]), 1..6).prop_map(|mut steps| {
            steps.push((50 * MS, 100_000));
            profile(&steps)
        });
    (steps, any::<bool>(), prop::option::of(20..200u32)).prop_map(|(profile, is_exact, frame_bytes)| {
        rates(profile, if is_exact { ServiceRule::Exact } else { ServiceRule::Frozen }, frame_bytes)
    })
}

proptest! {
    #[test]
    fn packets_and_frames_are_conserved(
        service in service(),
        limit in 20..400u32,
        gaps in prop::collection::vec((0..20 * MS, 20..1_501u32), 1..100),
    ) {
        let has_frames = matches!(&service, Service::Rates { radio_frames: Some(_), .. });
        let limit = if has_frames { QueueLimit::Frames(limit) } else { QueueLimit::Packets(limit) };
        let report_period_ns = has_frames.then_some(25 * MS);
        let mut driver = Driver::new(link(service.clone(), limit, report_period_ns));
        let mut nervous = Driver::new(link(service.clone(), limit, report_period_ns));
        let mut at_ns = 0;
        for (gap, bytes) in gaps {
            at_ns += gap;
            let entry = Entry { at_ns, direction: Direction::Down, bytes };
            driver.send_all(&[entry]);
            while nervous.now < at_ns {
                nervous.run_until((nervous.now + 5 * MS).min(at_ns));
                nervous.wake();
            }
            nervous.send_all(&[entry]);
        }
        driver.run_until(at_ns + 100 * SECOND);
        nervous.run_until(at_ns + 100 * SECOND);
        prop_assert_eq!(&driver.left, &nervous.left);
        let left: Vec<_> = driver.left_in(Direction::Down).collect();
        let bytes = left.iter().map(|left| u64::from(left.probe.bytes)).sum();
        assert_settled(driver.hop.counts(Direction::Down), left.len() as u64, bytes);
        prop_assert!(left.windows(2).all(|pair| pair[0].probe.number < pair[1].probe.number));
        if let Service::Rates { radio_frames: Some(frames), .. } = service {
            let reports = || driver.left_in(Direction::Up).filter_map(|left| left.probe.report);
            let served: u64 = reports().map(|report| u64::from(report.served_frames)).sum();
            let sent: u64 = left.iter().map(|left| u64::from(left.probe.bytes.div_ceil(frames.frame_bytes))).sum();
            prop_assert_eq!(served, sent);
            if let QueueLimit::Frames(limit) = limit {
                prop_assert!(reports().all(|report| report.queued_frames <= limit));
            }
        }
    }
}

#[test]
fn losses_follow_service() {
    let down = VaryingLineSettings {
        service: rates(RateProfile::constant(8_000_000), ServiceRule::Exact, None),
        loss: LossSettings::Listed { numbers: vec![0] },
        delay_ns: 5,
        ..VaryingLineSettings::default()
    };
    let settings = VariableRateSettings { down, ..VariableRateSettings::default() };
    let mut driver = Driver::new(VariableRate::new(&settings, 1, "cell").unwrap());
    driver.send(Direction::Down, probe(1_000));
    driver.send(Direction::Down, probe(1_000));
    driver.run_to_the_end();
    assert_eq!(driver.transcript(), [(1, 2 * MS + 5)]);
}
