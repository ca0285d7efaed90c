//! Dedicated uplink channels: each terminal has its own rate, delay and queue.

use std::collections::VecDeque;

use super::departures::Departures;
use super::settings::UplinkSettings;
use crate::transmitters::serialisation::Serialisation;
use crate::{Datagram, HopCounts, Nanoseconds, SettingsError};

#[derive(Clone, Debug)]
struct Sender {
    /// Time at which each waiting packet, and the one in service, will have been sent.
    ends: VecDeque<Nanoseconds>,
    serialisation: Serialisation,
}

/// All terminals' uplinks.
#[derive(Clone, Debug)]
pub(crate) struct Uplink<P> {
    delay: Nanoseconds,
    queue_packets: usize,
    senders: Vec<Sender>,
    departures: Departures<P>,
    pub(crate) counts: HopCounts,
}

impl<P: Datagram> Uplink<P> {
    pub(crate) fn new(settings: UplinkSettings, users: usize) -> Result<Self, SettingsError> {
        let sender = Sender { ends: VecDeque::new(), serialisation: Serialisation::new(settings.rate_bit_s)? };
        Ok(Self {
            delay: settings.delay,
            queue_packets: settings.queue_packets,
            senders: vec![sender; users],
            departures: Departures::default(),
            counts: HopCounts::default(),
        })
    }

    /// Takes a packet from the terminal that it names.
    pub(crate) fn push(&mut self, now: Nanoseconds, packet: P) {
        self.counts.offered_packets += 1;
        self.counts.offered_bytes += u64::from(packet.length_bytes());
        let Some(sender) = self.senders.get_mut(usize::from(packet.user())) else {
            self.counts.lost_packets += 1;
            return;
        };
        while sender.ends.front().is_some_and(|&end| end <= now) {
            sender.ends.pop_front();
        }
        if sender.ends.len() >= self.queue_packets {
            self.counts.overflowed_packets += 1;
            return;
        }
        let start = match sender.ends.back() {
            Some(&end) => end,
            None => {
                sender.serialisation.begin();
                now
            }
        };
        let end = start + sender.serialisation.advance(packet.length_bytes());
        sender.ends.push_back(end);
        self.departures.add(end + self.delay, packet);
    }

    pub(crate) fn pop(&mut self, now: Nanoseconds) -> Option<P> {
        let packet = self.departures.pop(now)?;
        self.counts.delivered_packets += 1;
        self.counts.delivered_bytes += u64::from(packet.length_bytes());
        Some(packet)
    }

    pub(crate) fn next_time(&self) -> Nanoseconds {
        self.departures.next_time()
    }
}

#[cfg(test)]
mod tests {
    use super::{Uplink, UplinkSettings};
    use crate::hsdpa::test_packet::TestPacket;
    use crate::MILLISECOND;

    #[test]
    fn packets_take_their_time_and_the_delay() {
        let settings = UplinkSettings { rate_bit_s: 64_000, delay: 30 * MILLISECOND, queue_packets: 2 };
        let mut uplink = Uplink::new(settings, 2).unwrap();
        for number in 0..3 {
            uplink.push(0, TestPacket::new(0, 80, number));
        }
        uplink.push(0, TestPacket::new(1, 160, 3));
        uplink.push(0, TestPacket::new(7, 80, 4));
        assert_eq!((uplink.counts.overflowed_packets, uplink.counts.lost_packets), (1, 1));
        let mut left = Vec::new();
        while uplink.next_time() != crate::NEVER {
            let now = uplink.next_time();
            while let Some(packet) = uplink.pop(now) {
                left.push((now / MILLISECOND, packet.number));
            }
        }
        assert_eq!(left, [(40, 0), (50, 1), (50, 3)]);
    }

    #[test]
    fn an_odd_rate_does_not_drift() {
        let settings = UplinkSettings { rate_bit_s: 7, delay: 0, queue_packets: 1000 };
        let mut uplink = Uplink::new(settings, 1).unwrap();
        for number in 0..700 {
            uplink.push(0, TestPacket::new(0, 1, number));
        }
        let mut last = 0;
        while uplink.next_time() != crate::NEVER {
            last = uplink.next_time();
            uplink.pop(last);
        }
        assert_eq!(last, 800 * 1000 * MILLISECOND);
    }
}
