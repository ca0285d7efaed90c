//! When a terminal may send: requests, grants and reports of what is left (3GPP TS 36.321, 5.4.3 to 5.4.5).

use std::collections::VecDeque;

use super::settings::RequestSettings;
use crate::Nanoseconds;

/// The network's view of one terminal's queue, in bytes since the start.
///
/// Each transmission reports what is left; a terminal without leave to send asks at its next occasion. Either becomes
/// leave to send `grant_delay` later. Packets that come meanwhile leave together: that is what bunches
/// acknowledgements.
#[derive(Clone, Debug)]
pub struct Requests {
    period_ttis: u64,
    /// Occasions of this terminal: intervals of this remainder.
    offset: u64,
    grant_delay_ttis: u64,
    first_grant_bytes: u64,
    /// Total bytes that the network has granted to the terminal.
    granted: u64,
    sent: u64,
    /// Totals that will be granted, by interval number; they do not decrease.
    pending: VecDeque<(u64, u64)>,
    missed_occasion: bool,
}

impl Requests {
    #[must_use]
    pub fn new(settings: RequestSettings, tti: Nanoseconds, user: usize) -> Self {
        let period_ttis = settings.period.div_ceil(tti).max(1);
        Self {
            period_ttis,
            offset: user as u64 % period_ttis,
            grant_delay_ttis: settings.grant_delay.div_ceil(tti),
            first_grant_bytes: u64::from(settings.first_grant_bytes),
            granted: 0,
            sent: 0,
            pending: VecDeque::new(),
            missed_occasion: false,
        }
    }

    /// Begins interval number `tti` with `queued` bytes to send: takes grants, asks where this is an occasion. One in an
    /// interval in which the terminal may not send (`is_up`) counts in the next one.
    pub fn begin(&mut self, tti: u64, is_up: bool, queued: u64) {
        while let Some(&(due, total)) = self.pending.front() {
            if due > tti {
                break;
            }
            self.granted = self.granted.max(total);
            self.pending.pop_front();
        }
        let expects = self.granted > self.sent || self.pending.back().is_some_and(|&(_, total)| total > self.sent);
        let is_occasion = tti % self.period_ttis == self.offset || self.missed_occasion;
        self.missed_occasion = is_occasion && !is_up;
        if queued > 0 && !expects && is_occasion && is_up {
            self.pending.push_back((tti + self.grant_delay_ttis, self.sent + self.first_grant_bytes));
        }
    }

    /// New bytes that the terminal may send now.
    #[must_use]
    pub fn permitted(&self) -> u64 {
        self.granted.saturating_sub(self.sent)
    }

    /// The terminal has sent `bytes` new bytes in interval number `tti` and reported that `left` remain.
    pub fn sent(&mut self, tti: u64, bytes: u32, left: u64) {
        self.sent += u64::from(bytes);
        if left == 0 {
            self.granted = self.granted.min(self.sent); // what is left of a grant is padding
        } else {
            self.pending.push_back((tti + self.grant_delay_ttis, self.sent + left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Requests;
    use crate::lte::settings::RequestSettings;
    use crate::MILLISECOND;

    /// Intervals with what is sent in them, packets coming at the given ones; an interval carries 1000 bytes.
    fn transcript(arrivals: &[(u64, u64)], until: u64) -> Vec<(u64, u64)> {
        let mut requests = Requests::new(RequestSettings::default(), MILLISECOND, 0);
        let (mut queued, mut sent) = (0, Vec::new());
        for tti in 0..until {
            queued += arrivals.iter().filter(|arrival| arrival.0 == tti).map(|arrival| arrival.1).sum::<u64>();
            requests.begin(tti, true, queued);
            let bytes = requests.permitted().min(queued).min(1000);
            if bytes > 0 {
                queued -= bytes;
                requests.sent(tti, bytes as u32, queued);
                sent.push((tti, bytes));
            }
        }
        sent
    }

    #[test]
    fn a_lone_packet_waits_for_its_occasion_and_its_grant() {
        assert_eq!(transcript(&[(3, 60)], 100), [(18, 60)]); // asks at 10, may send at 18
        assert_eq!(transcript(&[(3, 60), (33, 60)], 100), [(18, 60), (48, 60)]);
    }

    #[test]
    fn packets_that_come_while_one_waits_leave_in_two_bunches() {
        let arrivals: Vec<(u64, u64)> = (3..18).map(|tti| (tti, 60)).collect();
        // 900 bytes wait at 18; 200 are granted blindly, the report brings the rest 8 ms later.
        assert_eq!(transcript(&arrivals, 100), [(18, 200), (26, 700)]);
    }

    #[test]
    fn a_long_queue_is_sent_without_pauses_once_it_is_known() {
        let sent = transcript(&[(0, 10_200)], 100);
        assert_eq!(sent[0], (8, 200));
        assert!(sent[1..].iter().zip(16..).all(|(&(tti, bytes), expected)| tti == expected && bytes == 1000));
        assert_eq!(sent.len(), 11);
    }
}
