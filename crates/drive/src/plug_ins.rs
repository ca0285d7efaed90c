//! Hops and applications that a caller of this crate brings along: `kind = "plug-in"` in a scenario's path or traffic.

use std::fmt;
use std::rc::Rc;

use pepscope_path::{Direction, Hop, HopCounts, Nanoseconds};
use pepscope_tcp::{Packet, Protocol};
use serde_json::Value;

/// A hop or an application as its scenario describes it.
#[derive(Clone, Debug)]
pub struct PlugInDescription {
    /// Which one: a name that the caller knows.
    pub plug_in: String,
    /// Whatever it is set by.
    pub settings: Value,
}

type Build = dyn Fn(&PlugInDescription, u64, &str) -> Result<Box<dyn Hop<Packet>>, String>;

/// Builds the hops of plug-ins, from description, seed and the hop's name; an error is what the plug-in must be or have.
#[derive(Clone)]
pub struct HopFactory(Rc<Build>);

impl HopFactory {
    pub fn new(
        build: impl Fn(&PlugInDescription, u64, &str) -> Result<Box<dyn Hop<Packet>>, String> + 'static,
    ) -> Self {
        Self(Rc::new(build))
    }

    pub(crate) fn build(&self, described: &PlugInDescription, seed: u64, name: &str) -> Result<PlugInHop, String> {
        (self.0)(described, seed, name).map(PlugInHop)
    }
}

impl fmt::Debug for HopFactory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HopFactory")
    }
}

/// Both ends of one connection of an application.
pub struct ApplicationEnds {
    pub mobile: Box<dyn Protocol>,
    pub server: Box<dyn Protocol>,
}

type BuildApplication = dyn Fn(&PlugInDescription, u64, &str) -> Result<ApplicationEnds, String>;

/// Builds the applications of plug-ins, from description, seed and the connection's name; an error is what the plug-in
/// must be or have.
#[derive(Clone)]
pub struct ApplicationFactory(Rc<BuildApplication>);

impl ApplicationFactory {
    pub fn new(build: impl Fn(&PlugInDescription, u64, &str) -> Result<ApplicationEnds, String> + 'static) -> Self {
        Self(Rc::new(build))
    }

    pub(crate) fn build(
        &self,
        described: &PlugInDescription,
        seed: u64,
        name: &str,
    ) -> Result<ApplicationEnds, String> {
        (self.0)(described, seed, name)
    }
}

impl fmt::Debug for ApplicationFactory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApplicationFactory")
    }
}

/// A hop of a plug-in, called through a trait object.
pub struct PlugInHop(Box<dyn Hop<Packet>>);

impl fmt::Debug for PlugInHop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PlugInHop")
    }
}

impl Hop<Packet> for PlugInHop {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: Packet) {
        self.0.handle_packet(now, direction, packet);
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, Packet)> {
        self.0.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.0.poll_timeout()
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        self.0.counts(direction)
    }

    fn observe(&self, now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        self.0.observe(now, record);
    }
}
