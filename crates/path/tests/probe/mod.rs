//! A packet to send through hops, and a driver of one hop.

use pepscope_path::{Datagram, Direction, Hop, HopCounts, Nanoseconds, QueueReport, NEVER};

/// A packet that remembers when it entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    pub number: u64,
    pub bytes: u32,
    pub headers: u32,
    pub sent_ns: Nanoseconds,
    pub understands_marks: bool,
    pub marked: bool,
    pub report: Option<QueueReport>,
    pub flow: u64,
}

impl Datagram for Probe {
    fn length_bytes(&self) -> u32 {
        self.bytes
    }

    fn header_bytes(&self) -> u32 {
        self.headers
    }

    fn user(&self) -> u16 {
        0
    }

    fn understands_marks(&self) -> bool {
        self.understands_marks
    }

    fn mark_congestion(&mut self) {
        self.marked = true;
    }

    fn from_report(_user: u16, report: QueueReport) -> Option<Self> {
        Some(Self { bytes: 48, headers: 28, report: Some(report), ..Self::default() })
    }

    fn duplicate(&self) -> Self {
        *self
    }

    fn flow(&self) -> u64 {
        self.flow
    }
}

/// A packet that left a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    pub at_ns: Nanoseconds,
    pub direction: Direction,
    pub probe: Probe,
}

/// A packet of `bytes` that enters at `at_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub at_ns: Nanoseconds,
    pub direction: Direction,
    pub bytes: u32,
}

/// One hop in virtual time.
pub struct Driver<H> {
    pub hop: H,
    pub now: Nanoseconds,
    pub sent: u64,
    pub left: Vec<Left>,
}

#[allow(dead_code, reason = "each test file uses its own part of the driver")]
impl<H: Hop<Probe>> Driver<H> {
    pub fn new(hop: H) -> Self {
        Self { hop, now: 0, sent: 0, left: Vec::new() }
    }

    /// Serves every wake-up due by `until` at the time that it asks for.
    pub fn run_until(&mut self, until: Nanoseconds) {
        loop {
            let due = self.hop.poll_timeout();
            if due == NEVER || due > until {
                break;
            }
            self.now = self.now.max(due);
            self.wake();
        }
        self.now = self.now.max(until);
    }

    /// Until nothing is pending; for hops that fall silent.
    pub fn run_to_the_end(&mut self) {
        self.run_until(NEVER - 1);
    }

    pub fn wake(&mut self) {
        self.hop.handle_timeout(self.now);
        self.collect();
    }

    pub fn collect(&mut self) {
        while let Some((direction, probe)) = self.hop.poll_transmit(self.now) {
            self.left.push(Left { at_ns: self.now, direction, probe });
        }
    }

    /// Sends `probe`, numbered and stamped, at the present time.
    pub fn send(&mut self, direction: Direction, probe: Probe) {
        let probe = Probe { number: self.sent, sent_ns: self.now, ..probe };
        self.sent += 1;
        self.hop.handle_packet(self.now, direction, probe);
        self.collect();
    }

    /// Sends packets at their times, which do not go back.
    pub fn send_all(&mut self, entries: &[Entry]) {
        for entry in entries {
            self.run_until(entry.at_ns);
            self.send(entry.direction, Probe { bytes: entry.bytes, headers: 40, ..Probe::default() });
        }
    }

    pub fn left_in(&self, direction: Direction) -> impl Iterator<Item = &Left> {
        self.left.iter().filter(move |left| left.direction == direction)
    }

    /// Departures as (packet number, time).
    pub fn transcript(&self) -> Vec<(u64, Nanoseconds)> {
        self.left.iter().map(|left| (left.probe.number, left.at_ns)).collect()
    }
}

/// Everything offered in one direction went one way or another, and nothing is left inside.
#[allow(dead_code, reason = "each test file uses its own part of the driver")]
pub fn assert_settled(counts: HopCounts, left: u64, left_bytes: u64) {
    assert_eq!(counts.delivered_packets, left);
    assert_eq!(counts.delivered_bytes, left_bytes);
    assert_eq!(counts.offered_packets, counts.delivered_packets + counts.overflowed_packets + counts.lost_packets);
}
