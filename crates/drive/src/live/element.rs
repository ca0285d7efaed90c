//! Hops that carry real packets.

use pepscope_path::{Direction, Hop, HopCounts, Nanoseconds, SettingsError, WiredSettings};
use pepscope_tcp::RewriterSettings;

use super::frame::Frame;
use super::rewriter::FrameRewriter;
use super::LiveError;
use crate::element::LinkElement;
use crate::scenario::path::{HopDescription, HopSettings, LinkSettings};
use crate::scenario::ScenarioError;

/// A link, a cell, or a middlebox.
#[derive(Debug)]
pub enum LiveElement {
    Link(LinkElement<Frame>),
    Rewriter(Box<FrameRewriter>),
}

/// The hop of a scenario with `seed`, with the random numbers that it draws in a simulation too. A rewriter that changes
/// nothing is a wire.
///
/// # Errors
/// Refuses hops that only simulations have, and settings that the hop refuses.
pub fn live_element(description: &HopDescription, seed: u64) -> Result<LiveElement, LiveError> {
    let name = &description.name;
    let wire = LinkSettings::Wired(WiredSettings::default());
    let not_live = |kind| Err(LiveError::NotLive { name: name.clone(), kind });
    let settings = match &description.settings {
        HopSettings::Link(link) => link,
        HopSettings::Rewriter(settings) if *settings == RewriterSettings::default() => &wire,
        HopSettings::Rewriter(settings) if settings.acknowledgement_thinning.is_some() => {
            return not_live("rewriter with acknowledgement_thinning");
        }
        HopSettings::Rewriter(settings) => {
            return Ok(LiveElement::Rewriter(Box::new(FrameRewriter::new(settings.clone(), seed, name))));
        }
        HopSettings::Proxy(_) => return not_live(description.kind),
    };
    let refused = |error: SettingsError| {
        LiveError::Scenario(ScenarioError::Refused {
            field: format!("{name}: {}", error.field),
            value: error.value.clone(),
            allowed: error.allowed.to_owned(),
        })
    };
    LinkElement::new(settings, seed, name).map(LiveElement::Link).map_err(refused)
}

macro_rules! each {
    ($element:expr, $hop:ident => $call:expr) => {
        match $element {
            LiveElement::Link($hop) => $call,
            LiveElement::Rewriter($hop) => $call,
        }
    };
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
