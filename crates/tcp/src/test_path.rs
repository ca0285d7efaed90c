//! Two hosts and the hops between them, run in virtual time: the bench of this crate's tests.

use std::cell::RefCell;
use std::rc::Rc;

use pepscope_path::{
    Direction, Hop, HopCounts, LineSettings, LossSettings, Nanoseconds, QueueLimit, QueueSettings, Wired,
    WiredSettings, MILLISECOND, NEVER,
};

use crate::applications::script::Script;
use crate::host::{FlowResult, FlowSettings, Host, Role};
use crate::packets::packet::Packet;
use crate::packets::segment::Segment;
use crate::settings::Settings;

pub(crate) struct TestPath {
    pub server: Host,
    pub mobile: Host,
    pub hops: Vec<Box<dyn Hop<Packet>>>,
    now: Nanoseconds,
    /// Everything that passed, if wanted: when, before which hop, which way and what.
    pub log: Option<Vec<(Nanoseconds, usize, Direction, Packet)>>,
}

impl TestPath {
    pub fn new(hops: Vec<Box<dyn Hop<Packet>>>) -> Self {
        Self { server: Host::new(1, "server"), mobile: Host::new(1, "mobile"), hops, now: 0, log: None }
    }

    /// Adds both ends of a flow that the mobile opens at `start_ns`.
    pub fn add(&mut self, flow: u32, start_ns: Nanoseconds, ends: [Settings; 2], scripts: [Script; 2]) {
        let [server_settings, mobile_settings] = ends;
        let [server_script, mobile_script] = scripts;
        let end = |role, connection, script| FlowSettings { flow, user: 0, role, start_ns, connection, script };
        self.server.add_flow(end(Role::Server, server_settings, server_script)).expect("a flow of the server");
        self.mobile.add_flow(end(Role::Client, mobile_settings, mobile_script)).expect("a flow of the mobile");
    }

    /// The segments that passed beside the server, whose log must have been wanted.
    pub fn segments_beside_server(self) -> Vec<(Nanoseconds, Direction, Segment)> {
        let here = self.log.expect("a log").into_iter().filter(|(_, boundary, _, _)| *boundary == 0);
        here.filter_map(|(at, _, direction, packet)| match packet {
            Packet::Tcp(segment) => Some((at, direction, segment)),
            _ => None,
        })
        .collect()
    }

    /// Runs until nothing is due before `end`.
    pub fn run_until(&mut self, end: Nanoseconds) {
        loop {
            let hops = self.hops.iter().map(|hop| hop.poll_timeout()).min().unwrap_or(NEVER);
            let next = self.server.poll_timeout().min(self.mobile.poll_timeout()).min(hops);
            if next > end {
                self.now = end;
                return;
            }
            assert!(next >= self.now, "time goes back from {} to {next}", self.now);
            self.now = next;
            self.server.handle_timeout(next);
            self.mobile.handle_timeout(next);
            for hop in &mut self.hops {
                hop.handle_timeout(next);
            }
            while self.pass_on() {}
        }
    }

    fn pass_on(&mut self) -> bool {
        let mut moved = false;
        while let Some(packet) = self.server.poll_transmit(self.now) {
            self.deliver(0, Direction::Down, packet);
            moved = true;
        }
        for place in 0..self.hops.len() {
            while let Some((direction, packet)) = self.hops[place].poll_transmit(self.now) {
                match direction {
                    Direction::Down => self.deliver(place + 1, direction, packet),
                    Direction::Up => self.deliver(place, direction, packet),
                }
                moved = true;
            }
        }
        while let Some(packet) = self.mobile.poll_transmit(self.now) {
            self.deliver(self.hops.len(), Direction::Up, packet);
            moved = true;
        }
        moved
    }

    /// Hands `packet` over the boundary before hop number `boundary`.
    fn deliver(&mut self, boundary: usize, direction: Direction, packet: Packet) {
        if let Some(log) = &mut self.log {
            log.push((self.now, boundary, direction, packet));
        }
        match direction {
            Direction::Down if boundary == self.hops.len() => self.mobile.handle_packet(self.now, &packet),
            Direction::Down => self.hops[boundary].handle_packet(self.now, direction, packet),
            Direction::Up if boundary == 0 => self.server.handle_packet(self.now, &packet),
            Direction::Up => self.hops[boundary - 1].handle_packet(self.now, direction, packet),
        }
    }

    pub fn server_result(&self, flow: u32) -> FlowResult {
        self.server.flows().find(|result| result.flow == flow).expect("a flow of the server")
    }

    pub fn mobile_result(&self, flow: u32) -> FlowResult {
        self.mobile.flows().find(|result| result.flow == flow).expect("a flow of the mobile")
    }

    /// Fails unless each end read exactly what the other wrote.
    pub fn assert_intact(&self, flow: u32) {
        let (server, mobile) = (self.server_result(flow).application, self.mobile_result(flow).application);
        assert_eq!((mobile.read_bytes, mobile.read_digest), (server.written_bytes, server.written_digest));
        assert_eq!((server.read_bytes, server.read_digest), (mobile.written_bytes, mobile.written_digest));
    }
}

/// A symmetrical wired link.
pub(crate) fn wired(rate_bit_s: u64, delay_ms: u64, queue_packets: u32, loss_probability: f64) -> Box<dyn Hop<Packet>> {
    let loss = match loss_probability {
        0.0 => LossSettings::None,
        probability => LossSettings::Independent { probability },
    };
    let line = LineSettings {
        rate_bit_s: Some(rate_bit_s),
        delay_ns: delay_ms * MILLISECOND,
        queue: QueueSettings { limit: QueueLimit::Packets(queue_packets), ..QueueSettings::default() },
        loss,
    };
    let settings = WiredSettings { down: line.clone(), up: line };
    Box::new(Wired::new(&settings, 1, "wired").expect("a valid link"))
}

/// A hop that the test can still look into once it is a part of the path.
pub(crate) struct Watched<T>(pub(crate) Rc<RefCell<T>>);

impl<T> Clone for Watched<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T: Hop<Packet>> Hop<Packet> for Watched<T> {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: Packet) {
        self.0.borrow_mut().handle_packet(now, direction, packet);
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        self.0.borrow_mut().handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, Packet)> {
        self.0.borrow_mut().poll_transmit(now)
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.0.borrow().poll_timeout()
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        self.0.borrow().counts(direction)
    }

    fn observe(&self, now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        self.0.borrow().observe(now, record);
    }
}

impl<T: Hop<Packet>> Watched<T> {
    pub(crate) fn new(hop: T) -> Self {
        Self(Rc::new(RefCell::new(hop)))
    }

    /// The quantity `name` that the hop records now.
    pub(crate) fn observed(&self, now: Nanoseconds, name: &str) -> f64 {
        let mut found = None;
        self.observe(now, &mut |recorded, value| {
            if recorded == name {
                found = Some(value);
            }
        });
        found.expect("a quantity of that name")
    }
}
