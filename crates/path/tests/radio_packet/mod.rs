//! The packet that radio tests send, and a driver that notes what comes out.

#![allow(dead_code, reason = "each test file uses its own part")]

use pepscope_path::{Datagram, Direction, Hop, Nanoseconds, QueueReport};

#[derive(Clone, Debug)]
pub struct RadioPacket {
    user: u16,
    bytes: u32,
    pub number: u64,
    marked: bool,
    report: Option<QueueReport>,
}

impl RadioPacket {
    pub fn new(user: u16, bytes: u32, number: u64) -> Self {
        Self { user, bytes, number, marked: false, report: None }
    }
}

impl Datagram for RadioPacket {
    fn length_bytes(&self) -> u32 {
        self.bytes
    }

    fn header_bytes(&self) -> u32 {
        40
    }

    fn user(&self) -> u16 {
        self.user
    }

    fn understands_marks(&self) -> bool {
        true
    }

    fn mark_congestion(&mut self) {
        self.marked = true;
    }

    fn from_report(user: u16, report: QueueReport) -> Option<Self> {
        Some(Self { report: Some(report), ..Self::new(user, 48, 0) })
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

/// A packet that has left a hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub time: Nanoseconds,
    pub direction: Direction,
    pub user: u16,
    pub number: u64,
    pub marked: bool,
    pub report: Option<QueueReport>,
}

impl Arrival {
    pub fn down(time: Nanoseconds, user: u16, number: u64) -> Self {
        Self { time, direction: Direction::Down, user, number, marked: false, report: None }
    }
}

/// Runs `hop` up to and including `end`; what leaves it.
pub fn run_until(hop: &mut impl Hop<RadioPacket>, end: Nanoseconds) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    while hop.poll_timeout() <= end {
        let time = hop.poll_timeout();
        hop.handle_timeout(time);
        while let Some((direction, packet)) = hop.poll_transmit(time) {
            let RadioPacket { user, number, marked, report, .. } = packet;
            arrivals.push(Arrival { time, direction, user, number, marked, report });
        }
    }
    arrivals
}
