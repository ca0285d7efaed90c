//! The machine that a proxy runs on, and its program: how much it reads at a time, and how long things take.

use std::collections::VecDeque;

use pepscope_path::{Direction, Nanoseconds, Random, NEVER};

use super::admission::ConnectionLimit;
use super::reuse::ReuseSettings;
use crate::host::{News, Processing, ProcessingSettings, Role};
use crate::packets::packet::Packet;

/// What a proxy's program and its machine are like. By default nothing takes time and nothing is limited.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineSettings {
    /// The most that the program reads from a connection at a time. It writes that to the other one and, where the
    /// machine takes time, does something else before it reads again.
    pub read_bytes: u64,
    /// The share of its size that a buffer which was full holds at most before the program reads into it again.
    pub resume_share: f64,
    /// How long after something happened the program acts, beside what `times` say.
    pub delay_ns: Nanoseconds,
    /// How long the kernel takes for packets, and the program until it acts; `None` for no time.
    pub times: Option<ProcessingSettings>,
    pub limit: Option<ConnectionLimit>,
    pub reuse: Option<ReuseSettings>,
}

impl Default for MachineSettings {
    fn default() -> Self {
        Self { read_bytes: u64::MAX, resume_share: 1.0, delay_ns: 0, times: None, limit: None, reuse: None }
    }
}

/// A machine under way.
#[derive(Debug)]
pub(crate) struct Machine {
    delay_ns: Nanoseconds,
    kernel: Option<Kernel>,
}

/// Packets between the network and the proxy's connections; both queues keep their order, so that the directions do too.
#[derive(Debug)]
struct Kernel {
    processing: Processing,
    arriving: VecDeque<Direction>,
    leaving: VecDeque<Direction>,
}

impl Machine {
    /// The machine of the proxy called `name` in the run with `seed`.
    pub fn new(settings: &MachineSettings, seed: u64, name: &str) -> Self {
        let kernel = settings.times.map(|times| Kernel {
            processing: Processing::new(times, Random::new(seed, &format!("{name}: processing"))),
            arriving: VecDeque::new(),
            leaving: VecDeque::new(),
        });
        Self { delay_ns: settings.delay_ns, kernel }
    }

    /// Whether the kernel takes time for packets.
    #[inline]
    pub fn delays_packets(&self) -> bool {
        self.kernel.is_some()
    }

    /// Whether the program acts some time after what happened.
    #[inline]
    pub fn delays_program(&self) -> bool {
        self.kernel.is_some() || self.delay_ns > 0
    }

    /// How long the program takes to act on a connection that is new to it, or on one it knows; at least 1 ns.
    pub fn waking_time(&mut self, is_new: bool) -> Nanoseconds {
        let news = if is_new { News::Connection(Role::Server) } else { News::ToRead };
        let drawn_ns = self.kernel.as_mut().map_or(0, |kernel| kernel.processing.waking_time(news));
        drawn_ns.saturating_add(self.delay_ns).max(1)
    }

    /// A packet comes from the network.
    pub fn push_arriving(&mut self, now: Nanoseconds, direction: Direction, packet: &Packet) {
        if let Some(kernel) = &mut self.kernel {
            kernel.processing.push_arriving(now, packet, false);
            kernel.arriving.push_back(direction);
        }
    }

    /// A packet that the kernel has by `now`.
    pub fn pop_arriving(&mut self, now: Nanoseconds) -> Option<(Direction, Packet)> {
        let kernel = self.kernel.as_mut()?;
        let packet = kernel.processing.pop_arriving(now)?;
        Some((kernel.arriving.pop_front()?, packet))
    }

    /// The kernel sends a packet at `now`.
    pub fn push_leaving(&mut self, now: Nanoseconds, direction: Direction, packet: Packet) {
        if let Some(kernel) = &mut self.kernel {
            kernel.processing.push_leaving(now, &packet);
            kernel.leaving.push_back(direction);
        }
    }

    /// A packet that the network has by `now`.
    pub fn pop_leaving(&mut self, now: Nanoseconds) -> Option<(Direction, Packet)> {
        let kernel = self.kernel.as_mut()?;
        let packet = kernel.processing.pop_leaving(now)?;
        Some((kernel.leaving.pop_front()?, packet))
    }

    /// When the next packet arrives or leaves.
    #[inline]
    pub fn next_time(&self) -> Nanoseconds {
        self.kernel.as_ref().map_or(NEVER, |kernel| kernel.processing.next_time())
    }
}
