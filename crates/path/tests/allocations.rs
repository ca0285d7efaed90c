//! No hop allocates once its rings have grown: memory does not depend on how much passes.
#![allow(clippy::unwrap_used)]

mod probe;

use pepscope_path::umts::{
    DedicatedChannel, DedicatedChannelSettings, HeaderCompression, RadioLinkControlSettings, TransportChannelSettings,
};
use pepscope_path::{
    Direction, Hop, LineSettings, LossSettings, Nanoseconds, Opportunities, QueueLimit, QueueSettings, RadioFrames,
    RateProfile, ReportSettings, Service, ServiceRule, VariableRate, VariableRateSettings, VaryingLineSettings, Wired,
    WiredSettings, MILLISECOND,
};
use probe::Probe;

/// Sends a packet down every `gap_ns` and one up every second time, and throws away what comes out.
fn pass(hop: &mut impl Hop<Probe>, from: u64, packets: u64, gap_ns: Nanoseconds) -> u64 {
    let mut left = 0;
    for packet in from..from + packets {
        let now = packet * gap_ns;
        while hop.poll_timeout() <= now {
            let due = hop.poll_timeout();
            hop.handle_timeout(due);
            while hop.poll_transmit(due).is_some() {
                left += 1;
            }
        }
        hop.handle_packet(now, Direction::Down, Probe { bytes: 1_000, headers: 40, ..Probe::default() });
        if packet % 2 == 0 {
            hop.handle_packet(now, Direction::Up, Probe { bytes: 40, headers: 40, ..Probe::default() });
        }
    }
    left
}

fn assert_steady(mut hop: impl Hop<Probe>, gap_ns: Nanoseconds) {
    pass(&mut hop, 0, 20_000, gap_ns);
    let mut left = 0;
    let allocated = allocation_counter::measure(|| left = pass(&mut hop, 20_000, 20_000, gap_ns));
    assert!(left > 20_000, "{left} packets only");
    assert_eq!(allocated.count_total, 0, "{} bytes", allocated.bytes_total);
}

const QUEUE: QueueSettings =
    QueueSettings { limit: QueueLimit::Packets(50), places: pepscope_path::Places::Waiting, marking: None };

#[test]
fn wired_links_do_not_allocate() {
    let loss = LossSettings::Independent { probability: 0.01 };
    let line = LineSettings { rate_bit_s: Some(7_900_000), delay_ns: 20 * MILLISECOND, queue: QUEUE, loss };
    let settings = WiredSettings { down: line.clone(), up: line };
    assert_steady(Wired::new(&settings, 1, "link").unwrap(), MILLISECOND);
}

#[test]
fn links_of_variable_rate_do_not_allocate() {
    let profile = RateProfile::Random { period_ns: 20 * MILLISECOND, low_bit_s: 4_000_000, high_bit_s: 12_000_000 };
    let radio_frames = Some(RadioFrames { frame_bytes: 40 });
    for service in [
        Service::Rates { profile: profile.clone(), rule: ServiceRule::Exact, radio_frames },
        Service::Rates { profile, rule: ServiceRule::Frozen, radio_frames },
        Service::Opportunities(Opportunities::of_mahimahi((1..=50).map(|step| 2 * step).collect())),
    ] {
        let has_frames = matches!(service, Service::Rates { .. });
        let down = VaryingLineSettings { service, queue: QUEUE, ..VaryingLineSettings::default() };
        let reports = has_frames.then_some(ReportSettings { period_ns: 25 * MILLISECOND, user: 0 });
        let settings = VariableRateSettings { down, reports, ..VariableRateSettings::default() };
        assert_steady(VariableRate::new(&settings, 1, "cell").unwrap(), MILLISECOND);
    }
}

#[test]
fn dedicated_channels_do_not_allocate() {
    let channel = TransportChannelSettings {
        rate_bit_s: 384_000,
        transmission_time_interval_ns: 10 * MILLISECOND,
        block_error_rate: 0.1,
        delay_ns: 20 * MILLISECOND,
        buffer: QueueLimit::Packets(50),
    };
    let settings = DedicatedChannelSettings {
        down: channel,
        up: channel,
        compression: HeaderCompression { compressed_header_bytes: Some(4), pdcp_header_bytes: 1 },
        radio_link_control: RadioLinkControlSettings::default(),
    };
    assert_steady(DedicatedChannel::new(&settings, 1, "dch").unwrap(), 30 * MILLISECOND);
}
