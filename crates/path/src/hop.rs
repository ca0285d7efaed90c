//! What every part of a path has in common.

use crate::lines::line::Line;
use crate::passage::AnyPassage;

/// A time since the start of the run, or a span of time, in nanoseconds.
pub type Nanoseconds = u64;

pub const MICROSECOND: Nanoseconds = 1_000;
pub const MILLISECOND: Nanoseconds = 1_000_000;
pub const SECOND: Nanoseconds = 1_000_000_000;

/// A wake-up that is not wanted.
pub const NEVER: Nanoseconds = Nanoseconds::MAX;

/// Which way a packet travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the server to the mobile.
    Down,
    /// From the mobile to the server.
    Up,
}

impl Direction {
    #[must_use]
    #[inline]
    pub fn opposite(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }

    /// 0 for down and 1 for up, to index a pair.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }
}

/// What a Node-B reports to a window-adaptation proxy every period (seed 003, section 4.1: queue length and service).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueReport {
    /// Number of the period that the report closes, from 0.
    pub step: u32,
    /// Radio frames waiting at the end of the period.
    pub queued_frames: u32,
    /// Radio frames that the link served in the period.
    pub served_frames: u32,
    /// Radio frames refused by a full queue in the period.
    pub dropped_frames: u32,
    /// Radio frames that the link could have served in the period.
    pub offered_frames: u32,
}

/// What hops carry: simulated packets in virtual time, real ones between TUN devices.
pub trait Datagram: Sized + core::fmt::Debug {
    /// Length of the IP packet in bytes.
    fn length_bytes(&self) -> u32;

    /// Length of its IP and transport headers in bytes, which header compression may shrink.
    fn header_bytes(&self) -> u32;

    /// The mobile that sends or receives it, where a cell serves several; from 0.
    fn user(&self) -> u16;

    /// Whether its sender understands congestion marks.
    fn understands_marks(&self) -> bool;

    /// Sets the congestion-experienced mark (RFC 3168, section 5).
    fn mark_congestion(&mut self);

    /// A packet that carries `report` to the proxy; `None` if this kind of packet cannot.
    fn from_report(user: u16, report: QueueReport) -> Option<Self>;

    /// The same packet once more.
    #[must_use]
    fn duplicate(&self) -> Self;

    /// The transport connection that it belongs to, as a number that others rarely share; of a mobile where it belongs
    /// to none.
    fn flow(&self) -> u64 {
        u64::from(self.user())
    }

    /// Whether it counts in [`HopCounts`]: not what a hop makes itself to load its line.
    fn is_counted(&self) -> bool {
        true
    }
}

/// What a hop did with the packets of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopCounts {
    pub offered_packets: u64,
    pub offered_bytes: u64,
    pub delivered_packets: u64,
    pub delivered_bytes: u64,
    /// Refused by a full queue, or dropped by its management.
    pub overflowed_packets: u64,
    /// Lost on the way (link loss, or a radio bearer that gave up).
    pub lost_packets: u64,
    /// Marked instead of dropped.
    pub marked_packets: u64,
    /// Copies made on the way, which are delivered besides what was offered.
    pub duplicated_packets: u64,
}

impl HopCounts {
    /// The sums of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            offered_packets: self.offered_packets + other.offered_packets,
            offered_bytes: self.offered_bytes + other.offered_bytes,
            delivered_packets: self.delivered_packets + other.delivered_packets,
            delivered_bytes: self.delivered_bytes + other.delivered_bytes,
            overflowed_packets: self.overflowed_packets + other.overflowed_packets,
            lost_packets: self.lost_packets + other.lost_packets,
            marked_packets: self.marked_packets + other.marked_packets,
            duplicated_packets: self.duplicated_packets + other.duplicated_packets,
        }
    }

    /// Counts a packet that a queue refuses or drops.
    pub(crate) fn overflow<P: Datagram>(&mut self, packet: &P) {
        self.overflowed_packets += u64::from(packet.is_counted());
    }
}

/// A part of a path, both directions of it.
///
/// Order of calls: after any number of `handle_*` at a time `now`, call [`Hop::poll_transmit`] with that `now` until it
/// gives `None`, then [`Hop::poll_timeout`]. `now` never goes back. A wake-up that comes late is served as of the time
/// it was due wherever that matters for what follows, so that a driver's lateness shifts packets but not rates.
pub trait Hop<P: Datagram> {
    /// Takes a packet that enters travelling in `direction`.
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: P);

    /// Does what is due at `now`; calling it early changes nothing.
    fn handle_timeout(&mut self, now: Nanoseconds);

    /// The next packet that leaves by `now`, with the direction in which it goes on.
    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, P)>;

    /// When [`Hop::handle_timeout`] is due next; [`NEVER`] if nothing is pending.
    fn poll_timeout(&self) -> Nanoseconds;

    /// Both directions, down first, of a hop that is nothing but two lines. The driver's fast path then takes packets
    /// from line to line without the other functions.
    fn lines(&mut self) -> Option<(&mut Line<P>, &mut Line<P>)> {
        None
    }

    /// Both directions, down first, of a hop that is nothing but two of what the driver's fast path can take packets
    /// through.
    fn passages(&mut self) -> Option<(AnyPassage<'_, P>, AnyPassage<'_, P>)> {
        let (down, up) = self.lines()?;
        Some((down.into(), up.into()))
    }

    /// Totals since the start.
    fn counts(&self, direction: Direction) -> HopCounts;

    /// Bits that the link could have carried until `now`, which is no earlier than the last call's; `None` where that
    /// has no meaning or depends on who is served.
    fn capacity_bits(&self, _now: Nanoseconds, _direction: Direction) -> Option<u64> {
        None
    }

    /// Calls `record` with each quantity worth plotting now: its name (with unit) and its value.
    fn observe(&self, now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64));
}
