//! Real frames cost no memory once buffers and rings have grown: what is delivered or lost gives its buffer back.
#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use pepscope_drive::live::chain::LiveChain;
use pepscope_drive::live::frame::{Frame, Terminals};
use pepscope_drive::scenario::Scenario;
use pepscope_path::{Direction, Nanoseconds};

const TERMINALS: Terminals = Terminals { first_ipv4: 0, first_ipv6: 0, count: 1 };
const GAP_NS: Nanoseconds = 100_000;

/// Sends a packet each way every 0.1 ms; how many left.
fn pass(chain: &mut LiveChain, packets: std::ops::Range<u64>) -> u64 {
    let mut left = 0;
    for number in packets {
        let now = number * GAP_NS;
        let mut leave = |_, _, _| left += 1;
        chain.advance(now, &mut leave);
        for direction in [Direction::Down, Direction::Up] {
            let mut buffer = Frame::buffer(1500);
            buffer.resize(1000, 0);
            chain.enter(now, direction, Frame::new(buffer, direction, &TERMINALS), &mut leave);
        }
    }
    left
}

#[test]
fn frames_that_pass_overflow_or_are_lost_allocate_nothing() {
    let scenario = r#"{"name": "live", "duration_s": 1, "path": [
        {"kind": "wired", "down": {"rate_bit_s": 50000000, "queue_packets": 20, "delay_s": 0.01,
         "loss": {"kind": "independent", "probability": 0.1}}},
        {"kind": "variable-rate", "down": {"rates": {"kind": "constant", "rate_bit_s": 40000000}, "queue_packets": 30}}]}"#;
    let mut chain = LiveChain::new(&Scenario::from_json(scenario).unwrap(), 0..2).unwrap();
    assert!(pass(&mut chain, 0..5_000) > 0);
    let mut left = 0;
    let allocated = allocation_counter::measure(|| left = pass(&mut chain, 5_000..25_000));
    assert!(left > 10_000, "{left}");
    assert_eq!(allocated.count_total, 0, "{} bytes", allocated.bytes_total);
}
