//! `[server]` and `[mobile]`: how the TCP of each end is set.

use pepscope_path::{Nanoseconds, MILLISECOND};
use pepscope_tcp::control::{ControlKind, PLUG_IN_PREFIX};
use pepscope_tcp::{
    DelayedAcknowledgement, EcnMode, ProcessingSettings, Recovery, RetransmissionSettings, Settings, Stack,
    TimestampSource,
};

use super::host_defaults::HostDefaults;
use super::times::read_times_where;
use crate::fields::{Fields, Read};

const MOST_BUFFER_BYTES: u64 = 1 << 30; // the largest scaled window (RFC 7323, section 2.3)

/// Reads an end: its TCP, and how long its machine takes.
///
/// # Errors
/// If a field is outside its range.
pub(super) fn read_end(fields: &mut Fields) -> Read<End> {
    let tcp = read_endpoint(fields)?;
    Ok(End { times: read_times_where(fields, tcp.takes_time)?, tcp })
}

/// An end of the path.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub tcp: Settings,
    /// `None` where nothing takes time.
    pub times: Option<ProcessingSettings>,
}

/// Reads the settings of one end. All fields have defaults, those of a host of today:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `host` | `ideal`, `linux`, `windows`, `darwin` | `ideal` | whose choices where RFCs leave some: those of an ideal host, of a Linux kernel, of Windows 10 and 11, of macOS and iOS, see docs/models/hosts.md; other fields' defaults depend on it |
/// | `takes_time` | true, false | true, false with `ideal` | the machine takes time for packets, and its programs until they act |
/// | `times` | table | those of one machine | of `[server]` and `[mobile]`, where `takes_time`: how long, see [`super::times::read_times`] |
/// | `pacing` | true, false | false | segments are spaced out whatever the control: twice, in congestion avoidance 1.2 times as fast as a window a round trip, as Linux does with the queueing discipline `fq` |
/// | `control` | text | `cubic`; `cubic-hystart-plus-plus` with `windows`, `cubic-without-hystart` with `darwin` | congestion control, see [`pepscope_tcp::control::CONGESTION_CONTROLS`]; `plug-in:NAME` is one written in Python (docs/guide/simulation-plug-ins.md) |
/// | `recovery` | `sack`, `rack`, `new-reno`, `reno`, `tahoe` | `rack`, `sack` with `ideal` | how losses are repaired: RFC 6675; the same with what Linux does beyond it, PRR (RFC 6937) and retransmissions lost again detected by time (RFC 8985), with a kernel's `host` also a reordering window, tail loss probes, F-RTO and undone reductions (docs/models/hosts.md); RFC 6582; RFC 5681 |
/// | `maximum_segment_size_bytes` | 64-65495 | 1460 | announced over IPv4 (20 less over IPv6), and the most that is sent |
/// | `receive_buffer_bytes` | 1024-2^30 | 4194304; 6291456 with `linux`, 16776960 with `windows` | bounds the advertised window; with a kernel's `host` how far autotuning goes, with `linux` in memory (`tcp_rmem`) |
/// | `send_buffer_bytes` | 1024-2^30 | 4194304 | bounds what the application may write ahead |
/// | `initial_window_segments` | 1-1000 | 10 | RFC 6928 |
/// | `initial_slow_start_threshold_bytes` | 1-2^40 | none | slow start ends there |
/// | `window_scale` | 0-14, or -1 to offer none | least that covers the receive buffer; 8 with `windows`, at least 3 with `darwin` | RFC 7323 |
/// | `timestamps` | true, false | true | RFC 7323: the option is used where both ends have it |
/// | `timestamps_offered` | true, false | true, false with `windows` | it is offered in a SYN, too; if not, a SYN that offers it is answered with it |
/// | `timestamp_tick_s` | 0.000001-1 | 0.001 | step of the timestamp clock |
/// | `timestamp_drift_ppm` | -1000-1000 | 0 | what the timestamp clock gains on true time; its step is a whole number of nanoseconds |
/// | `timestamp_source` | `connection`, `machine` | `connection` | what counts timestamps from a number of its own: each connection, or the machine for all its connections; each mobile is a machine |
/// | `sack` | true, false | true | offered, and sent if both offer it (RFC 2018) |
/// | `duplicate_sack` | true, false | true | RFC 2883 |
/// | `limited_transmit` | true, false | true | RFC 3042 |
/// | `ecn` | `off`, `standard`, `every-packet` | `off` | RFC 3168; every mark echoed once (TCP-Jersey) |
/// | `delayed_acknowledgement_segments` | 1-1000 | 2 | an ACK at least for every so many; 1 acknowledges each at once; `linux` and `darwin` decide by themselves beyond that |
/// | `delayed_acknowledgement_timeout_s` | 0.001-10 | 0.04, 0.1 with `darwin` | and at the latest after this; `linux` decides by itself |
/// | `quick_acknowledgements` | 0-1000000 | 16 | so many segments are acknowledged at once at the start; a kernel's `host` decides by itself |
/// | `retransmission_timeout_initial_s` | 0.001-1000 | 1 | RFC 6298; the papers' is 3 |
/// | `retransmission_timeout_minimum_s` | 0.001-1000 | 0.2, 0.3 with `windows` | RFC 6298; the papers' is 1; with `linux` what is at least added to the smoothed round trip, with `darwin` what is added to the sum |
/// | `retransmission_timeout_maximum_s` | 0.001-1000 | 120, 64 with `darwin` | RFC 6298; the papers' is 60 |
/// | `byte_counting_limit_segments` | 1-1000 | none; 1000 with `linux`, 2 with `darwin` | growth an ACK in slow start (RFC 3465); none counts ACKs, with `cubic` every segment |
/// | `restart_after_idle` | true, false | true, false with `windows` | RFC 5681, section 4.1 |
/// | `handshake_retries` | 0-20 | 6, 4 with `windows` | SYNs sent again |
/// | `retransmission_retries` | 0-100 | 15; 5 with `windows`, 12 with `darwin` | timeouts for the same data before giving up |
/// | `time_wait_s` | 0-240 | 60 | RFC 9293, section 3.6.1 |
/// | `time_to_live` | 1-255 | 64, 128 with `windows` | of sent packets |
///
/// # Errors
/// If a field is outside its range.
pub(super) fn read_endpoint(fields: &mut Fields) -> Read<Settings> {
    let stack = fields.choice(
        "host",
        &[("ideal", Stack::Ideal), ("linux", Stack::Linux), ("windows", Stack::Windows), ("darwin", Stack::Darwin)],
    )?;
    let host = HostDefaults::of(stack);
    let control = read_control(fields, host.control)?;
    let mut recoveries = [
        ("sack", Recovery::Sack),
        ("rack", Recovery::Rack),
        ("new-reno", Recovery::NewReno),
        ("reno", Recovery::Reno),
        ("tahoe", Recovery::Tahoe),
    ];
    if host.has_rack {
        recoveries.swap(0, 1); // the first is the default
    }
    let recovery = fields.choice("recovery", &recoveries)?;
    let receive_buffer_bytes =
        fields.integer("receive_buffer_bytes", 1024..=MOST_BUFFER_BYTES, host.receive_buffer_bytes)?;
    let every = fields.integer("delayed_acknowledgement_segments", 1..=1000, 2)? as u32;
    let timeout =
        fields.seconds("delayed_acknowledgement_timeout_s", 0.001..=10.0, host.delayed_acknowledgement_timeout_s)?;
    Ok(Settings {
        stack,
        takes_time: fields.flag("takes_time", host.takes_time)?,
        pacing: fields.flag("pacing", false)?,
        maximum_segment_size: fields.integer("maximum_segment_size_bytes", 64..=65_495, 1460)? as u16,
        receive_buffer_bytes,
        send_buffer_bytes: fields.integer("send_buffer_bytes", 1024..=MOST_BUFFER_BYTES, 4 << 20)?,
        initial_window_segments: fields.integer("initial_window_segments", 1..=1000, 10)? as u32,
        initial_slow_start_threshold_bytes: fields
            .optional_integer("initial_slow_start_threshold_bytes", 1..=1 << 40)?
            .unwrap_or(u64::MAX),
        window_scale: read_window_scale(fields, &host, receive_buffer_bytes)?,
        timestamps: fields.flag("timestamps", true)?,
        timestamps_offered: fields.flag("timestamps_offered", host.timestamps_offered)?,
        timestamp_tick: read_timestamp_tick(fields)?,
        timestamp_source: fields.choice(
            "timestamp_source",
            &[("connection", TimestampSource::Connection), ("machine", TimestampSource::Machine)],
        )?,
        sack: fields.flag("sack", true)?,
        duplicate_sack: fields.flag("duplicate_sack", true)?,
        limited_transmit: fields.flag("limited_transmit", true)?,
        ecn: fields.choice(
            "ecn",
            &[("off", EcnMode::Off), ("standard", EcnMode::Standard), ("every-packet", EcnMode::EveryPacket)],
        )?,
        delayed_acknowledgement: (every > 1).then_some(DelayedAcknowledgement { every, timeout }),
        quick_acknowledgements: fields.integer("quick_acknowledgements", 0..=1_000_000, 16)? as u32,
        retransmission: RetransmissionSettings {
            initial: fields.seconds("retransmission_timeout_initial_s", 0.001..=1000.0, 1.0)?,
            minimum: fields.seconds("retransmission_timeout_minimum_s", 0.001..=1000.0, host.minimum_timeout_s)?,
            maximum: fields.seconds("retransmission_timeout_maximum_s", 0.001..=1000.0, host.maximum_timeout_s)?,
            clock_granularity: MILLISECOND,
            estimator: host.estimator,
        },
        recovery,
        control,
        byte_counting_limit_segments: fields
            .optional_integer("byte_counting_limit_segments", 1..=1000)?
            .map(|limit| limit as u32)
            .or(host.byte_counting_limit_segments),
        restart_after_idle: fields.flag("restart_after_idle", host.restart_after_idle)?,
        handshake_retries: fields.integer("handshake_retries", 0..=20, host.handshake_retries)? as u32,
        retransmission_retries: fields.integer("retransmission_retries", 0..=100, host.retransmission_retries)? as u32,
        time_wait: fields.seconds("time_wait_s", 0.0..=240.0, 60.0)?,
        time_to_live: fields.integer("time_to_live", 1..=255, host.time_to_live)? as u8,
        ..Settings::default()
    })
}

/// One of the list, or `plug-in:` with the name of a plug-in behind it.
fn read_control(fields: &mut Fields, default: &str) -> Read<ControlKind> {
    if let Some(name) = fields.given_text("control").and_then(|name| name.strip_prefix(PLUG_IN_PREFIX)) {
        let control = ControlKind::plug_in(name);
        fields.text("control", "")?;
        return Ok(control);
    }
    let mut controls: Vec<_> = ControlKind::all().map(|kind| (kind.name(), kind)).collect();
    controls.sort_by_key(|(name, _)| *name != default); // the first is the default
    fields.choice("control", &controls)
}

/// How long a step of the timestamp clock takes in true time.
fn read_timestamp_tick(fields: &mut Fields) -> Read<Nanoseconds> {
    let tick_ns = fields.seconds("timestamp_tick_s", 1e-6..=1.0, 0.001)?;
    let drift_ppm = fields.number("timestamp_drift_ppm", -1000.0..=1000.0, 0.0)?;
    Ok((tick_ns as f64 / (1.0 + drift_ppm * 1e-6)).round() as Nanoseconds)
}

fn read_window_scale(fields: &mut Fields, host: &HostDefaults, receive_buffer_bytes: u64) -> Read<Option<u8>> {
    let least = host.window_scale(receive_buffer_bytes);
    let scale = fields.number("window_scale", -1.0..=14.0, f64::from(least))?;
    if scale.fract() != 0.0 {
        return Err(fields.refuse("window_scale", scale, "a whole number from -1 to 14"));
    }
    Ok((scale >= 0.0).then_some(scale as u8))
}
