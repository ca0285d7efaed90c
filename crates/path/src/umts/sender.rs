//! The transmitting side of an RLC entity in acknowledged mode.

use std::collections::VecDeque;

use crate::hop::{Nanoseconds, NEVER};
use crate::queues::queue::QueueLimit;

use super::pdu::{status_runs, DataPdu, Missing, NumberedCounts, SequenceNumber, StatusPdu};
use super::segmentation::{Cut, LastPdu, Segmentation};
use super::settings::{RadioLinkControlSettings, StatusFormat};

/// What became of a PDU that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Outstanding,
    Acknowledged,
    /// Given up; the receiver does not know it yet.
    Abandoned,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    fate: Fate,
    transmissions: u32,
    last_sent_ns: Nanoseconds,
    is_queued: bool,
    /// Number of the status PDU that called it missing last.
    called_missing_in: u64,
    cut: Cut,
}

/// A command to move the receiving window that was not yet answered.
#[derive(Clone, Copy, Debug)]
struct Move {
    to: u64,
    ends: u8,
    /// The end of each SDU given up; the last is `to` and `ends`.
    points: NumberedCounts,
    repeat_ns: Nanoseconds,
}

#[derive(Clone, Debug)]
pub(super) struct Sender<P> {
    settings: RadioLinkControlSettings,
    pub(super) sdus: Segmentation<P>,
    sent: VecDeque<Sent>,
    /// VT(A): the first PDU that is not acknowledged, also the first of `sent`.
    acknowledged: u64,
    retransmissions: VecDeque<u64>,
    moving: Option<Move>,
    move_is_due: bool,
    poll_expires_ns: Nanoseconds,
    poll_is_due: bool,
    /// The last PDU when the poll was sent, whose report answers it.
    polled: u64,
    status_pdus: u64,
    pub(super) lost_packets: u64,
    pub(super) sent_pdus: u64,
    pub(super) retransmitted_pdus: u64,
}

impl<P> Sender<P> {
    pub(super) fn new(settings: &RadioLinkControlSettings, buffer: QueueLimit) -> Self {
        Self {
            settings: *settings,
            sdus: Segmentation::new(settings.pdu_bits, buffer),
            sent: VecDeque::new(),
            acknowledged: 0,
            retransmissions: VecDeque::new(),
            moving: None,
            move_is_due: false,
            poll_expires_ns: NEVER,
            poll_is_due: false,
            polled: 0,
            status_pdus: 0,
            lost_packets: 0,
            sent_pdus: 0,
            retransmitted_pdus: 0,
        }
    }

    /// PDUs sent and not acknowledged.
    pub(super) fn window_pdus(&self) -> u64 {
        self.sent.len() as u64
    }

    /// Whether a transmission interval would find something to send.
    pub(super) fn has_data(&self) -> bool {
        self.move_is_due || self.poll_is_due || !self.retransmissions.is_empty() || self.may_send_new()
    }

    pub(super) fn next_timer_ns(&self) -> Nanoseconds {
        self.moving.filter(|_| !self.move_is_due).map_or(NEVER, |moving| moving.repeat_ns).min(self.poll_expires_ns)
    }

    pub(super) fn handle_timers(&mut self, now: Nanoseconds) {
        if self.moving.is_some_and(|moving| moving.repeat_ns <= now) {
            self.move_is_due = true;
        }
        if self.poll_expires_ns <= now {
            self.poll_expires_ns = NEVER;
            self.poll_is_due = self.sent.iter().any(|sent| sent.fate == Fate::Outstanding);
        }
    }

    /// The command to move the window, if it is due; it goes before data.
    pub(super) fn control_pdu(&mut self, now: Nanoseconds) -> Option<StatusPdu> {
        if !core::mem::take(&mut self.move_is_due) {
            return None;
        }
        let moving = self.moving.as_mut()?;
        moving.repeat_ns = now.saturating_add(self.settings.move_window_timer_ns);
        Some(StatusPdu::MoveWindow(moving.points))
    }

    /// The next data PDU: what is to be repeated goes before what is new.
    pub(super) fn data_pdu(&mut self, now: Nanoseconds) -> Option<DataPdu> {
        let count = match self.next_retransmission() {
            Some(count) => count,
            None if self.may_send_new() => self.make_pdu(),
            None if self.poll_is_due => self.last_outstanding()?,
            None => return None,
        };
        let asks = self.poll_is_due || (self.settings.poll.on_last_pdu && !self.has_more());
        if asks {
            self.poll_is_due = false;
            self.polled = self.next_pdu() - 1;
            self.poll_expires_ns = self.settings.poll.timer_ns.map_or(NEVER, |timer_ns| now.saturating_add(timer_ns));
        }
        let place = (count - self.acknowledged) as usize;
        let sent = self.sent.get_mut(place)?;
        sent.transmissions += 1;
        sent.last_sent_ns = now;
        self.sent_pdus += 1;
        self.retransmitted_pdus += u64::from(sent.transmissions > 1);
        Some(DataPdu {
            number: SequenceNumber::of(count),
            poll: asks,
            first_end: sent.cut.first_end,
            ends: sent.cut.ends,
        })
    }

    pub(super) fn handle_report(&mut self, now: Nanoseconds, before: SequenceNumber, missing: Missing) {
        self.status_pdus += 1;
        match missing {
            Missing::List(runs) => {
                for &(first, length) in runs.as_slice() {
                    let first = first.count_from(self.acknowledged);
                    for count in first..first + u64::from(length) {
                        self.repeat(count);
                    }
                }
            }
            Missing::Bitmap { first, length, received } => {
                let first = first.count_from(self.acknowledged);
                for bit in 0..u64::from(length) {
                    if received & (1 << bit) == 0 {
                        self.repeat(first + bit);
                    } else {
                        self.acknowledge(first + bit);
                    }
                }
            }
        }
        let before = before.count_from(self.acknowledged);
        if before <= self.next_pdu() {
            self.acknowledge_before(before);
            self.repeat_unreported(now, before);
        }
        self.advance();
        self.stop_answered_poll();
    }

    pub(super) fn handle_window_moved(&mut self, to: SequenceNumber) {
        if self.moving.is_some_and(|moving| SequenceNumber::of(moving.to) == to) {
            self.end_move();
            self.advance();
        }
    }

    /// VT(S): the next new PDU.
    fn next_pdu(&self) -> u64 {
        self.acknowledged + self.sent.len() as u64
    }

    fn sent_mut(&mut self, count: u64) -> Option<&mut Sent> {
        self.sent.get_mut(usize::try_from(count.checked_sub(self.acknowledged)?).ok()?)
    }

    fn may_send_new(&self) -> bool {
        self.sdus.has_new() && self.sent.len() < self.settings.window_pdus as usize
    }

    /// Whether anything would follow the PDU that is being sent.
    fn has_more(&self) -> bool {
        !self.retransmissions.is_empty() || self.may_send_new()
    }

    fn next_retransmission(&mut self) -> Option<u64> {
        while let Some(count) = self.retransmissions.pop_front() {
            if let Some(sent) = self.sent_mut(count) {
                sent.is_queued = false;
                if sent.fate == Fate::Outstanding {
                    self.drop_settled_retransmissions();
                    return Some(count);
                }
            }
        }
        None
    }

    /// So that an empty list means that nothing is to be repeated.
    fn drop_settled_retransmissions(&mut self) {
        while let Some(&count) = self.retransmissions.front() {
            match self.sent_mut(count) {
                Some(sent) if sent.fate == Fate::Outstanding => break,
                Some(sent) => sent.is_queued = false,
                None => {}
            }
            self.retransmissions.pop_front();
        }
    }

    fn last_outstanding(&mut self) -> Option<u64> {
        self.poll_is_due = false;
        let place = self.sent.iter().rposition(|sent| sent.fate == Fate::Outstanding)?;
        self.poll_is_due = true;
        Some(self.acknowledged + place as u64)
    }

    fn make_pdu(&mut self) -> u64 {
        let count = self.next_pdu();
        self.sent.push_back(Sent {
            fate: Fate::Outstanding,
            transmissions: 0,
            last_sent_ns: 0,
            is_queued: false,
            called_missing_in: 0,
            cut: self.sdus.cut(count),
        });
        count
    }

    /// A negative acknowledgement: repeats the PDU, or gives it up if it was sent as often as it may.
    fn repeat(&mut self, count: u64) {
        let status_pdus = self.status_pdus;
        let maximum = self.settings.maximum_transmissions.unwrap_or(u32::MAX);
        let Some(sent) = self.sent_mut(count) else {
            return;
        };
        sent.called_missing_in = status_pdus;
        if sent.fate != Fate::Outstanding || sent.is_queued {
            return;
        }
        if sent.transmissions < maximum {
            sent.is_queued = true;
            self.retransmissions.push_back(count);
        } else {
            let last_sdu = sent.cut.last_sdu;
            self.discard_through(last_sdu);
        }
    }

    /// Stops Timer_Poll once everything sent by the time of the poll is acknowledged, or the last of it called missing
    /// (section 9.5): its repetition asks again.
    fn stop_answered_poll(&mut self) {
        let status_pdus = self.status_pdus;
        if self.sent_mut(self.polled).is_none_or(|sent| sent.called_missing_in == status_pdus) {
            self.poll_expires_ns = NEVER;
        }
    }

    fn acknowledge(&mut self, count: u64) {
        if let Some(sent) = self.sent_mut(count) {
            if sent.fate == Fate::Outstanding {
                sent.fate = Fate::Acknowledged;
            }
        }
    }

    fn acknowledge_before(&mut self, before: u64) {
        let status_pdus = self.status_pdus;
        for sent in self.sent.iter_mut().take((before - self.acknowledged) as usize) {
            if sent.fate == Fate::Outstanding && sent.called_missing_in != status_pdus {
                sent.fate = Fate::Acknowledged;
            }
        }
    }

    fn repeat_unreported(&mut self, now: Nanoseconds, from: u64) {
        let Some(after_ns) = self.settings.unreported_is_lost_after_ns else {
            return;
        };
        for count in from..self.next_pdu() {
            if self.sent_mut(count).is_some_and(|sent| sent.last_sent_ns.saturating_add(after_ns) <= now) {
                self.repeat(count);
            }
        }
    }

    /// SDU discard with explicit signalling (sections 9.7.3 and 11.6): discards all SDUs up to `last`.
    fn discard_through(&mut self, last: u64) {
        let next_pdu = self.next_pdu();
        let (to, ends) = match self.sdus.give_up(last, next_pdu) {
            LastPdu::Unknown => return,
            LastPdu::Untold => (next_pdu, 0),
            LastPdu::Indicated(pdu) => match self.sent_mut(pdu) {
                // It holds a part of the next SDU as well, so the window moves only up to it.
                Some(sent) if sent.cut.last_sdu > last => (pdu, (last - sent.cut.first_end) as u8 + 1),
                _ => (pdu + 1, 0),
            },
        };
        for sent in self.sent.iter_mut().take((to - self.acknowledged) as usize) {
            if sent.fate == Fate::Outstanding {
                sent.fate = Fate::Abandoned;
            }
        }
        self.drop_settled_retransmissions();
        if self.moving.is_none_or(|moving| (to, ends) > (moving.to, moving.ends)) {
            let mut points = self.moving.map_or(NumberedCounts::default(), |moving| moving.points);
            let room = status_runs(self.settings.pdu_bits, StatusFormat::List).max(1);
            points.push_within(room, SequenceNumber::of(to), ends);
            self.moving = Some(Move { to, ends, points, repeat_ns: NEVER });
            self.move_is_due = true;
        }
    }

    fn end_move(&mut self) {
        let Some(moving) = self.moving.take() else {
            return;
        };
        self.move_is_due = false;
        for sent in self.sent.iter_mut().take((moving.to.saturating_sub(self.acknowledged)) as usize) {
            sent.fate = Fate::Acknowledged;
        }
    }

    /// Advances VT(A), and removes the SDUs whose last PDU is behind it: those still here were discarded.
    fn advance(&mut self) {
        while self.sent.front().is_some_and(|sent| sent.fate == Fate::Acknowledged) {
            self.sent.pop_front();
            self.acknowledged += 1;
        }
        self.drop_settled_retransmissions();
        self.lost_packets += self.sdus.forget_before(self.acknowledged);
    }
}
