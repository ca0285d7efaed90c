//! Controlled Delay (RFC 8289): packets are dropped when they leave, while all of an interval waited above the target.

use super::fifo::Fifo;
use crate::hop::{Datagram, HopCounts, Nanoseconds, MILLISECOND};
use crate::settings::SettingsError;

/// A queue this short is no standing queue, however long its packets waited (RFC 8289, section 5.4: one MTU).
const LEAST_BYTES: u64 = 1514;
/// A new dropping state soon after the last goes on with its rate (RFC 8289, section 5.5).
const MEMORY_INTERVALS: Nanoseconds = 16;

/// What CoDel is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoDelSettings {
    /// The wait that is acceptable all the time.
    pub target_ns: Nanoseconds,
    /// How long the wait may stay above it: about the longest round trip.
    pub interval_ns: Nanoseconds,
}

impl Default for CoDelSettings {
    fn default() -> Self {
        Self { target_ns: 5 * MILLISECOND, interval_ns: 100 * MILLISECOND }
    }
}

impl CoDelSettings {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if self.interval_ns == 0 {
            return Err(SettingsError::new("interval_s", 0, "above 0"));
        }
        Ok(())
    }
}

/// The state of RFC 8289, section 5.3, with its names.
#[derive(Clone, Debug)]
pub(super) struct CoDel {
    settings: CoDelSettings,
    marks: bool,
    first_above_ns: Option<Nanoseconds>,
    drop_next_ns: Nanoseconds,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl CoDel {
    pub(super) fn new(settings: CoDelSettings, marks: bool) -> Self {
        Self { settings, marks, first_above_ns: None, drop_next_ns: 0, count: 0, last_count: 0, dropping: false }
    }

    /// The next packet to send, after those that are dropped.
    pub(super) fn dequeue<P: Datagram>(
        &mut self,
        now: Nanoseconds,
        queue: &mut Fifo<P>,
        counts: &mut HopCounts,
    ) -> Option<P> {
        let (mut packet, mut may_drop) = self.next(now, queue);
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next_ns {
                self.count = self.count.saturating_add(1);
                let is_marked = self.drop(packet, counts);
                if is_marked.is_some() {
                    self.drop_next_ns = self.control_law(self.drop_next_ns);
                    return is_marked;
                }
                (packet, may_drop) = self.next(now, queue);
                self.dropping = may_drop;
                if may_drop {
                    self.drop_next_ns = self.control_law(self.drop_next_ns);
                }
            }
        } else if may_drop {
            let is_marked = self.drop(packet, counts);
            packet = if is_marked.is_some() { is_marked } else { self.next(now, queue).0 };
            self.dropping = true;
            let grown = self.count.saturating_sub(self.last_count);
            let is_soon = now.saturating_sub(self.drop_next_ns) < MEMORY_INTERVALS * self.settings.interval_ns;
            self.count = if grown > 1 && is_soon { grown } else { 1 };
            self.drop_next_ns = self.control_law(now);
            self.last_count = self.count;
        }
        packet
    }

    /// The first packet, and whether waits have been above the target for an interval.
    fn next<P: Datagram>(&mut self, now: Nanoseconds, queue: &mut Fifo<P>) -> (Option<P>, bool) {
        let Some((waited_ns, packet)) = queue.pop(now) else {
            self.first_above_ns = None;
            return (None, false);
        };
        if waited_ns < self.settings.target_ns || queue.bytes() <= LEAST_BYTES {
            self.first_above_ns = None;
            return (Some(packet), false);
        }
        let above_ns = *self.first_above_ns.get_or_insert(now.saturating_add(self.settings.interval_ns));
        (Some(packet), now >= above_ns)
    }

    /// The packet with a mark instead, where that is possible.
    fn drop<P: Datagram>(&self, packet: Option<P>, counts: &mut HopCounts) -> Option<P> {
        let mut packet = packet?;
        if self.marks && packet.understands_marks() {
            packet.mark_congestion();
            counts.marked_packets += 1;
            return Some(packet);
        }
        counts.overflow(&packet);
        None
    }

    /// RFC 8289, section 5.3: t + interval / sqrt(count).
    fn control_law(&self, from_ns: Nanoseconds) -> Nanoseconds {
        let step_ns = self.settings.interval_ns as f64 / f64::from(self.count.max(1)).sqrt();
        from_ns.saturating_add(step_ns as Nanoseconds)
    }
}
