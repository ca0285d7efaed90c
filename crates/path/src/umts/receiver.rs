//! The receiving side of an RLC entity in acknowledged mode.

use std::collections::VecDeque;

use crate::hop::{Nanoseconds, NEVER};

use super::pdu::{status_runs, DataPdu, Missing, NumberedCounts, SequenceNumber, StatusPdu, BITMAP_PDUS, RUN_PDUS};
use super::settings::{RadioLinkControlSettings, StatusFormat};

#[derive(Clone, Debug)]
pub(super) struct Receiver {
    settings: RadioLinkControlSettings,
    /// VR(R): the first PDU that has not come.
    next: u64,
    /// The PDUs from VR(R) to VR(H): those received, and the gaps.
    received: VecDeque<Option<DataPdu>>,
    /// A PDU whose first SDUs were given up, and how many.
    given_up: Option<(u64, u16)>,
    report_is_due: bool,
    prohibited_until: Nanoseconds,
    next_periodic_ns: Nanoseconds,
}

impl Receiver {
    pub(super) fn new(settings: &RadioLinkControlSettings) -> Self {
        Self {
            settings: *settings,
            next: 0,
            received: VecDeque::new(),
            given_up: None,
            report_is_due: false,
            prohibited_until: 0,
            next_periodic_ns: settings.status_periodic_ns.unwrap_or(NEVER),
        }
    }

    /// Takes a PDU; calls `deliver` with each SDU that is complete, in order.
    pub(super) fn handle_data(&mut self, pdu: DataPdu, deliver: &mut impl FnMut(u64)) {
        self.report_is_due |= pdu.poll;
        let count = pdu.number.count_from(self.next);
        let place = count - self.next;
        if place >= u64::from(self.settings.window_pdus) {
            return; // outside the window: a repetition of one that came
        }
        let place = place as usize;
        if place > self.received.len() {
            self.report_is_due |= self.settings.status_on_gap;
        }
        while self.received.len() <= place {
            self.received.push_back(None);
        }
        self.received[place] = Some(pdu);
        self.deliver_in_sequence(deliver);
    }

    /// Obeys a command to move the window; SDUs that are complete by now are delivered.
    ///
    /// An SDU that ends after a gap may have begun in it, so it is discarded, unless the command has its beginning.
    pub(super) fn move_window(&mut self, points: NumberedCounts, deliver: &mut impl FnMut(u64)) {
        let Some(&(last, ends)) = points.as_slice().last() else {
            return;
        };
        let to = last.count_from(self.next);
        if to - self.next > u64::from(self.settings.window_pdus) {
            return; // a repetition of a command that was obeyed
        }
        let mut has_gap = false;
        while self.next < to {
            let number = SequenceNumber::of(self.next);
            let point = points.as_slice().iter().find(|&&(candidate, _)| candidate == number);
            has_gap &= point.is_none();
            match self.received.pop_front().flatten() {
                None => has_gap = true,
                Some(pdu) => {
                    let broken = point.map_or(u16::from(has_gap), |&(_, ends)| u16::from(ends));
                    self.deliver_ends(pdu, broken, deliver);
                    has_gap &= pdu.ends == 0;
                }
            }
            self.next += 1;
        }
        if ends > 0 {
            self.given_up = Some((to, u16::from(ends)));
        }
        self.deliver_in_sequence(deliver);
    }

    fn deliver_in_sequence(&mut self, deliver: &mut impl FnMut(u64)) {
        while let Some(&Some(pdu)) = self.received.front() {
            self.received.pop_front();
            self.deliver_ends(pdu, 0, deliver);
            self.next += 1;
        }
    }

    /// Delivers the SDUs that end in the PDU at VR(R) but for the first `broken`.
    fn deliver_ends(&mut self, pdu: DataPdu, broken: u16, deliver: &mut impl FnMut(u64)) {
        let given_up = self.given_up.filter(|&(count, _)| count == self.next).map_or(0, |(_, ends)| ends);
        for end in broken.max(given_up)..pdu.ends {
            deliver(pdu.first_end + u64::from(end));
        }
    }

    /// When a report may next be sent; [`NEVER`] if none is due.
    pub(super) fn report_ns(&self) -> Nanoseconds {
        if self.report_is_due {
            self.prohibited_until
        } else {
            NEVER
        }
    }

    pub(super) fn next_periodic_ns(&self) -> Nanoseconds {
        self.next_periodic_ns
    }

    /// Timer_Status_Periodic ran out.
    pub(super) fn handle_periodic(&mut self) {
        self.report_is_due = true;
        self.next_periodic_ns = self.next_periodic_ns.saturating_add(self.settings.status_periodic_ns.unwrap_or(NEVER));
    }

    /// Puts a status report in `queue`, in as many PDUs as it takes, and starts Timer_Status_Prohibit.
    pub(super) fn report(&mut self, now: Nanoseconds, queue: &mut VecDeque<StatusPdu>) {
        self.report_is_due = false;
        self.prohibited_until = now.saturating_add(self.settings.status_prohibit_ns);
        let room = status_runs(self.settings.pdu_bits, self.settings.status_format);
        let end = self.next + self.received.len() as u64;
        let mut from = self.next;
        let mut is_first = true;
        loop {
            let (missing, reached) = match self.settings.status_format {
                StatusFormat::List => self.list(from, end, room),
                StatusFormat::Bitmap => self.bitmap(from, end, room),
            };
            // ACK covers what this PDU lists as missing, so only the first may go beyond VR(R) (section 9.2.2.11.2).
            let before = SequenceNumber::of(if is_first { reached } else { self.next });
            queue.push_back(StatusPdu::Report { before, missing });
            is_first = false;
            from = reached;
            if from >= end {
                break;
            }
        }
    }

    fn is_missing(&self, count: u64) -> bool {
        matches!(self.received.get((count - self.next) as usize), Some(None))
    }

    fn list(&self, from: u64, end: u64, room: u32) -> (Missing, u64) {
        let mut runs = NumberedCounts::default();
        let mut used = 0;
        let mut count = from;
        while count < end {
            if !self.is_missing(count) {
                count += 1;
                continue;
            }
            if used == room {
                break;
            }
            let length =
                (1..RUN_PDUS).take_while(|&ahead| count + ahead < end && self.is_missing(count + ahead)).count();
            runs.push(SequenceNumber::of(count), length as u8 + 1);
            used += 1;
            count += length as u64 + 1;
        }
        (Missing::List(runs), count)
    }

    fn bitmap(&self, from: u64, end: u64, room: u32) -> (Missing, u64) {
        let length = (end - from).min(u64::from(room) * 8).min(BITMAP_PDUS);
        let received = (0..length).filter(|&bit| !self.is_missing(from + bit)).fold(0u128, |map, bit| map | (1 << bit));
        (Missing::Bitmap { first: SequenceNumber::of(from), length: length as u8, received }, from + length)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::super::pdu::{DataPdu, Missing, NumberedCounts, SequenceNumber, StatusPdu};
    use super::super::settings::{RadioLinkControlSettings, StatusFormat};
    use super::Receiver;

    /// PDU `count`, in which the SDU of the same count ends.
    fn pdu(count: u64) -> DataPdu {
        DataPdu { number: SequenceNumber::of(count), poll: false, first_end: count, ends: 1 }
    }

    fn receiver(status_format: StatusFormat) -> Receiver {
        Receiver::new(&RadioLinkControlSettings { status_format, ..RadioLinkControlSettings::default() })
    }

    fn take(receiver: &mut Receiver, counts: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut delivered = Vec::new();
        for count in counts {
            receiver.handle_data(pdu(count), &mut |sdu| delivered.push(sdu));
        }
        delivered
    }

    fn reports(receiver: &mut Receiver) -> Vec<StatusPdu> {
        let mut queue = VecDeque::new();
        receiver.report(0, &mut queue);
        queue.into()
    }

    #[test]
    fn delivery_waits_for_gaps_and_repetitions_are_ignored() {
        let mut receiver = receiver(StatusFormat::List);
        assert_eq!(take(&mut receiver, [0, 2, 3]), [0]);
        assert_eq!(take(&mut receiver, [0, 3]), Vec::<u64>::new());
        assert_eq!(take(&mut receiver, [1, 1, 4]), [1, 2, 3, 4]);
    }

    #[test]
    fn a_gap_asks_for_a_report_once_the_prohibit_time_is_over() {
        let mut receiver = receiver(StatusFormat::List);
        take(&mut receiver, [0, 1]);
        assert_eq!(receiver.report_ns(), u64::MAX);
        take(&mut receiver, [3]);
        assert_eq!(receiver.report_ns(), 0);
        receiver.report(7, &mut VecDeque::new());
        assert_eq!(receiver.report_ns(), u64::MAX);
        take(&mut receiver, [5]);
        assert_eq!(receiver.report_ns(), 60_000_007);
    }

    #[test]
    fn a_list_names_runs_and_goes_on_in_a_second_pdu() {
        let mut receiver = receiver(StatusFormat::List);
        take(&mut receiver, [20]); // 0 to 19 missing: runs of 16 and 4
        take(&mut receiver, (11..26).map(|half| 2 * half)); // 21, 23, .. 49 missing
        let [StatusPdu::Report { before, missing: Missing::List(first) }, StatusPdu::Report { before: again, missing: Missing::List(second) }] =
            reports(&mut receiver)[..]
        else {
            panic!("two lists");
        };
        let odd = |count: u64| (SequenceNumber::of(count), 1);
        assert_eq!(first.as_slice()[..3], [(SequenceNumber::of(0), 16), (SequenceNumber::of(16), 4), odd(21)]);
        assert_eq!(first.as_slice().len(), 15);
        assert_eq!(before, SequenceNumber::of(47)); // the first that it does not list
        assert_eq!(second.as_slice(), [odd(47), odd(49)]);
        assert_eq!(again, SequenceNumber::of(0));
    }

    #[test]
    fn a_bitmap_lists_received_pdus() {
        let mut receiver = receiver(StatusFormat::Bitmap);
        take(&mut receiver, [0, 2, 5]);
        let missing = Missing::Bitmap { first: SequenceNumber::of(1), length: 5, received: 0b10010 };
        assert_eq!(reports(&mut receiver), [StatusPdu::Report { before: SequenceNumber::of(6), missing }]);
    }

    /// SDUs that end after a gap are discarded unless they begin after it by the command.
    #[test]
    fn moving_the_window_delivers_what_is_complete() {
        let moved = |points: &[(u64, u8)]| {
            let mut receiver = receiver(StatusFormat::List);
            take(&mut receiver, [0, 2, 3, 5, 6, 8]);
            let mut list = NumberedCounts::default();
            points.iter().for_each(|&(count, ends)| list.push(SequenceNumber::of(count), ends));
            let mut delivered = Vec::new();
            receiver.move_window(list, &mut |sdu| delivered.push(sdu));
            delivered.extend(take(&mut receiver, [7]));
            delivered
        };
        assert_eq!(moved(&[(5, 0)]), [3, 5, 6, 7, 8]);
        assert_eq!(moved(&[(2, 0), (5, 0)]), [2, 3, 5, 6, 7, 8]);
        assert_eq!(moved(&[(2, 0), (5, 1)]), [2, 3, 6, 7, 8]);
        assert_eq!(moved(&[(8, 1)]), [3, 6]); // 7 was given up with it
        assert_eq!(moved(&[(1, 0)]), Vec::<u64>::new()); // an old command: still waiting for 1
    }
}
