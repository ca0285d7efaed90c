//! Service in bursts of a fixed number of bytes, as mahimahi's traces describe it.

use crate::hop::{Nanoseconds, MILLISECOND};
use crate::settings::SettingsError;
use crate::transmitters::transmission::Transmitter;

/// When a link may deliver bytes, and how many each time.
///
/// Mahimahi's rules (Netravali et al., "Mahimahi: accurate record-and-replay for HTTP", 2015): at each time
/// `opportunity_bytes` may leave; a packet may take several opportunities and an opportunity serve several packets;
/// what finds nothing to send is lost, and what comes at the very time of an opportunity has missed it; the list
/// repeats, its last time being the length of a round. In mahimahi a packet keeps its place until an opportunity begins
/// to send it, so its `packets=N` is [`crate::Places::WaitingAndInService`] here, which counts one that is partly sent
/// as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// Milliseconds from the start of a round, in order; the same time may come several times.
    pub times_ms: Vec<u64>,
    pub opportunity_bytes: u32,
    /// What each packet takes beside its IP bytes.
    pub overhead_bytes: u32,
}

/// A full packet of mahimahi's TUN device: 1,500 bytes of IP and the device's own header.
pub const MAHIMAHI_OPPORTUNITY_BYTES: u32 = 1_504;
/// The header that Linux puts before a packet of a TUN device that did not ask for none (IFF_NO_PI).
pub const MAHIMAHI_OVERHEAD_BYTES: u32 = 4;

impl Opportunities {
    /// The given times with mahimahi's sizes.
    #[must_use]
    pub fn of_mahimahi(times_ms: Vec<u64>) -> Self {
        Self { times_ms, opportunity_bytes: MAHIMAHI_OPPORTUNITY_BYTES, overhead_bytes: MAHIMAHI_OVERHEAD_BYTES }
    }

    /// Mean rate in bits a second, overhead included.
    #[must_use]
    pub fn mean_rate_bit_s(&self) -> f64 {
        let round_ms = self.times_ms.last().copied().unwrap_or(0) as f64;
        self.times_ms.len() as f64 * f64::from(self.opportunity_bytes) * 8_000.0 / round_ms
    }

    fn check(&self) -> Result<(), SettingsError> {
        if self.opportunity_bytes == 0 {
            return Err(SettingsError::new("opportunity_bytes", 0, "at least 1"));
        }
        if let Some(pair) = self.times_ms.windows(2).find(|pair| pair[0] > pair[1]) {
            return Err(SettingsError::new("a delivery time in ms", pair[1], "at least the one before"));
        }
        match self.times_ms.last() {
            None => Err(SettingsError::new("number of delivery times", 0, "at least 1")),
            Some(0) => Err(SettingsError::new("last delivery time in ms", 0, "above 0 (it is the length of a round)")),
            Some(&last) if last > u64::from(u32::MAX) => {
                Err(SettingsError::new("last delivery time in ms", last, "below 2^32"))
            }
            Some(_) => Ok(()),
        }
    }
}

/// Uses the opportunities in turn.
#[derive(Clone, Debug)]
pub(crate) struct OpportunityTransmitter {
    settings: Opportunities,
    round_ns: Nanoseconds,
    round_begin_ns: Nanoseconds,
    /// The first opportunity of the round that was not begun.
    next: usize,
    /// Bytes left of the opportunity begun last.
    left_bytes: u32,
}

impl OpportunityTransmitter {
    pub(crate) fn new(settings: &Opportunities) -> Result<Self, SettingsError> {
        settings.check()?;
        let round_ms = settings.times_ms.last().copied().unwrap_or(1);
        Ok(Self {
            settings: settings.clone(),
            round_ns: round_ms * MILLISECOND,
            round_begin_ns: 0,
            next: 0,
            left_bytes: 0,
        })
    }

    /// Bits of all opportunities up to and including `now`.
    pub(crate) fn offered_bits(&self, now: Nanoseconds) -> u64 {
        let within_ms = now % self.round_ns / MILLISECOND;
        let in_round = self.settings.times_ms.partition_point(|&time_ms| time_ms <= within_ms) as u64;
        let opportunities = (now / self.round_ns).saturating_mul(self.settings.times_ms.len() as u64) + in_round;
        opportunities.saturating_mul(8 * u64::from(self.settings.opportunity_bytes))
    }

    /// Skips the opportunities up to and including `now` that an idle link did not use.
    fn miss_until(&mut self, now: Nanoseconds) {
        self.left_bytes = 0;
        let next_ns = self.round_begin_ns.saturating_add(self.settings.times_ms[self.next] * MILLISECOND);
        if next_ns > now {
            return;
        }
        // The next opportunity is due, so the round has begun. Its last time belongs to it, not to the next round.
        let rounds = (now - self.round_begin_ns) / self.round_ns;
        if rounds > 0 {
            self.round_begin_ns += rounds * self.round_ns;
            self.next = 0;
        }
        let within_ms = (now - self.round_begin_ns) / MILLISECOND;
        self.next = self.settings.times_ms.partition_point(|&time_ms| time_ms <= within_ms);
    }

    /// Begins the next opportunity and gives its time.
    fn begin_next(&mut self) -> Nanoseconds {
        let time_ns = self.round_begin_ns.saturating_add(self.settings.times_ms[self.next] * MILLISECOND);
        self.left_bytes = self.settings.opportunity_bytes;
        self.next += 1;
        if self.next == self.settings.times_ms.len() {
            self.next = 0;
            self.round_begin_ns = self.round_begin_ns.saturating_add(self.round_ns);
        }
        time_ns
    }
}

impl Transmitter for OpportunityTransmitter {
    fn finish(&mut self, now: Nanoseconds, busy_until: Nanoseconds, bytes: u32) -> Nanoseconds {
        if busy_until <= now {
            self.miss_until(now);
        }
        let mut finished = busy_until;
        let mut bytes = bytes.saturating_add(self.settings.overhead_bytes);
        while bytes > self.left_bytes {
            bytes -= self.left_bytes;
            finished = self.begin_next();
        }
        self.left_bytes -= bytes;
        finished.max(now)
    }

    fn packet_s(&self, bytes: u32) -> f64 {
        f64::from(bytes.saturating_add(self.settings.overhead_bytes)) * 8.0 / self.settings.mean_rate_bit_s()
    }
}

#[cfg(test)]
mod tests {
    use super::{Opportunities, OpportunityTransmitter};
    use crate::hop::MILLISECOND;
    use crate::transmitters::transmission::Transmitter;

    /// Times in ms at which packets that arrive at `(ms, bytes)` have left.
    fn departures(times_ms: &[u64], arrivals: &[(u64, u32)]) -> Vec<u64> {
        let mut transmitter = OpportunityTransmitter::new(&Opportunities::of_mahimahi(times_ms.to_vec())).unwrap();
        let mut busy_until = 0;
        let depart = |&(ms, bytes): &(u64, u32)| {
            busy_until = transmitter.finish(ms * MILLISECOND, busy_until, bytes);
            busy_until / MILLISECOND
        };
        arrivals.iter().map(depart).collect()
    }

    #[test]
    fn a_full_packet_takes_one_opportunity() {
        assert_eq!(departures(&[5, 7, 7, 10], &[(0, 1500); 6]), [5, 7, 7, 10, 15, 17]);
    }

    #[test]
    fn small_packets_share_and_large_ones_span() {
        assert_eq!(departures(&[5, 7, 10], &[(0, 748), (0, 748), (0, 1501), (0, 1498)]), [5, 5, 10, 10]);
    }

    #[test]
    fn what_comes_at_the_time_of_an_opportunity_missed_it() {
        assert_eq!(departures(&[5, 10], &[(5, 100)]), [10]);
        assert_eq!(departures(&[5, 10], &[(10, 100)]), [15]);
        assert_eq!(departures(&[0, 10], &[(10, 100)]), [20]); // time 0 of the next round is time 10 as well
        assert_eq!(departures(&[5, 10], &[(0, 100), (5, 100)]), [5, 10]); // what was left at 5 is gone
        assert_eq!(departures(&[5, 10], &[(1_234_567, 100)]), [1_234_570]);
    }

    #[test]
    fn a_thousand_rounds_keep_the_mean_rate() {
        let trace = Opportunities::of_mahimahi(vec![1, 4, 6, 10]);
        assert!((trace.mean_rate_bit_s() - 4.0 * 1504.0 * 8.0 / 0.01).abs() < 1e-6);
        assert_eq!(departures(&trace.times_ms, &[(0, 1500); 4_000]).last(), Some(&10_000));
    }

    #[test]
    fn impossible_lists_are_refused() {
        for times_ms in [vec![], vec![0, 0], vec![5, 4], vec![1 << 40]] {
            assert!(OpportunityTransmitter::new(&Opportunities::of_mahimahi(times_ms)).is_err());
        }
    }
}
