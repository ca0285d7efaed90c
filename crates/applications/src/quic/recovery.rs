//! Acknowledgement, loss recovery and congestion control of one sender (RFC 9002): NewReno, packet threshold, probes.

use std::collections::{BTreeMap, VecDeque};

use pepscope_path::{Nanoseconds, MILLISECOND, NEVER};

/// RFC 9002: kPacketThreshold (packets after a lost one that were acknowledged, section 6.1.1), kInitialRtt, kGranularity,
/// and the default max_ack_delay (RFC 9000, section 18.2).
const PACKET_THRESHOLD: u32 = 3;
const INITIAL_ROUND_TRIP_NS: Nanoseconds = 333 * MILLISECOND;
const GRANULARITY_NS: Nanoseconds = MILLISECOND;
pub(super) const ACKNOWLEDGEMENT_DELAY_NS: Nanoseconds = 25 * MILLISECOND;
const INITIAL_WINDOW_PACKETS: u64 = 10;
const LEAST_WINDOW_PACKETS: u64 = 2;
/// Packets before the largest acknowledged one that an acknowledgement names: the bits of `earlier`.
const REMEMBERED: u32 = u64::BITS;

/// What has to arrive: a place in an exchange, and the length of its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) exchange: u16,
    pub(super) index: u32,
    pub(super) count: u32,
    pub(super) bytes: u64,
    /// Length of the whole answer that a request asks for.
    pub(super) answer_bytes: u64,
}

#[derive(Debug)]
pub(super) struct Sender {
    packet_bytes: u64,
    waiting: VecDeque<Chunk>,
    in_flight: BTreeMap<u32, (Nanoseconds, Chunk)>,
    largest_acknowledged: Option<u32>,
    window_bytes: u64,
    threshold_bytes: u64,
    /// Losses of packets up to here belong to the last reduction.
    recovery_end: u32,
    smoothed_ns: Option<Nanoseconds>,
    variation_ns: Nanoseconds,
    probes: u32,
    last_sent_ns: Nanoseconds,
    probe_due: bool,
}

impl Sender {
    pub(super) fn new(packet_bytes: u64) -> Self {
        Self {
            packet_bytes,
            waiting: VecDeque::new(),
            in_flight: BTreeMap::new(),
            largest_acknowledged: None,
            window_bytes: INITIAL_WINDOW_PACKETS * packet_bytes,
            threshold_bytes: u64::MAX,
            recovery_end: 0,
            smoothed_ns: None,
            variation_ns: 0,
            probes: 0,
            last_sent_ns: 0,
            probe_due: false,
        }
    }

    pub(super) fn push(&mut self, chunk: Chunk) {
        self.waiting.push_back(chunk);
    }

    fn bytes_in_flight(&self) -> u64 {
        self.in_flight.values().map(|(_, chunk)| chunk.bytes).sum()
    }

    /// Whether the peer has acknowledged anything.
    pub(super) fn was_heard(&self) -> bool {
        self.largest_acknowledged.is_some()
    }

    /// What leaves now in the packet called `number`, if anything may.
    pub(super) fn send(&mut self, now: Nanoseconds, number: u32) -> Option<Chunk> {
        let may = std::mem::take(&mut self.probe_due)
            || self.bytes_in_flight() + self.packet_bytes <= self.window_bytes.max(self.packet_bytes);
        if !may {
            return None;
        }
        let chunk = self.waiting.pop_front()?;
        self.in_flight.insert(number, (now, chunk));
        self.last_sent_ns = now;
        Some(chunk)
    }

    /// The peer has packets up to `largest`, of those before it the ones in `earlier` (its lowest bit is the one before).
    pub(super) fn acknowledge(&mut self, now: Nanoseconds, largest: u32, earlier: u64) {
        let has = |number: u32| match largest.checked_sub(number) {
            None => false,
            Some(0) => true,
            Some(before) => before <= REMEMBERED && earlier >> (before - 1) & 1 == 1,
        };
        let newly: Vec<u32> = self.in_flight.keys().copied().filter(|number| has(*number)).collect();
        for number in &newly {
            let Some((sent_ns, chunk)) = self.in_flight.remove(number) else { continue };
            if *number == largest {
                self.measure(now - sent_ns);
            }
            if *number > self.recovery_end || self.recovery_end == 0 {
                let grown = self.packet_bytes * chunk.bytes / self.window_bytes.max(1);
                self.window_bytes += if self.window_bytes < self.threshold_bytes { chunk.bytes } else { grown };
            }
            self.probes = 0;
        }
        self.largest_acknowledged = self.largest_acknowledged.max(Some(largest));
        self.find_losses();
    }

    fn find_losses(&mut self) {
        let Some(largest) = self.largest_acknowledged else { return };
        let is_lost = |number: &u32| number + PACKET_THRESHOLD <= largest;
        let lost: Vec<u32> = self.in_flight.keys().copied().take_while(is_lost).collect();
        for number in lost.iter().rev() {
            if let Some((_, chunk)) = self.in_flight.remove(number) {
                self.waiting.push_front(chunk);
            }
        }
        if lost.last().is_some_and(|last| *last > self.recovery_end || self.recovery_end == 0) {
            self.recovery_end = self.in_flight.keys().next_back().copied().unwrap_or(largest).max(largest);
            self.window_bytes = (self.window_bytes / 2).max(LEAST_WINDOW_PACKETS * self.packet_bytes);
            self.threshold_bytes = self.window_bytes;
        }
    }

    /// RFC 9002, section 5.3.
    pub(super) fn measure(&mut self, round_trip_ns: Nanoseconds) {
        match &mut self.smoothed_ns {
            None => {
                self.smoothed_ns = Some(round_trip_ns);
                self.variation_ns = round_trip_ns / 2;
            }
            Some(smoothed_ns) => {
                self.variation_ns = (3 * self.variation_ns + smoothed_ns.abs_diff(round_trip_ns)) / 4;
                *smoothed_ns = (7 * *smoothed_ns + round_trip_ns) / 8;
            }
        }
    }

    /// RFC 9002, section 6.2.1.
    pub(super) fn probe_timeout_ns(&self) -> Nanoseconds {
        let smoothed_ns = self.smoothed_ns.unwrap_or(INITIAL_ROUND_TRIP_NS);
        let variation_ns = if self.smoothed_ns.is_some() { self.variation_ns } else { INITIAL_ROUND_TRIP_NS / 2 };
        let period_ns = smoothed_ns + (4 * variation_ns).max(GRANULARITY_NS) + ACKNOWLEDGEMENT_DELAY_NS;
        period_ns << self.probes.min(16)
    }

    pub(super) fn poll_timeout(&self) -> Nanoseconds {
        if self.in_flight.is_empty() {
            NEVER
        } else {
            self.last_sent_ns.saturating_add(self.probe_timeout_ns())
        }
    }

    /// Sends what was not acknowledged for too long once more.
    pub(super) fn handle_timeout(&mut self, now: Nanoseconds) {
        if self.poll_timeout() > now {
            return;
        }
        if let Some((_, (_, chunk))) = self.in_flight.pop_first() {
            self.waiting.push_front(chunk);
        }
        self.probes += 1;
        self.probe_due = true;
        self.last_sent_ns = now;
    }
}

/// Packets that have arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    pub(super) largest: Option<u32>,
    pub(super) earlier: u64,
}

impl Received {
    /// Whether the packet is new; whether it came in order.
    pub(super) fn take(&mut self, number: u32) -> (bool, bool) {
        let Some(largest) = self.largest else {
            self.largest = Some(number);
            return (true, number == 0);
        };
        if number > largest {
            let ahead = number - largest;
            let shifted = |bits: u32| if bits < REMEMBERED { self.earlier << bits } else { 0 };
            self.earlier = shifted(ahead) | if ahead <= REMEMBERED { 1 << (ahead - 1) } else { 0 };
            self.largest = Some(number);
            return (true, ahead == 1);
        }
        let before = largest - number;
        if before == 0 || before > REMEMBERED || self.earlier >> (before - 1) & 1 == 1 {
            return (false, false);
        }
        self.earlier |= 1 << (before - 1);
        (true, false)
    }
}

#[cfg(test)]
mod tests {
    use super::{Chunk, Received, Sender};
    use pepscope_path::MILLISECOND;

    fn chunk(index: u32) -> Chunk {
        Chunk { exchange: 0, index, count: 100, bytes: 1000, answer_bytes: 0 }
    }

    #[test]
    fn the_window_opens_by_what_is_acknowledged_and_halves_at_a_loss() {
        let mut sender = Sender::new(1000);
        (0..100).for_each(|index| sender.push(chunk(index)));
        let mut number = 0;
        while sender.send(0, number).is_some() {
            number += 1;
        }
        assert_eq!(number, 10);
        sender.acknowledge(50 * MILLISECOND, 0, 0);
        assert_eq!((sender.window_bytes, sender.smoothed_ns), (11_000, Some(50 * MILLISECOND)));
        // Packet 1 is missing, and three behind it have come.
        sender.acknowledge(51 * MILLISECOND, 4, 0b1011);
        assert_eq!(sender.waiting.front(), Some(&chunk(1)));
        assert_eq!(sender.window_bytes, 7000);
        sender.acknowledge(52 * MILLISECOND, 5, 0b1_0111);
        assert_eq!(sender.window_bytes, 7000);
    }

    #[test]
    fn silence_is_answered_with_a_probe() {
        let mut sender = Sender::new(1000);
        sender.push(chunk(0));
        assert!(sender.send(0, 0).is_some());
        let first = sender.poll_timeout();
        assert_eq!(first, (333 + 2 * 333 + 25) * MILLISECOND);
        sender.handle_timeout(first);
        assert_eq!(sender.send(first, 1), Some(chunk(0)));
        assert_eq!(sender.poll_timeout() - first, 2 * first);
    }

    #[test]
    fn packets_are_remembered_whatever_their_order() {
        let mut received = Received::default();
        assert_eq!(received.take(0), (true, true));
        assert_eq!(received.take(2), (true, false));
        assert_eq!(received.take(1), (true, false));
        assert_eq!(received.take(1), (false, false));
        assert_eq!((received.largest, received.earlier), (Some(2), 0b11));
        assert_eq!(received.take(70), (true, false));
        assert_eq!((received.largest, received.earlier), (Some(70), 0));
        assert_eq!(received.take(6), (true, false));
        assert_eq!(received.earlier, 1 << 63);
    }
}
