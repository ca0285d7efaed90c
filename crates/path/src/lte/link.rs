//! An LTE or NR cell as a hop.

use super::carrier::{Carrier, Member};
use super::duplex::SlotPattern;
use super::requests::Requests;
use super::settings::LteSettings;
use crate::hsdpa::shared_bearer::Deliveries;
use crate::{Datagram, Direction, Hop, HopCounts, Nanoseconds, SettingsError, NEVER};

/// Names of what [`Hop::observe`] records of the first terminals: queue down, queue up.
const OBSERVED: [(&str, &str); 4] = [
    ("down_queue_0_bytes", "up_queue_0_bytes"),
    ("down_queue_1_bytes", "up_queue_1_bytes"),
    ("down_queue_2_bytes", "up_queue_2_bytes"),
    ("down_queue_3_bytes", "up_queue_3_bytes"),
];

#[derive(Clone, Debug)]
struct Side<P> {
    carrier: Carrier<P>,
    deliveries: Deliveries<P>,
    counts: HopCounts,
}

/// A cell and its terminals.
#[derive(Clone, Debug)]
pub struct Lte<P> {
    tti: Nanoseconds,
    slots: Option<SlotPattern>,
    users: usize,
    /// Both directions, by [`Direction::index`].
    sides: [Side<P>; 2],
    requests: Vec<Requests>,
    next_tti: u64,
    awake: bool,
}

impl<P: Datagram> Lte<P> {
    /// Starts the clock of intervals at 0. The random numbers of the link depend on `name`.
    ///
    /// # Errors
    /// The first setting that makes no sense.
    pub fn new(settings: &LteSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        settings.check()?;
        let side = |members: Vec<Member>, name: String| Side {
            carrier: Carrier::new(settings, &members, seed, &name),
            deliveries: Deliveries::default(),
            counts: HopCounts::default(),
        };
        let down =
            settings.users.iter().map(|user| Member { rate: user.down, queue: user.down_queue, marking: user.marking });
        let up = settings.users.iter().map(|user| Member { rate: user.up, queue: user.up_queue, marking: None });
        Ok(Self {
            tti: settings.tti,
            slots: settings.slots.clone(),
            users: settings.users.len(),
            sides: [side(down.collect(), format!("{name}/down")), side(up.collect(), format!("{name}/up"))],
            requests: (0..settings.users.len())
                .map(|user| Requests::new(settings.requests, settings.tti, user))
                .collect(),
            next_tti: 0,
            awake: false,
        })
    }

    /// Bytes of terminal number `user` that wait for their first transmission in `direction`; 0 if there is no such.
    #[must_use]
    pub fn queued_bytes(&self, user: u16, direction: Direction) -> u64 {
        self.sides[direction.index()].carrier.queued_bytes(usize::from(user))
    }

    fn next_interval(&self) -> Nanoseconds {
        if self.awake {
            self.next_tti * self.tti
        } else {
            NEVER
        }
    }

    fn run_until(&mut self, end: Nanoseconds) {
        while self.next_interval() < end {
            self.run_interval();
        }
    }

    fn run_interval(&mut self) {
        let tti = self.next_tti;
        let [down, up] = &mut self.sides;
        let share = |direction| self.slots.as_ref().map_or(1.0, |slots| slots.share(tti, direction));
        let (down_share, up_share) = (share(Direction::Down), share(Direction::Up));
        down.carrier.run(tti, down_share, |_| u64::MAX, &mut down.deliveries);
        for (user, requests) in self.requests.iter_mut().enumerate() {
            requests.begin(tti, up_share > 0.0, up.carrier.queued_bytes(user));
        }
        let requests = &self.requests;
        if let Some(sent) = up.carrier.run(tti, up_share, |user| requests[user].permitted(), &mut up.deliveries) {
            let left = up.carrier.queued_bytes(sent.user);
            self.requests[sent.user].sent(tti, sent.bytes, left);
        }
        self.awake = !(down.carrier.is_idle() && up.carrier.is_idle());
        self.next_tti += 1;
    }
}

impl<P: Datagram> Hop<P> for Lte<P> {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: P) {
        self.run_until(now);
        let side = &mut self.sides[direction.index()];
        side.counts.offered_packets += 1;
        side.counts.offered_bytes += u64::from(packet.length_bytes());
        let Some(admission) = side.carrier.push(usize::from(packet.user()), packet) else {
            side.counts.lost_packets += 1;
            return;
        };
        side.counts.overflowed_packets += u64::from(!admission.accepted);
        side.counts.marked_packets += u64::from(admission.marked);
        if admission.accepted && !self.awake {
            self.next_tti = self.next_tti.max(now.div_ceil(self.tti));
            self.awake = true;
        }
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        self.run_until(now.saturating_add(1));
    }

    fn poll_transmit(&mut self, _now: Nanoseconds) -> Option<(Direction, P)> {
        for (direction, side) in [Direction::Down, Direction::Up].into_iter().zip(&mut self.sides) {
            if let Some(packet) = side.deliveries.delivered.pop_front() {
                side.counts.delivered_packets += 1;
                side.counts.delivered_bytes += u64::from(packet.length_bytes());
                return Some((direction, packet));
            }
        }
        None
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.next_interval()
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        let side = &self.sides[direction.index()];
        HopCounts { lost_packets: side.counts.lost_packets + side.deliveries.lost_packets, ..side.counts }
    }

    fn observe(&self, _now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        for (user, (down_name, up_name)) in OBSERVED.iter().enumerate().take(self.users) {
            record(down_name, self.sides[0].carrier.queued_bytes(user) as f64);
            record(up_name, self.sides[1].carrier.queued_bytes(user) as f64);
        }
    }
}
