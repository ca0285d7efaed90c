//! High-speed downlink packet access (HSDPA): one or more UMTS cells and all their terminals as one hop.
//!
//! From the radio channel inwards: [`fading`] and [`multipath`], [`shadowing`] and [`geometry`] make a [`channel`]; its indicators choose
//! formats ([`transport_format`]) and users ([`scheduler`]); blocks go through [`hybrid_arq`], [`reordering`] and
//! [`reassembly`], which a [`shared_bearer`] ties to a queue; a [`cell`] runs its terminals' bearers interval by interval, and
//! [`link`] is the hop. The model and its equations are in docs/models/hsdpa.md.

pub mod bandwidth_profile;
pub mod cell;
pub mod channel;
pub mod dedicated_bearer;
pub(crate) mod departures;
mod discard;
pub mod fading;
pub mod geometry;
pub mod hybrid_arq;
pub mod link;
pub mod multipath;
pub mod presets;
pub mod reassembly;
pub mod reordering;
pub mod scheduler;
pub mod settings;
pub mod shadowing;
pub mod shared_bearer;
#[cfg(test)]
pub(crate) mod test_packet;
pub mod transport_format;
mod uplink;
pub(crate) mod validation;

pub use bandwidth_profile::{bandwidth_profile, Source};
pub use link::Hsdpa;
pub use settings::HsdpaSettings;
