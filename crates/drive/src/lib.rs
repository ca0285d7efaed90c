//! The virtual-time driver: a scenario becomes a chain of hosts and hops, runs, and leaves captures and ground truth.

pub mod capture;
mod chain;
pub mod element;
mod lane;
pub mod live;
pub mod scenario;
pub mod simulation;
pub mod truth;
