//! Two RLC entities and the transport channels between them.

use std::collections::VecDeque;

use crate::hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds, NEVER, SECOND};
use crate::random::Random;
use crate::settings::SettingsError;

use super::pdu::{Pdu, StatusPdu};
use super::receiver::Receiver;
use super::sender::Sender;
use super::settings::{DedicatedChannelSettings, HeaderCompression, TransportChannelSettings};

/// A UMTS dedicated channel for one mobile, both directions.
///
/// An interval sends the packets that arrived before it began, and data requested by the other end's blocks until then; status
/// reports first, then repetitions, then new data.
#[derive(Clone, Debug)]
pub struct DedicatedChannel<P> {
    compression: HeaderCompression,
    /// RNC, which sends down, and mobile, which sends up.
    network: Entity<P>,
    mobile: Entity<P>,
    delivered: VecDeque<(Direction, P)>,
    next_ns: Nanoseconds,
}

/// One end: its sender, its receiver, and the channel that it sends on.
#[derive(Clone, Debug)]
struct Entity<P> {
    sender: Sender<P>,
    receiver: Receiver,
    /// Answers and reports to send.
    status: VecDeque<StatusPdu>,
    channel: Channel,
    counts: HopCounts,
}

#[derive(Clone, Debug)]
struct Channel {
    settings: TransportChannelSettings,
    random: Random,
    pdu_work: u64,
    /// Bits times nanoseconds a second that the last interval left over.
    credit: u64,
    /// No interval may begin before this.
    free_ns: Nanoseconds,
    under_way: VecDeque<(Nanoseconds, Pdu)>,
}

impl<P: Datagram> DedicatedChannel<P> {
    /// The bearer called `name` in the run with `seed`.
    ///
    /// # Errors
    /// Names the setting that is outside its range.
    pub fn new(settings: &DedicatedChannelSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        settings.check()?;
        let entity = |channel: &TransportChannelSettings, direction: &str| Entity {
            sender: Sender::new(&settings.radio_link_control, channel.buffer),
            receiver: Receiver::new(&settings.radio_link_control),
            status: VecDeque::new(),
            channel: Channel {
                settings: *channel,
                random: Random::new(seed, &format!("{name}/{direction}")),
                pdu_work: u64::from(settings.radio_link_control.pdu_bits) * SECOND,
                credit: 0,
                free_ns: 0,
                under_way: VecDeque::new(),
            },
            counts: HopCounts::default(),
        };
        let mut bearer = Self {
            compression: settings.compression,
            network: entity(&settings.down, "down"),
            mobile: entity(&settings.up, "up"),
            delivered: VecDeque::new(),
            next_ns: NEVER,
        };
        bearer.plan(0);
        Ok(bearer)
    }

    /// Data PDUs sent in `direction`, and how many of them were repetitions.
    #[must_use]
    pub fn data_pdus(&self, direction: Direction) -> (u64, u64) {
        let sender = &self.entity(direction).sender;
        (sender.sent_pdus, sender.retransmitted_pdus)
    }

    fn entity(&self, direction: Direction) -> &Entity<P> {
        match direction {
            Direction::Down => &self.network,
            Direction::Up => &self.mobile,
        }
    }

    /// Processes every event due by `now`, each at its own time.
    fn advance(&mut self, now: Nanoseconds) {
        while self.next_ns <= now {
            let due = self.next_ns;
            receive(due, &mut self.network, &mut self.mobile, Direction::Down, &mut self.delivered);
            receive(due, &mut self.mobile, &mut self.network, Direction::Up, &mut self.delivered);
            for entity in [&mut self.network, &mut self.mobile] {
                entity.handle_timers(due);
                if entity.begins_interval(due) {
                    entity.send_interval(due);
                }
            }
            self.plan(due);
        }
    }

    fn plan(&mut self, now: Nanoseconds) {
        self.next_ns = self.network.next_ns(now).min(self.mobile.next_ns(now));
    }
}

/// Delivers the blocks from `from` that reach `to` at `now`.
fn receive<P: Datagram>(
    now: Nanoseconds,
    from: &mut Entity<P>,
    to: &mut Entity<P>,
    direction: Direction,
    delivered: &mut VecDeque<(Direction, P)>,
) {
    while from.channel.under_way.front().is_some_and(|&(arrival, _)| arrival <= now) {
        let Some((_, pdu)) = from.channel.under_way.pop_front() else {
            break;
        };
        let (sender, counts) = (&mut from.sender, &mut from.counts);
        let mut deliver = |sdu: u64| {
            if let Some(packet) = sender.sdus.deliver(sdu) {
                counts.delivered_packets += 1;
                counts.delivered_bytes += u64::from(packet.length_bytes());
                delivered.push_back((direction, packet));
            }
        };
        match pdu {
            Pdu::Data(data) => to.receiver.handle_data(data, &mut deliver),
            Pdu::Status(StatusPdu::Report { before, missing }) => to.sender.handle_report(now, before, missing),
            Pdu::Status(StatusPdu::WindowMoved { to: moved_to }) => to.sender.handle_window_moved(moved_to),
            Pdu::Status(StatusPdu::MoveWindow(points)) => {
                to.receiver.move_window(points, &mut deliver);
                if let Some(&(moved_to, _)) = points.as_slice().last() {
                    to.status.push_back(StatusPdu::WindowMoved { to: moved_to });
                }
            }
        }
    }
}

impl<P: Datagram> Entity<P> {
    fn handle_timers(&mut self, now: Nanoseconds) {
        while self.receiver.next_periodic_ns() <= now {
            self.receiver.handle_periodic();
        }
        if self.sender.next_timer_ns() <= now {
            self.sender.handle_timers(now);
        }
    }

    /// Fills the transport blocks of the interval that begins at `now`.
    fn send_interval(&mut self, now: Nanoseconds) {
        let interval_ns = self.channel.settings.transmission_time_interval_ns;
        let arrival = now.saturating_add(interval_ns).saturating_add(self.channel.settings.delay_ns);
        self.channel.free_ns = now.saturating_add(interval_ns);
        self.channel.credit += self.channel.settings.rate_bit_s * interval_ns;
        while self.channel.credit >= self.channel.pdu_work {
            let Some(pdu) = self.next_pdu(now) else {
                self.channel.credit = 0;
                return;
            };
            self.channel.credit -= self.channel.pdu_work;
            if !self.channel.random.chance(self.channel.settings.block_error_rate) {
                self.channel.under_way.push_back((arrival, pdu));
            }
        }
    }

    fn next_pdu(&mut self, now: Nanoseconds) -> Option<Pdu> {
        if self.status.is_empty() && self.receiver.report_ns() <= now {
            self.receiver.report(now, &mut self.status);
        }
        if let Some(status) = self.status.pop_front().or_else(|| self.sender.control_pdu(now)) {
            return Some(Pdu::Status(status));
        }
        self.sender.data_pdu(now).map(Pdu::Data)
    }

    /// Time from which an interval has data to send; [`NEVER`] without data.
    fn wanted_ns(&self, now: Nanoseconds) -> Nanoseconds {
        if self.sender.has_data() || !self.status.is_empty() {
            now
        } else {
            self.receiver.report_ns()
        }
    }

    fn begins_interval(&self, now: Nanoseconds) -> bool {
        let is_beginning = now % self.channel.settings.transmission_time_interval_ns == 0;
        is_beginning && self.channel.free_ns <= now && self.wanted_ns(now) <= now
    }

    /// Time of this end's next event after `now`.
    fn next_ns(&self, now: Nanoseconds) -> Nanoseconds {
        let wanted = self.wanted_ns(now);
        let interval = if wanted == NEVER {
            NEVER
        } else {
            let interval_ns = self.channel.settings.transmission_time_interval_ns;
            let earliest = wanted.max(self.channel.free_ns).max(now.saturating_add(1));
            earliest.div_ceil(interval_ns).saturating_mul(interval_ns)
        };
        let arrival = self.channel.under_way.front().map_or(NEVER, |&(arrival, _)| arrival);
        interval.min(arrival).min(self.receiver.next_periodic_ns()).min(self.sender.next_timer_ns())
    }
}

impl<P: Datagram> Hop<P> for DedicatedChannel<P> {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: P) {
        self.advance(now);
        let bytes = packet.length_bytes();
        let sdu_bytes = self.compression.sdu_bytes(bytes, packet.header_bytes());
        let entity = match direction {
            Direction::Down => &mut self.network,
            Direction::Up => &mut self.mobile,
        };
        entity.counts.offered_packets += 1;
        entity.counts.offered_bytes += u64::from(bytes);
        if !entity.sender.sdus.take(packet, bytes, sdu_bytes) {
            entity.counts.overflowed_packets += 1;
            return;
        }
        self.plan(now);
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        self.advance(now);
    }

    fn poll_transmit(&mut self, _now: Nanoseconds) -> Option<(Direction, P)> {
        self.delivered.pop_front()
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.next_ns
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        let entity = self.entity(direction);
        HopCounts { lost_packets: entity.sender.lost_packets, ..entity.counts }
    }

    fn observe(&self, _now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        let (down, up) = (&self.network.sender, &self.mobile.sender);
        record("down_waiting_packets", f64::from(down.sdus.waiting().packets));
        record("down_waiting_bytes", down.sdus.waiting().bytes as f64);
        record("down_window_pdus", down.window_pdus() as f64);
        record("down_retransmitted_pdus", down.retransmitted_pdus as f64);
        record("up_waiting_packets", f64::from(up.sdus.waiting().packets));
        record("up_waiting_bytes", up.sdus.waiting().bytes as f64);
        record("up_window_pdus", up.window_pdus() as f64);
        record("up_retransmitted_pdus", up.retransmitted_pdus as f64);
    }
}
