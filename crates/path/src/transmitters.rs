//! When packets are sent: constant and variable rates, opportunities, traces.

pub(crate) mod opportunities;
pub(crate) mod rate_transmitter;
pub(crate) mod rates;
pub(crate) mod serialisation;
pub(crate) mod trace;
pub(crate) mod transmission;
