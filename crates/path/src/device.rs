//! Network devices: the time that a packet takes between a machine's capture and the line.
//!
//! A capture shows a packet when the kernel hands it to the device or has it from there. Interrupts that are moderated,
//! queues of descriptors, and the thread that carries packets of a virtual device and sleeps between them take time
//! beyond that, more of it after a pause, and keep the order.

use std::collections::VecDeque;

use crate::hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds, NEVER};
use crate::processing_time::{Cooling, DrawnTime, Interruptions, ProcessingTime};
use crate::random::Random;

/// How long packets take through a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceSettings {
    /// In close succession; `None` for no time.
    pub down: Option<ProcessingTime>,
    pub up: Option<ProcessingTime>,
    /// From one packet that leaves to the next one that waited behind it, where they take time.
    pub apart: ProcessingTime,
    /// The share of packets before which something else has the processor, where they take time, and for how long.
    pub interrupted_share: f64,
    pub interruption: ProcessingTime,
    /// The factor after a pause, during which nothing passed in either direction.
    pub cold: f64,
    pub cooling: Cooling,
}

/// A device.
#[derive(Clone, Debug)]
pub struct Device<P> {
    settings: DeviceSettings,
    /// By direction.
    times: [Option<DrawnTime>; 2],
    apart: DrawnTime,
    interruptions: Interruptions,
    interruption: DrawnTime,
    random: Random,
    last_packet_ns: Option<Nanoseconds>,
    /// By direction.
    lines: [VecDeque<(Nanoseconds, P)>; 2],
    counts: [HopCounts; 2],
}

impl<P: Datagram> Device<P> {
    /// The device called `name` in the run with `seed`.
    #[must_use]
    pub fn new(settings: &DeviceSettings, seed: u64, name: &str) -> Self {
        let mut random = Random::new(seed, name);
        Self {
            settings: *settings,
            times: [settings.down, settings.up].map(|time| time.map(DrawnTime::from)),
            apart: settings.apart.into(),
            interruptions: Interruptions::new(settings.interrupted_share, &mut random),
            interruption: settings.interruption.into(),
            random,
            last_packet_ns: None,
            lines: [VecDeque::new(), VecDeque::new()],
            counts: [HopCounts::default(); 2],
        }
    }
}

impl<P: Datagram> Hop<P> for Device<P> {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: P) {
        let pause_ns = self.last_packet_ns.replace(now).map(|last_ns| now - last_ns);
        let time = &self.times[direction.index()];
        let time_ns = time.as_ref().map_or(0, |time| {
            if self.interruptions.interrupt(&mut self.random) {
                return self.interruption.draw(1.0, &mut self.random);
            }
            let factor = 1.0 + (self.settings.cold - 1.0) * self.settings.cooling.share(pause_ns);
            time.draw_longer(factor, 1.0, &mut self.random)
        });
        let (line, counts) = (&mut self.lines[direction.index()], &mut self.counts[direction.index()]);
        counts.offered_packets += 1;
        counts.offered_bytes += u64::from(packet.length_bytes());
        let leaves_ns = now.saturating_add(time_ns);
        let leaves_ns = match line.back() {
            Some((last_ns, _)) if time.is_none() => leaves_ns.max(*last_ns),
            Some((last_ns, _)) if leaves_ns <= *last_ns => {
                last_ns.saturating_add(self.apart.draw(1.0, &mut self.random))
            }
            _ => leaves_ns,
        };
        line.push_back((leaves_ns, packet));
    }

    fn handle_timeout(&mut self, _now: Nanoseconds) {}

    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, P)> {
        for direction in [Direction::Down, Direction::Up] {
            let line = &mut self.lines[direction.index()];
            if line.front().is_some_and(|(at, _)| *at <= now) {
                let (_, packet) = line.pop_front()?;
                let counts = &mut self.counts[direction.index()];
                counts.delivered_packets += 1;
                counts.delivered_bytes += u64::from(packet.length_bytes());
                return Some((direction, packet));
            }
        }
        None
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.lines.iter().filter_map(|line| line.front().map(|(at, _)| *at)).min().unwrap_or(NEVER)
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        self.counts[direction.index()]
    }

    fn observe(&self, _now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        record("down_packets_under_way", self.lines[0].len() as f64);
        record("up_packets_under_way", self.lines[1].len() as f64);
    }
}
