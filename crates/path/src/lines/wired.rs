//! A wired link: constant rate and delay, a drop-tail buffer and losses, in each direction apart.

use crate::hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds};
use crate::lines::line::Line;
use crate::lines::loss::{Loss, LossSettings};
use crate::queues::queue::{QueueLimit, QueueSettings};
use crate::settings::SettingsError;
use crate::transmitters::serialisation::ConstantRate;
use crate::transmitters::transmission::Transmission;

/// One direction of a wired link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineSettings {
    /// Bits a second of IP packets; `None` is no limit: packets then have no waiting and no transmission time.
    pub rate_bit_s: Option<u64>,
    /// The time from a packet's last bit out to its last bit in.
    pub delay_ns: Nanoseconds,
    pub queue: QueueSettings,
    /// Packets that take their time on the link and never arrive.
    pub loss: LossSettings,
}

impl LineSettings {
    fn line<P: Datagram>(&self, seed: u64, name: &str) -> Result<Line<P>, SettingsError> {
        if let QueueLimit::Frames(limit) = self.queue.limit {
            let value = format!("{limit} frames");
            return Err(SettingsError::new("queue limit of a wired link", value, "in packets or bytes"));
        }
        let loss = Loss::new(&self.loss, seed, name)?;
        let transmission = match self.rate_bit_s {
            None => Transmission::Instant,
            Some(rate_bit_s) => Transmission::Constant(ConstantRate::new(rate_bit_s)?),
        };
        Line::new(transmission, self.delay_ns, &self.queue, loss)
    }
}

/// Both directions of a wired link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WiredSettings {
    pub down: LineSettings,
    pub up: LineSettings,
}

/// A wired link.
#[derive(Clone, Debug)]
pub struct Wired<P> {
    down: Line<P>,
    up: Line<P>,
}

impl<P: Datagram> Wired<P> {
    /// The link called `name` in the run with `seed`.
    ///
    /// # Errors
    /// Refuses a rate of zero and what [`QueueSettings::check`] and [`Loss::new`] refuse.
    pub fn new(settings: &WiredSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        Ok(Self {
            down: settings.down.line(seed, &format!("{name}/down"))?,
            up: settings.up.line(seed, &format!("{name}/up"))?,
        })
    }
}

impl<P> Wired<P> {
    pub(crate) fn into_lines(self) -> (Line<P>, Line<P>) {
        (self.down, self.up)
    }
}

impl<P: Datagram> Hop<P> for Wired<P> {
    #[inline(always)]
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: P) {
        match direction {
            Direction::Down => self.down.take(now, packet),
            Direction::Up => self.up.take(now, packet),
        }
    }

    #[inline]
    fn handle_timeout(&mut self, _now: Nanoseconds) {}

    #[inline]
    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, P)> {
        if self.down.first_arrival() <= now {
            self.down.give().map(|packet| (Direction::Down, packet))
        } else if self.up.first_arrival() <= now {
            self.up.give().map(|packet| (Direction::Up, packet))
        } else {
            None
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Nanoseconds {
        self.down.first_arrival().min(self.up.first_arrival())
    }

    #[inline]
    fn lines(&mut self) -> Option<(&mut Line<P>, &mut Line<P>)> {
        Some((&mut self.down, &mut self.up))
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        match direction {
            Direction::Down => self.down.counts(),
            Direction::Up => self.up.counts(),
        }
    }

    fn observe(&self, now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        self.down.observe(now, Direction::Down, record);
        self.up.observe(now, Direction::Up, record);
    }
}
