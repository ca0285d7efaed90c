//! Hops that carry real packets.

use pepscope_path::hsdpa::Hsdpa;
use pepscope_path::lte::Lte;
use pepscope_path::umts::DedicatedChannel;
use pepscope_path::{Direction, Hop, HopCounts, Nanoseconds, SettingsError, VariableRate, Wired, WiredSettings};
use pepscope_tcp::RewriterSettings;

use super::frame::Frame;
use super::LiveError;
use crate::scenario::path::{HopDescription, HopSettings};
use crate::scenario::ScenarioError;

/// A link or cell.
#[derive(Debug)]
pub enum LiveElement {
    Wired(Box<Wired<Frame>>),
    VariableRate(Box<VariableRate<Frame>>),
    DedicatedChannel(Box<DedicatedChannel<Frame>>),
    Hsdpa(Box<Hsdpa<Frame>>),
    Lte(Box<Lte<Frame>>),
}

macro_rules! each {
    ($element:expr, $hop:ident => $call:expr) => {
        match $element {
            LiveElement::Wired($hop) => $call,
            LiveElement::VariableRate($hop) => $call,
            LiveElement::DedicatedChannel($hop) => $call,
            LiveElement::Hsdpa($hop) => $call,
            LiveElement::Lte($hop) => $call,
        }
    };
}

impl LiveElement {
    /// The hop of a scenario with `seed`, with the random numbers that it draws in a simulation too. A rewriter that
    /// changes nothing is a wire.
    ///
    /// # Errors
    /// Refuses hops that only simulations have, and settings that the hop refuses.
    pub fn new(description: &HopDescription, seed: u64) -> Result<Self, LiveError> {
        let name = &description.name;
        let refused = |error: SettingsError| {
            LiveError::Scenario(ScenarioError::Refused {
                field: format!("{name}: {}", error.field),
                value: error.value.clone(),
                allowed: error.allowed.to_owned(),
            })
        };
        Ok(match &description.settings {
            HopSettings::Wired(settings) => Self::Wired(Box::new(Wired::new(settings, seed, name).map_err(refused)?)),
            HopSettings::VariableRate(settings) => {
                Self::VariableRate(Box::new(VariableRate::new(settings, seed, name).map_err(refused)?))
            }
            HopSettings::DedicatedChannel(settings) => {
                Self::DedicatedChannel(Box::new(DedicatedChannel::new(settings, seed, name).map_err(refused)?))
            }
            HopSettings::Hsdpa(cells) => {
                Self::Hsdpa(Box::new(Hsdpa::new(&cells.settings(seed), seed, name).map_err(refused)?))
            }
            HopSettings::Lte(settings) => Self::Lte(Box::new(Lte::new(settings, seed, name).map_err(refused)?)),
            HopSettings::Rewriter(settings) if *settings == RewriterSettings::default() => {
                Self::Wired(Box::new(Wired::new(&WiredSettings::default(), seed, name).map_err(refused)?))
            }
            HopSettings::Rewriter(_) | HopSettings::Proxy(_) => {
                return Err(LiveError::NotLive { name: name.clone(), kind: description.kind })
            }
        })
    }
}

impl Hop<Frame> for LiveElement {
    #[inline]
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: Frame) {
        each!(self, hop => hop.handle_packet(now, direction, packet));
    }

    #[inline]
    fn handle_timeout(&mut self, now: Nanoseconds) {
        each!(self, hop => hop.handle_timeout(now));
    }

    #[inline]
    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, Frame)> {
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
