//! Performance-enhancing proxies (RFC 3135) as hops of a path.
//!
//! A proxy ends every connection that it takes and opens one of its own to the other side (`relay`). What it does between
//! the two is one of three things ([`Forwarding`]): pass bytes on as they come from a bounded buffer (Split-TCP), take
//! objects whole first (TCP proxy: `store`), or pass on what a control law allows (window adaptation: `gate`, with the
//! law itself in `sliding_mode`).

mod admission;
mod gate;
mod hop;
mod leg;
mod machine;
#[cfg(test)]
mod machine_properties;
#[cfg(test)]
mod machine_tests;
mod pipe;
mod relay;
mod reuse;
mod sliding_mode;
mod store;
#[cfg(test)]
mod tests;

pub use admission::{AdmissionCounts, ConnectionLimit, OverLimit};
pub use gate::{AdaptationSettings, RateSource};
pub use hop::{Forwarding, Proxy, ProxySettings};
pub use machine::MachineSettings;
pub use relay::{AbortPropagation, Opening, RelayResult};
pub use reuse::ReuseSettings;
pub use sliding_mode::{ParameterError, SlidingMode, SlidingModeSettings};
pub use store::{StoreSettings, StoredObject};
