//! What leaves the sender.

use pepscope_path::{Nanoseconds, NEVER};

use super::{Outgoing, Sender};
use crate::control::CongestionControl;
use crate::packets::segment::ContentId;
use crate::sending::flight::Sent;
use crate::statistics::Statistics;

/// Why no new data leaves.
enum Hold {
    /// The congestion window or an imposed one is full.
    Window,
    /// The peer's window is.
    Peer,
    /// There is none.
    Empty,
}

impl Sender {
    /// The next segment with data or FIN that may leave at `now`.
    #[inline]
    pub fn poll_transmit(&mut self, now: Nanoseconds, statistics: &mut Statistics) -> Option<Outgoing> {
        self.pacing_deadline = NEVER;
        let has_lost = self.flight.has_pending();
        let has_probe = self.linux.as_ref().is_some_and(|linux| linux.has_probe_due());
        if !has_probe && !has_lost && self.flight.next() >= self.queue.end() && !self.has_fin_to_send() {
            if self.flight.pipe_bytes() < self.window_bytes {
                self.is_window_limited = false;
                self.rate.note_limit(&self.flight);
            }
            if !self.episode.is_recovering() {
                return None;
            }
        }
        if now < self.release_at && !self.is_forced && !self.is_inside_burst(has_lost) {
            self.pacing_deadline = self.release_at;
            return None;
        }
        if has_probe {
            return self.poll_tail_probe(now, statistics);
        }
        if has_lost && self.linux.as_ref().is_some_and(|linux| linux.holds_repeats()) {
            if let Ok(outgoing) = self.new_segment(now) {
                return Some(outgoing);
            }
            if self.keeps_repeats_waiting() {
                return None;
            }
        }
        if has_lost {
            let (place, sent) = self.flight.first_pending()?;
            if self.repeat_allowance_bytes.is_some_and(|allowance| allowance < u64::from(sent.length)) {
                return None;
            }
            // A kernel counts packets, in which a FIN takes no room of its own.
            let fin_bytes = u64::from(self.linux.is_some() && sent.has_fin());
            if !self.is_forced && !self.fits(u64::from(sent.length) - fin_bytes) {
                self.is_window_limited = true;
                return None;
            }
            self.is_forced = false;
            return Some(self.resend(now, place, sent, statistics));
        }
        self.is_forced = false;
        match self.new_segment(now) {
            Ok(outgoing) => Some(outgoing),
            Err(Hold::Window) => {
                self.is_window_limited = true;
                None
            }
            Err(hold) => {
                let rescue = if self.episode.is_recovering() { self.poll_rescue(now, statistics) } else { None };
                if rescue.is_none() && matches!(hold, Hold::Peer) {
                    self.is_window_limited = false;
                    self.begin_probing(now);
                }
                rescue
            }
        }
    }

    #[inline]
    fn has_fin_to_send(&self) -> bool {
        self.fin_requested && !self.fin_sent
    }

    /// Whether the congestion window has room for `bytes`.
    #[inline]
    fn fits(&self, bytes: u64) -> bool {
        let mut pipe = self.flight.pipe_bytes();
        if !self.limited_transmit && !self.episode.is_recovering() {
            pipe += self.flight.sacked_bytes(); // room that new data may use by RFC 3042 only
        }
        pipe == 0 || pipe + bytes <= self.window_bytes.saturating_add_signed(self.episode.inflation_bytes())
    }

    /// Whether the peer's window has room for what comes next at `start`.
    pub(crate) fn may_send_beyond(&self, start: u64) -> bool {
        let written = self.queue.end().saturating_sub(start);
        self.right_edge.saturating_sub(start) >= self.segment_bytes.min(written).max(1)
    }

    /// The next new data, if there is any and the peer has room, whatever the congestion window.
    pub(crate) fn force_new_segment(&mut self, now: Nanoseconds) -> Option<Outgoing> {
        let start = self.flight.next();
        if self.queue.end() <= start || !self.may_send_beyond(start) {
            return None;
        }
        self.plan_single(start);
        let window_bytes = std::mem::replace(&mut self.window_bytes, u64::MAX / 2);
        let outgoing = self.new_segment(now).ok();
        self.window_bytes = window_bytes;
        outgoing
    }

    #[inline]
    fn new_segment(&mut self, now: Nanoseconds) -> Result<Outgoing, Hold> {
        let start = self.flight.next();
        let (content, content_offset, available) = match self.queue.at(start) {
            Some(run) => run,
            None if self.has_fin_to_send() => (ContentId::default(), 0, 0),
            None => return Err(Hold::Empty),
        };
        if self.restart_after_idle
            && self.flight.outstanding_bytes() == 0
            && start > 1
            && now.saturating_sub(self.last_sent_at) > self.timer.timeout()
        {
            self.last_sent_at = now;
            self.control.on_idle(now);
            self.window_bytes = self.control.window_bytes();
        }
        if self.offload.as_ref().is_some_and(|burst| !burst.continues(start)) && !self.plan_burst(now, start) {
            return Err(Hold::Window);
        }
        let planned = self.offload.as_ref().map_or(u64::MAX, |burst| burst.end().saturating_sub(start));
        let whole = self.segment_bytes.min(available).min(u64::from(u16::MAX)).min(planned);
        let mut payload = whole;
        if let Some(limit) = self.window_limit {
            let allowed = self.flight.unacknowledged().saturating_add(limit).saturating_sub(start);
            if allowed < payload {
                // An imposed window below one segment must not stop the flow for good.
                if allowed == 0 || self.flight.outstanding_bytes() > 0 {
                    return Err(Hold::Window);
                }
                payload = allowed;
            }
        }
        let offered = self.right_edge.saturating_sub(start);
        if offered < payload {
            // Less than a segment leaves if it is half the largest window (RFC 9293, section 3.8.6.2.1) or overdue.
            let is_worthwhile = offered > 0 && (offered >= self.largest_window / 2 || self.probe_due);
            if !is_worthwhile {
                return Err(Hold::Peer);
            }
            payload = offered;
        }
        if !self.fits(payload.max(1)) {
            return Err(Hold::Window);
        }
        let end = start + payload;
        let has_fin = self.has_fin_to_send() && end == self.queue.end();
        let stamp = self.rate.stamp(now, &self.flight, payload);
        self.flight.push(payload as u32 + u32::from(has_fin), has_fin, now, stamp);
        self.episode.note_new_data(payload);
        self.fin_sent |= has_fin;
        self.probe_due = false;
        self.probed = false;
        self.probe_deadline = NEVER;
        let announces_reduction = self.reduction_unannounced && payload > 0;
        self.reduction_unannounced &= !announces_reduction;
        self.note_sent(now, payload as u32);
        self.note_sent_as_linux(now, true);
        let has_push = match &mut self.offload {
            Some(burst) => {
                burst.note_sent(end, payload < self.segment_bytes && payload > 0);
                burst.pushes(start, end, &self.queue)
            }
            None => self.queue.has_write_end(start, end),
        };
        Ok(Outgoing {
            start,
            payload_bytes: payload as u16,
            content,
            content_offset,
            has_fin,
            has_push,
            is_new: true,
            announces_reduction,
        })
    }

    pub(crate) fn resend(
        &mut self,
        now: Nanoseconds,
        place: usize,
        sent: Sent,
        statistics: &mut Statistics,
    ) -> Outgoing {
        if let Some(allowance) = &mut self.repeat_allowance_bytes {
            *allowance = allowance.saturating_sub(u64::from(sent.length));
        }
        let stamp = self.rate.stamp(now, &self.flight, u64::from(sent.length));
        self.flight.resend(place, now, stamp);
        let payload = sent.length - u32::from(sent.has_fin());
        let (content, content_offset, _) = self.queue.at(sent.start).unwrap_or_default();
        statistics.retransmitted_segments += 1;
        statistics.retransmitted_bytes += u64::from(payload);
        self.note_sent(now, payload);
        self.note_sent_as_linux(now, false);
        Outgoing {
            start: sent.start,
            payload_bytes: payload as u16,
            content,
            content_offset,
            has_fin: sent.has_fin(),
            has_push: self.queue.has_write_end(sent.start, sent.start + u64::from(payload)),
            is_new: false,
            announces_reduction: false,
        }
    }

    /// Where no new data can leave, SACK recovery sends what is missing but not yet declared lost, and once the newest
    /// segment (rules 3 and 4 of NextSeg, RFC 6675, section 4).
    fn poll_rescue(&mut self, now: Nanoseconds, statistics: &mut Statistics) -> Option<Outgoing> {
        // Where retransmissions are rationed, new data waits for the next allowance.
        if !self.uses_sack() || self.repeat_allowance_bytes.is_some() || self.linux.is_some() {
            return None;
        }
        let (place, sent, is_rescue) = match self.flight.first_missing() {
            Some((place, sent)) => (place, sent, false),
            None if self.episode.may_rescue() => {
                let (place, sent) = self.flight.last_unreported()?;
                (place, sent, true)
            }
            None => return None,
        };
        if !self.fits(u64::from(sent.length)) {
            return None;
        }
        if is_rescue {
            self.episode.rescued();
        }
        Some(self.resend(now, place, sent, statistics))
    }

    #[inline]
    fn note_sent(&mut self, now: Nanoseconds, payload_bytes: u32) {
        self.last_sent_at = now;
        self.episode.note_sent(u64::from(payload_bytes));
        if self.deadline == NEVER {
            self.restart_timer(now);
        }
        if self.needs.sent_segments {
            let in_flight = self.flight.pipe_bytes().saturating_sub(u64::from(payload_bytes));
            self.control.on_sent(now, in_flight, payload_bytes);
        }
        if let Some(rate) = self.pacing_rate_bytes_s() {
            self.space_out(now, payload_bytes, rate);
        }
    }

    /// Data waits for the peer's window and nothing in flight will bring news of it (RFC 9293, section 3.8.6.1).
    fn begin_probing(&mut self, now: Nanoseconds) {
        if self.flight.outstanding_bytes() > 0 || self.probe_deadline != NEVER || self.probe_due {
            return;
        }
        self.probe_interval = if self.probe_interval == 0 {
            self.timer.timeout()
        } else {
            self.probe_interval.saturating_mul(2).min(self.timer.maximum())
        };
        self.probe_deadline = now.saturating_add(self.probe_interval);
    }

    /// The probe of a closed window that is due: one byte beyond it.
    pub fn poll_probe(&mut self, now: Nanoseconds, statistics: &mut Statistics) -> Option<Outgoing> {
        if !self.probe_due {
            return None;
        }
        self.probe_due = false;
        let start = self.flight.next();
        if self.right_edge > start || self.flight.outstanding_bytes() > 0 {
            return None;
        }
        let (content, content_offset, _) = self.queue.at(start)?;
        self.probed = true;
        self.retries += 1;
        statistics.window_probes += 1;
        self.begin_probing(now);
        Some(Outgoing {
            start,
            payload_bytes: 1,
            content,
            content_offset,
            has_fin: false,
            has_push: false,
            is_new: false,
            announces_reduction: false,
        })
    }
}
