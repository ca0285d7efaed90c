//! Prints how many packets a second are read and decoded: `cargo run --release --example decode_rate FILE [ROUNDS]`.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use pepscope_wire::segment::Segment;
use pepscope_wire::CaptureReader;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("a capture file must be named")?);
    let rounds: usize = arguments.next().map_or(Ok(3), |rounds| rounds.parse())?;
    for _ in 0..rounds {
        let start = Instant::now();
        let mut reader = CaptureReader::open(&path)?;
        // Sums keep the decoded fields alive.
        let mut payload_bytes = 0_u64;
        let mut stamps = 0_u64;
        let mut add = |segment: &Segment<'_>| {
            payload_bytes += u64::from(segment.payload_length);
            stamps = stamps.wrapping_add(segment.options.timestamps.map_or(0, |(value, _)| u64::from(value)));
            stamps = stamps.wrapping_add(u64::from(segment.sequence) ^ u64::from(segment.destination_port));
        };
        while reader.visit_next(&mut add)?.is_some() {}
        let elapsed_s = start.elapsed().as_secs_f64();
        let tally = reader.tally();
        println!(
            "{} packets, {} TCP, {payload_bytes} payload bytes ({stamps:x}): {:.3} s, {:.2} M packets/s",
            tally.frames,
            tally.tcp_segments,
            elapsed_s,
            tally.frames as f64 / elapsed_s / 1e6,
        );
        if let Some(damage) = &tally.damage {
            println!("  damaged at byte {}: {}", damage.byte_offset, damage.cause);
        }
    }
    Ok(())
}
