//! Hops that carry real packets.

use pepscope_path::SettingsError;
use pepscope_tcp::RewriterSettings;

use super::frame::Frame;
use super::rewriter::FrameRewriter;
use super::LiveError;
use crate::enum_dispatch::hop_by_enum_dispatch;
use crate::fields::ScenarioError;
use crate::links::{LinkElement, LinkSettings};
use crate::scenario::path::{HopDescription, HopSettings};

/// A link, a cell, or a middlebox.
#[derive(Debug)]
pub enum LiveElement {
    Link(LinkElement<Frame>),
    Rewriter(Box<FrameRewriter>),
}

hop_by_enum_dispatch!([] LiveElement, Frame: Link, Rewriter);

/// The hop of a scenario with `seed`, with the random numbers that it draws in a simulation too. A rewriter that changes
/// nothing is a wire.
///
/// # Errors
/// Refuses hops that only simulations have, and settings that the hop refuses.
pub fn live_element(description: &HopDescription, seed: u64) -> Result<LiveElement, LiveError> {
    let name = &description.name;
    let wire = LinkSettings::Wired(Box::default());
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
        HopSettings::Proxy(_) | HopSettings::PlugIn(_) | HopSettings::Acknowledger(_) => {
            return not_live(description.kind);
        }
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
