//! Which packets find room in the buffer of a line.

use super::Line;
use crate::hop::{Datagram, Nanoseconds, SECOND};
use crate::queues::queue::QueueLimit;
use crate::transmitters::transmission::Transmitter;

impl<P: Datagram> Line<P> {
    /// Whether a packet that enters at `now` finds room, and if so, whether it is to be marked.
    #[inline(never)]
    pub(super) fn admit(&mut self, now: Nanoseconds, bytes: u32) -> Option<bool> {
        self.forget_departed(now);
        let frames = self.transmission.frames(bytes);
        if self.packets_in_system() >= self.admit_below_packets && !self.admits_by_size(now, bytes) {
            self.counts.overflowed_packets += 1;
            self.overflowed_bytes += u64::from(bytes);
            self.overflowed_frames += u64::from(frames);
            return None;
        }
        self.entered_frames += u64::from(frames);
        Some(self.average.is_some() && self.warns(now, bytes))
    }

    fn admits_by_size(&self, now: Nanoseconds, bytes: u32) -> bool {
        let mut system = self.system();
        let mut in_service = self.in_service().map(|(_, bytes)| self.size(bytes));
        if matches!(self.queue.limit, QueueLimit::Frames(_)) {
            let sent = self.sent_of_packet_in_service(now);
            system.frames -= sent;
            if let Some(served) = &mut in_service {
                served.frames -= sent;
            }
        }
        self.queue.admits(system, in_service, self.size(bytes))
    }

    /// Samples the average queue for an arrival of `bytes`; whether it is to be marked.
    fn warns(&mut self, now: Nanoseconds, bytes: u32) -> bool {
        let waiting = self.packets_in_system().saturating_sub(1) as u32;
        let Some(average) = &mut self.average else {
            return false;
        };
        let idle_s = now.saturating_sub(self.busy_until) as f64 / SECOND as f64;
        let idle_packets = idle_s / self.transmission.packet_s(bytes.max(1));
        average.sample(waiting, idle_packets)
    }
}
