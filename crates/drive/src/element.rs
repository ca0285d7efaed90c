//! The parts of a chain behind one face, without a table of functions: what is called for every packet.

use pepscope_path::hsdpa::Hsdpa;
use pepscope_path::lte::Lte;
use pepscope_path::umts::DedicatedChannel;
use pepscope_path::{Datagram, Direction, Hop, HopCounts, Line, Nanoseconds, SettingsError, VariableRate, Wired};
use pepscope_tcp::proxy::Proxy;
use pepscope_tcp::{Packet, Rewriter};

use crate::scenario::path::LinkSettings;

/// A link or cell, whatever it carries.
#[derive(Debug)]
pub enum LinkElement<P> {
    Wired(Box<Wired<P>>),
    VariableRate(Box<VariableRate<P>>),
    DedicatedChannel(Box<DedicatedChannel<P>>),
    Hsdpa(Box<Hsdpa<P>>),
    Lte(Box<Lte<P>>),
}

/// Anything between the hosts.
#[derive(Debug)]
pub enum PathElement {
    Link(LinkElement<Packet>),
    Rewriter(Box<Rewriter>),
    Proxy(Box<Proxy>),
}

macro_rules! each_link {
    ($element:expr, $hop:ident => $call:expr) => {
        match $element {
            $crate::element::LinkElement::Wired($hop) => $call,
            $crate::element::LinkElement::VariableRate($hop) => $call,
            $crate::element::LinkElement::DedicatedChannel($hop) => $call,
            $crate::element::LinkElement::Hsdpa($hop) => $call,
            $crate::element::LinkElement::Lte($hop) => $call,
        }
    };
}

macro_rules! each {
    ($element:expr, $hop:ident => $call:expr) => {
        match $element {
            $crate::element::PathElement::Link(link) => $crate::element::each_link!(link, $hop => $call),
            $crate::element::PathElement::Rewriter($hop) => $call,
            $crate::element::PathElement::Proxy($hop) => $call,
        }
    };
}

pub(crate) use {each, each_link};

impl<P: Datagram> LinkElement<P> {
    /// The hop called `name` in the run with `seed`.
    ///
    /// # Errors
    /// Settings that the hop refuses.
    pub(crate) fn new(settings: &LinkSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        Ok(match settings {
            LinkSettings::Wired(settings) => Self::Wired(Box::new(Wired::new(settings, seed, name)?)),
            LinkSettings::VariableRate(settings) => {
                Self::VariableRate(Box::new(VariableRate::new(settings, seed, name)?))
            }
            LinkSettings::DedicatedChannel(settings) => {
                Self::DedicatedChannel(Box::new(DedicatedChannel::new(settings, seed, name)?))
            }
            LinkSettings::Hsdpa(cells) => Self::Hsdpa(Box::new(Hsdpa::new(&cells.settings(seed), seed, name)?)),
            LinkSettings::Lte(settings) => Self::Lte(Box::new(Lte::new(settings, seed, name)?)),
        })
    }
}

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
            Self::Link(LinkElement::Wired(link)) => Some(link.lines()),
            Self::Link(LinkElement::VariableRate(link)) => link.lines(),
            _ => None,
        }
    }
}

macro_rules! hop_by_parts {
    ($each:ident, $packet:ty) => {
        #[inline]
        fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: $packet) {
            $each!(self, hop => hop.handle_packet(now, direction, packet));
        }

        #[inline]
        fn handle_timeout(&mut self, now: Nanoseconds) {
            $each!(self, hop => hop.handle_timeout(now));
        }

        #[inline]
        fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, $packet)> {
            $each!(self, hop => hop.poll_transmit(now))
        }

        #[inline]
        fn poll_timeout(&self) -> Nanoseconds {
            $each!(self, hop => hop.poll_timeout())
        }

        fn counts(&self, direction: Direction) -> HopCounts {
            $each!(self, hop => hop.counts(direction))
        }

        fn capacity_bits(&self, now: Nanoseconds, direction: Direction) -> Option<u64> {
            $each!(self, hop => hop.capacity_bits(now, direction))
        }

        fn observe(&self, now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
            $each!(self, hop => hop.observe(now, record));
        }
    };
}

impl<P: Datagram> Hop<P> for LinkElement<P> {
    hop_by_parts!(each_link, P);
}

impl Hop<Packet> for PathElement {
    hop_by_parts!(each, Packet);
}
