//! The chain of parts, and how packets go from part to part.

use pepscope_path::{Direction, Hop, Nanoseconds};
use pepscope_tcp::{Host, Packet, PacketSink};

use crate::element::PathElement;
use crate::links::HopCall;
use crate::simulation::PlacedTap;
use crate::truth::delays::Delays;

/// The number of a leg where none ends.
const NO_END: u8 = u8::MAX;

/// Server, hops and mobiles; parts are numbered in this order.
pub(crate) struct Chain {
    pub(crate) server: Box<Host>,
    pub(crate) hops: Vec<PathElement>,
    pub(crate) mobile: Box<Host>,
    /// See [`crate::simulation::RunSettings::fast_path`].
    pub(crate) has_fast_path: bool,
}

/// The gap between two parts, with its taps.
struct Link {
    taps: Vec<PlacedTap>,
    /// The number of the leg that ends here, by direction.
    legs: [u8; 2],
}

/// Everything that records packets: taps, and the delays of the ground truth.
pub(crate) struct Observers {
    links: Vec<Link>,
    pub(crate) delays: Delays,
}

/// How packets are recorded that pass a gap in one direction.
#[derive(Clone, Copy)]
pub(crate) struct Watch {
    position: usize,
    direction: Direction,
    is_tapped: bool,
    leg: u8,
}

impl Watch {
    /// Whether anything is recorded.
    #[inline(always)]
    pub(crate) fn records(self) -> bool {
        self.is_tapped || self.leg != NO_END
    }
}

/// What came out of a part.
#[derive(Clone, Copy)]
pub(crate) struct Drained {
    /// Parts that got something, as bits.
    pub(crate) reached: u64,
    pub(crate) packets: u64,
    /// Time of the part's next event.
    pub(crate) wake_up: Nanoseconds,
}

impl Observers {
    pub(crate) fn new(hops: &[PathElement], taps: Vec<PlacedTap>, keep_arrivals: bool) -> Self {
        let mut leg = 0;
        let mut links = Vec::new();
        for position in 0..=hops.len() {
            let from_end = position == 0 || hops[position - 1].ends_connections();
            let to_end = hops.get(position).is_none_or(PathElement::ends_connections);
            links.push(Link {
                taps: Vec::new(),
                legs: [if to_end { leg } else { NO_END }, if from_end { leg } else { NO_END }],
            });
            leg += u8::from(to_end);
        }
        for tap in taps {
            let position = tap.after_hop.min(hops.len());
            links[position].taps.push(tap);
        }
        Self { links, delays: Delays::new(usize::from(leg), keep_arrivals) }
    }

    pub(crate) fn taps(&mut self) -> impl Iterator<Item = &mut Vec<PlacedTap>> {
        self.links.iter_mut().map(|link| &mut link.taps)
    }

    /// Whether a packet that passes the link at `position` is noted.
    pub(crate) fn watches(&self, position: usize) -> bool {
        let link = &self.links[position];
        !link.taps.is_empty() || link.legs != [NO_END; 2]
    }

    /// How a packet is noted that passes the link at `position`.
    #[inline(always)]
    pub(crate) fn watch(&self, position: usize, direction: Direction) -> Watch {
        let link = &self.links[position];
        let leg = link.legs[direction.index()];
        Watch { position, direction, is_tapped: !link.taps.is_empty(), leg }
    }

    /// A packet passes a link.
    #[inline(always)]
    pub(crate) fn note_at(&mut self, watch: Watch, now: Nanoseconds, packet: &Packet) {
        if watch.is_tapped {
            record(&mut self.links[watch.position].taps, now, watch.direction, packet);
        }
        if watch.leg != NO_END {
            if let Packet::Tcp(segment) = packet {
                self.delays.arrived(usize::from(watch.leg), now, watch.direction, segment);
            }
        }
    }

    /// A packet passes the link at `position`.
    #[inline(always)]
    pub(crate) fn note(&mut self, position: usize, now: Nanoseconds, direction: Direction, packet: &Packet) {
        self.note_at(self.watch(position, direction), now, packet);
    }
}

#[inline(always)]
fn record(taps: &mut [PlacedTap], now: Nanoseconds, direction: Direction, packet: &Packet) {
    if let [placed] = taps {
        placed.tap.record(now, direction, packet);
    } else {
        record_all(taps, now, direction, packet);
    }
}

#[inline(never)]
fn record_all(taps: &mut [PlacedTap], now: Nanoseconds, direction: Direction, packet: &Packet) {
    for placed in taps {
        placed.tap.record(now, direction, packet);
    }
}

#[inline]
pub(crate) fn stamp(now: Nanoseconds, packet: &mut Packet) {
    if let Packet::Tcp(segment) = packet {
        segment.sent_ns = now;
    }
}

impl Chain {
    pub(crate) fn parts(&self) -> usize {
        self.hops.len() + 2
    }

    pub(crate) fn poll_timeout(&self, index: usize) -> Nanoseconds {
        match index.checked_sub(1).map(|hop| self.hops.get(hop)) {
            None => self.server.poll_timeout(),
            Some(Some(hop)) => hop.poll_timeout(),
            Some(None) => self.mobile.poll_timeout(),
        }
    }

    #[inline]
    pub(crate) fn handle_timeout(&mut self, index: usize, now: Nanoseconds) {
        match index.checked_sub(1).map(|hop| self.hops.get_mut(hop)) {
            None => self.server.handle_timeout(now),
            Some(Some(hop)) => hop.handle_timeout(now),
            Some(None) => self.mobile.handle_timeout(now),
        }
    }

    /// Hands on everything that leaves the part at `index` now.
    #[inline]
    pub(crate) fn drain(&mut self, index: usize, now: Nanoseconds, observers: &mut Observers) -> Drained {
        let Self { server, hops, mobile, .. } = self;
        if index == 0 {
            let mut departures = Departures {
                packets: 0,
                position: 0,
                direction: Direction::Down,
                now,
                observers,
                next: hops.first_mut(),
                end: mobile,
            };
            server.transmit(now, &mut departures);
            let packets = departures.packets;
            return Drained { reached: u64::from(packets > 0) << 1, packets, wake_up: server.poll_timeout() };
        }
        if index > hops.len() {
            let position = hops.len();
            let mut departures = Departures {
                packets: 0,
                position,
                direction: Direction::Up,
                now,
                observers,
                next: hops.last_mut(),
                end: server,
            };
            mobile.transmit(now, &mut departures);
            let packets = departures.packets;
            let reached = u64::from(packets > 0) << (index - 1);
            return Drained { reached, packets, wake_up: mobile.poll_timeout() };
        }
        let (before, rest) = hops.split_at_mut(index - 1);
        let Some((hop, after)) = rest.split_first_mut() else {
            return Drained { reached: 0, packets: 0, wake_up: Nanoseconds::MAX };
        };
        let is_end = hop.ends_connections();
        hop.dispatch(Drain { server, before, after, mobile, index, is_end, now, observers })
    }
}

/// What leaves a host, on its way into the chain.
struct Departures<'a> {
    packets: u64,
    position: usize,
    direction: Direction,
    now: Nanoseconds,
    observers: &'a mut Observers,
    next: Option<&'a mut PathElement>,
    /// The other host, for a chain without hops.
    end: &'a mut Host,
}

impl PacketSink for Departures<'_> {
    fn send_at(&mut self, now: Nanoseconds, at: Nanoseconds, packet: &Packet) -> bool {
        let leaves = at <= now;
        if leaves {
            self.send(*packet);
        }
        leaves
    }

    fn send(&mut self, mut packet: Packet) {
        self.packets += 1;
        stamp(self.now, &mut packet);
        self.observers.note(self.position, self.now, self.direction, &packet);
        match &mut self.next {
            Some(hop) => hop.handle_packet(self.now, self.direction, packet),
            None => self.end.handle_packet(self.now, &packet),
        }
    }
}

/// Hands on what leaves a hop; with what surrounds the hop.
struct Drain<'a> {
    server: &'a mut Host,
    before: &'a mut [PathElement],
    after: &'a mut [PathElement],
    mobile: &'a mut Host,
    index: usize,
    is_end: bool,
    now: Nanoseconds,
    observers: &'a mut Observers,
}

impl HopCall<Packet> for Drain<'_> {
    type Output = Drained;

    #[inline]
    fn call<H: Hop<Packet>>(self, hop: &mut H) -> Drained {
        let Self { server, before, after, mobile, index, is_end, now, observers } = self;
        let mut drained = Drained { reached: 0, packets: 0, wake_up: 0 };
        while let Some((direction, mut packet)) = hop.poll_transmit(now) {
            drained.packets += 1;
            if is_end {
                stamp(now, &mut packet);
            }
            match direction {
                Direction::Down => {
                    observers.note(index, now, direction, &packet);
                    drained.reached |= 1 << (index + 1);
                    match after.first_mut() {
                        Some(next) => next.handle_packet(now, direction, packet),
                        None => mobile.handle_packet(now, &packet),
                    }
                }
                Direction::Up => {
                    observers.note(index - 1, now, direction, &packet);
                    drained.reached |= 1 << (index - 1);
                    match before.last_mut() {
                        Some(next) => next.handle_packet(now, direction, packet),
                        None => server.handle_packet(now, &packet),
                    }
                }
            }
        }
        drained.wake_up = hop.poll_timeout();
        drained
    }
}
