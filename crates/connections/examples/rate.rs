//! How fast segments become connections: nanoseconds a packet on made-up traffic, or on a capture with its reading.
//!
//! `cargo run --release -p pepscope-connections --example rate -- [bulk|web] [packets] [columns]`
//! `cargo run --release -p pepscope-connections --example rate -- FILE [columns]`

use pepscope_connections::{json, read_capture, Analysis, Payload, ReadError, Settings, Source};
use pepscope_wire::segment::{flag, Segment, TcpOptions, Tunnel, TunnelKind};
use pepscope_wire::CaptureReader;
use std::convert::Infallible;
use std::time::Instant;

const SEGMENT_BYTES: u32 = 1448;
const PAYLOAD: [u8; 60] = [b'x'; 60];
const WEB_PACKETS: u64 = 20;

fn segment(
    flow: u32,
    up: bool,
    flags: u16,
    sequence: u32,
    acknowledgement: u32,
    payload_length: u32,
) -> Segment<'static> {
    let mut client = [0; 16];
    client[10..12].fill(0xff);
    let mut server = client;
    client[12..].copy_from_slice(&(0x0a00_0000 + flow / 60).to_be_bytes());
    server[12..].copy_from_slice(&[192, 0, 2, 1]);
    let client_port = 10_000 + (flow % 60) as u16;
    let (source, destination, source_port, destination_port) =
        if up { (client, server, client_port, 80) } else { (server, client, 80, client_port) };
    Segment {
        frame_index: 0,
        time_ns: 0,
        ip_version: 4,
        source,
        destination,
        source_port,
        destination_port,
        ttl: 64,
        ip_id: (sequence ^ acknowledgement) as u16,
        traffic_class: 0,
        flags,
        sequence,
        acknowledgement,
        window: 500,
        payload_length,
        payload: &PAYLOAD[..payload_length.min(60) as usize],
        options_raw: &[],
        options: TcpOptions::default(),
        header_truncated: false,
        options_truncated: false,
        tunnel: Tunnel { kind: TunnelKind::None, identifier: 0 },
    }
}

/// Two data segments, then their acknowledgement 20 packets later, in 16 connections in bursts of four.
fn bulk(number: u64) -> Segment<'static> {
    let flow = (number / 4 % 16) as u32;
    let step = number / 64 * 4 + number % 4;
    let sent = (step / 3 * 2) as u32;
    match step % 3 {
        2 => segment(flow, true, flag::ACK, 1, sent.saturating_sub(20).wrapping_mul(SEGMENT_BYTES), 0),
        part => segment(flow, false, flag::ACK, (sent + part as u32).wrapping_mul(SEGMENT_BYTES), 1, SEGMENT_BYTES),
    }
}

/// Connections of 20 packets, 64 at a time; every other one uses ports again.
fn web(number: u64) -> Segment<'static> {
    let group = number / (64 * WEB_PACKETS);
    let within = number % (64 * WEB_PACKETS);
    let connection = group * 64 + within % 64;
    let flow = (group / 2 * 64 + within % 64) as u32;
    let base = (connection as u32).wrapping_mul(0x9e37_79b1);
    match within / 64 {
        0 => segment(flow, true, flag::SYN, base, 0, 0),
        1 => segment(flow, false, flag::SYN | flag::ACK, base, base.wrapping_add(1), 0),
        2 => segment(flow, true, flag::ACK, base.wrapping_add(1), base.wrapping_add(1), 0),
        3 => segment(flow, true, flag::ACK, base.wrapping_add(1), base.wrapping_add(1), 100),
        18 => segment(
            flow,
            false,
            flag::FIN | flag::ACK,
            base.wrapping_add(1 + 7 * SEGMENT_BYTES),
            base.wrapping_add(101),
            0,
        ),
        19 => segment(
            flow,
            true,
            flag::FIN | flag::ACK,
            base.wrapping_add(101),
            base.wrapping_add(2 + 7 * SEGMENT_BYTES),
            0,
        ),
        step => {
            let sent = base.wrapping_add(1 + (step as u32 - 4) / 2 * SEGMENT_BYTES);
            if step % 2 == 0 {
                segment(flow, false, flag::ACK, sent, base.wrapping_add(101), SEGMENT_BYTES)
            } else {
                segment(flow, true, flag::ACK, base.wrapping_add(101), sent.wrapping_add(SEGMENT_BYTES), 0)
            }
        }
    }
}

/// A file, read without anyone who wants to know how far.
struct File<'a>(&'a std::path::Path);

impl Source for File<'_> {
    type Stop = Infallible;

    fn can_be_read_again(&self) -> bool {
        true
    }

    fn open(&mut self) -> Result<CaptureReader, ReadError<Infallible>> {
        CaptureReader::open(self.0).map_err(ReadError::Capture)
    }

    fn progress(&mut self, _: u64, _: u64) -> Result<(), Infallible> {
        Ok(())
    }
}

/// To keep packets and samples of payload, or connections alone.
fn settings(keep: bool) -> Settings {
    Settings { columns: keep, payload: if keep { Payload::Sample } else { Payload::Nothing } }
}

/// Read a capture into connections, then write them as JSON.
fn capture(path: &std::path::Path, keep: bool) -> Result<(), ReadError<Infallible>> {
    let start = Instant::now();
    let read = read_capture(&mut File(path), settings(keep), u64::MAX)?;
    let reading = start.elapsed();
    let count = read.connection_count();
    let (mut text, mut text_bytes) = (Vec::new(), 0);
    for batch in (0..count).step_by(64) {
        text.clear();
        // Cannot fail: no summary is in a file, and all are within the count.
        if read.write_json(batch..count.min(batch + 64), &mut text).is_ok() {
            text_bytes += text.len();
        }
    }
    let packets = read.tally().tcp_segments;
    println!(
        "{packets} packets, {count} connections: {:.1} ns a packet; JSON {text_bytes} bytes in {:?}",
        reading.as_nanos() as f64 / packets.max(1) as f64,
        start.elapsed() - reading
    );
    Ok(())
}

fn main() -> Result<(), ReadError<Infallible>> {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |index: usize| arguments.get(index).map(String::as_str).unwrap_or("");
    let path = std::path::Path::new(argument(1));
    if path.is_file() {
        return capture(path, argument(2) == "columns");
    }
    let make = if argument(1) == "web" { web } else { bulk };
    let packets: u64 = argument(2).parse().unwrap_or(4_000_000);
    let keep = argument(3) == "columns";

    let start = Instant::now();
    let mut sum = 0_u64;
    for number in 0..packets {
        sum = sum.wrapping_add(u64::from(std::hint::black_box(make(number)).sequence));
    }
    let making = start.elapsed();
    std::hint::black_box(sum);

    let start = Instant::now();
    let mut analysis = Analysis::new(settings(keep));
    for number in 0..packets {
        let made = make(number);
        analysis.push(&Segment { frame_index: number, time_ns: number as i64 * 1000, ..made });
    }
    let pushed = start.elapsed();
    let connections = analysis.finish();
    let finished = start.elapsed();
    let (mut text, mut text_bytes) = (Vec::new(), 0);
    for (identifier, connection) in connections.summaries().enumerate() {
        json::write_connection(&mut text, identifier as u64, &connection);
        if text.len() > 1 << 20 {
            text_bytes += text.len();
            text.clear();
        }
    }
    text_bytes += text.len();
    let written = start.elapsed();
    let each = |time: std::time::Duration| time.as_nanos() as f64 / packets as f64;
    println!(
        "{} packets, {} connections: making {:.1} ns, pushing {:.1} ns, finishing {:.1} ns a packet; JSON {} bytes in {:?}",
        packets,
        connections.len(),
        each(making),
        each(pushed) - each(making),
        each(finished - pushed),
        text_bytes,
        written - finished
    );
    Ok(())
}
