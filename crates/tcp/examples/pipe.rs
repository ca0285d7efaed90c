//! Time per data segment and its acknowledgement, both ends together, over an ideal pipe (and one that loses a little).
//!
//! `cargo run --release -p pepscope-tcp --example pipe [SEGMENTS [WINDOW_SEGMENTS]]`

use std::collections::VecDeque;
use std::time::Instant;

use pepscope_path::{Nanoseconds, MICROSECOND, MILLISECOND};
use pepscope_tcp::control::UNLIMITED;
use pepscope_tcp::{Connection, ContentId, Recovery, Segment, Settings};

const CONTENT: ContentId = ContentId(1);
const ONE_WAY_DELAY: Nanoseconds = 20 * MILLISECOND;
/// A 1500-byte packet at 100 Mbit/s.
const SPACING: Nanoseconds = 120 * MICROSECOND;

struct Pipe {
    /// One data segment in so many is lost; 0 for none.
    loses_one_in: u64,
    data_segments: u64,
    segments: VecDeque<(Nanoseconds, Segment)>,
    last_arrival: Nanoseconds,
}

impl Pipe {
    fn send(&mut self, now: Nanoseconds, segment: Segment) {
        if segment.payload_bytes > 0 && self.loses_one_in > 0 {
            self.data_segments += 1;
            if self.data_segments % self.loses_one_in == 0 {
                return;
            }
        }
        self.last_arrival = self.last_arrival.max(now + ONE_WAY_DELAY) + SPACING * u64::from(segment.payload_bytes > 0);
        self.segments.push_back((self.last_arrival, segment));
    }

    fn take(&mut self, now: Nanoseconds) -> Option<Segment> {
        if self.next() > now {
            return None;
        }
        self.segments.pop_front().map(|(_, segment)| segment)
    }

    fn next(&self) -> Nanoseconds {
        self.segments.front().map_or(Nanoseconds::MAX, |(arrival, _)| *arrival)
    }
}

fn run(name: &str, settings: Settings, segments: u64, loses_one_in: u64) {
    let total = segments * 1448;
    let mut server = Connection::server(settings, 0, 0);
    let mut client = Connection::client(settings, 0, 0);
    let mut pipes = [(); 2].map(|()| Pipe {
        loses_one_in,
        data_segments: 0,
        segments: VecDeque::with_capacity(4096),
        last_arrival: 0,
    });
    let mut written = 0;
    let mut read = 0;
    let mut now = 0;
    let begin = Instant::now();
    client.connect(now);
    let (mut server_is_due, mut client_is_due) = (true, true);
    while read < total {
        if server_is_due {
            if written < total && server.writable_bytes() > 0 {
                written += server.write(CONTENT, written, total - written);
            }
            while let Some(segment) = server.poll_transmit(now) {
                pipes[0].send(now, segment);
            }
        }
        if client_is_due {
            while let Some(run) = client.read(u64::MAX) {
                read += run.bytes;
            }
            while let Some(segment) = client.poll_transmit(now) {
                pipes[1].send(now, segment);
            }
        }
        let timer = server.poll_timeout().min(client.poll_timeout());
        now = pipes[0].next().min(pipes[1].next()).min(timer);
        if let Some(segment) = pipes[0].take(now) {
            client.handle_segment(now, &segment);
            (server_is_due, client_is_due) = (false, true);
        } else if let Some(segment) = pipes[1].take(now) {
            server.handle_segment(now, &segment);
            (server_is_due, client_is_due) = (true, false);
        } else {
            client.handle_timeout(now);
            server.handle_timeout(now);
            (server_is_due, client_is_due) = (true, true);
        }
    }
    let elapsed = begin.elapsed();
    let statistics = server.statistics();
    println!(
        "{name}: {:.1} ns a data segment with its ACKs, {} data segments, {} ACKs, {} sent again, {:.1} s simulated",
        elapsed.as_nanos() as f64 / statistics.data_segments_sent as f64,
        statistics.data_segments_sent,
        statistics.segments_received,
        statistics.retransmitted_segments,
        now as f64 / 1e9,
    );
}

fn main() {
    let argument = |place, default| std::env::args().nth(place).and_then(|text| text.parse().ok()).unwrap_or(default);
    let segments = argument(1, 2_000_000);
    let window_bytes = argument(2, 600) * 1448;
    let settings =
        Settings { receive_buffer_bytes: window_bytes, send_buffer_bytes: 2 * window_bytes, ..Settings::default() };
    run("delayed ACKs", settings, segments, 0);
    run("an ACK a segment", Settings { delayed_acknowledgement: None, ..settings }, segments, 0);
    run("SACK, 1 in 5,000 lost", settings, segments, 5_000);
    let unlimited = Settings { control: UNLIMITED, ..settings };
    run("SACK, 1 in 50 lost, no congestion control", unlimited, segments, 50);
    run(
        "NewReno without options",
        Settings { recovery: Recovery::NewReno, timestamps: false, sack: false, ..settings },
        segments,
        0,
    );
}
