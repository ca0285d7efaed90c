//! The parts of a chain behind one face, without a table of functions: what is called for every packet.

use pepscope_path::hsdpa::Hsdpa;
use pepscope_path::lte::Lte;
use pepscope_path::umts::DedicatedChannel;
use pepscope_path::{Direction, Hop, HopCounts, Line, Nanoseconds, VariableRate, Wired};
use pepscope_tcp::proxy::Proxy;
use pepscope_tcp::{Packet, Rewriter};

/// Anything between the hosts.
#[derive(Debug)]
pub enum PathElement {
    Wired(Box<Wired<Packet>>),
    VariableRate(Box<VariableRate<Packet>>),
    DedicatedChannel(Box<DedicatedChannel<Packet>>),
    Hsdpa(Box<Hsdpa<Packet>>),
    Lte(Box<Lte<Packet>>),
    Rewriter(Box<Rewriter>),
    Proxy(Box<Proxy>),
}

macro_rules! each {
    ($element:expr, $hop:ident => $call:expr) => {
        match $element {
            PathElement::Wired($hop) => $call,
            PathElement::VariableRate($hop) => $call,
            PathElement::DedicatedChannel($hop) => $call,
            PathElement::Hsdpa($hop) => $call,
            PathElement::Lte($hop) => $call,
            PathElement::Rewriter($hop) => $call,
            PathElement::Proxy($hop) => $call,
        }
    };
}

pub(crate) use each;

impl PathElement {
    /// Whether TCP connections end here: it answers for the far end.
    #[must_use]
    pub fn ends_connections(&self) -> bool {
        matches!(self, Self::Proxy(_))
    }

    /// Both directions, down first, of a link that carries packets and does nothing else.
    #[inline]
    pub(crate) fn lines(&mut self) -> Option<(&mut Line<Packet>, &mut Line<Packet>)> {
        match self {
            Self::Wired(link) => Some(link.lines()),
            Self::VariableRate(link) => link.lines(),
            _ => None,
        }
    }
}

impl Hop<Packet> for PathElement {
    #[inline]
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: Packet) {
        each!(self, hop => hop.handle_packet(now, direction, packet));
    }

    #[inline]
    fn handle_timeout(&mut self, now: Nanoseconds) {
        each!(self, hop => hop.handle_timeout(now));
    }

    #[inline]
    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, Packet)> {
        each!(self, hop => hop.poll_transmit(now))
    }

    #[inline]
    fn poll_timeout(&self) -> Nanoseconds {
        each!(self, hop => hop.poll_timeout())
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        each!(self, hop => hop.counts(direction))
    }

    fn capacity_bits(&self, now: Nanoseconds, direction: Direction) -> Option<u64> {
        each!(self, hop => hop.capacity_bits(now, direction))
    }

    fn observe(&self, now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        each!(self, hop => hop.observe(now, record));
    }
}
