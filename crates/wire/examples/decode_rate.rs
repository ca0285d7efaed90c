//! Prints how many packets a second are read and decoded: `cargo run --release --example decode_rate FILE [ROUNDS]`.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use pepscope_wire::segment::Segment;
use pepscope_wire::{CaptureReader, PlainSegment, SegmentVisitor};

/// Sums keep the decoded fields alive.
#[derive(Default)]
struct Sums {
    payload_bytes: u64,
    stamps: u64,
}

impl Sums {
    fn add(&mut self, payload_length: u32, timestamps: Option<(u32, u32)>, sequence: u32, destination_port: u16) {
        self.payload_bytes += u64::from(payload_length);
        self.stamps = self.stamps.wrapping_add(timestamps.map_or(0, |(value, _)| u64::from(value)));
        self.stamps = self.stamps.wrapping_add(u64::from(sequence) ^ u64::from(destination_port));
    }
}

impl SegmentVisitor for Sums {
    type Stop = std::convert::Infallible;

    fn visit_plain(&mut self, segment: &PlainSegment<'_>) -> Result<bool, Self::Stop> {
        self.add(segment.payload_length, segment.timestamps, segment.sequence, segment.destination_port);
        Ok(true)
    }

    fn visit(&mut self, segment: &Segment<'_>) -> Result<(), Self::Stop> {
        self.add(segment.payload_length, segment.options.timestamps, segment.sequence, segment.destination_port);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("a capture file must be named")?);
    let rounds: usize = arguments.next().map_or(Ok(3), |rounds| rounds.parse())?;
    for _ in 0..rounds {
        let start = Instant::now();
        let mut reader = CaptureReader::open(&path)?;
        let mut sums = Sums::default();
        while reader.visit_many(u32::MAX, &mut sums)? == u32::MAX {}
        let elapsed_s = start.elapsed().as_secs_f64();
        let tally = reader.tally();
        println!(
            "{} packets, {} TCP, {} payload bytes ({:x}): {:.3} s, {:.2} M packets/s",
            tally.frames,
            tally.tcp_segments,
            sums.payload_bytes,
            sums.stamps,
            elapsed_s,
            tally.frames as f64 / elapsed_s / 1e6,
        );
        if let Some(damage) = &tally.damage {
            println!("  damaged at byte {}: {}", damage.byte_offset, damage.cause);
        }
    }
    Ok(())
}
