//! Hops that carry real packets.

use pepscope_path::WiredSettings;
use pepscope_tcp::RewriterSettings;

use super::frame::Frame;
use super::LiveError;
use crate::element::LinkElement;
use crate::scenario::path::{HopDescription, HopSettings, LinkSettings};
use crate::scenario::ScenarioError;

/// A link or cell.
pub type LiveElement = LinkElement<Frame>;

/// The hop of a scenario with `seed`, with the random numbers that it draws in a simulation too. A rewriter that changes
/// nothing is a wire.
///
/// # Errors
/// Refuses hops that only simulations have, and settings that the hop refuses.
pub fn live_element(description: &HopDescription, seed: u64) -> Result<LiveElement, LiveError> {
    let name = &description.name;
    let wire = LinkSettings::Wired(WiredSettings::default());
    let settings = match &description.settings {
        HopSettings::Link(link) => link,
        HopSettings::Rewriter(settings) if *settings == RewriterSettings::default() => &wire,
        HopSettings::Rewriter(_) | HopSettings::Proxy(_) => {
            return Err(LiveError::NotLive { name: name.clone(), kind: description.kind })
        }
    };
    LinkElement::new(settings, seed, name).map_err(|error| {
        LiveError::Scenario(ScenarioError::Refused {
            field: format!("{name}: {}", error.field),
            value: error.value.clone(),
            allowed: error.allowed.to_owned(),
        })
    })
}
