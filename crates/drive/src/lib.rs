//! The virtual-time driver: a scenario becomes a chain of hosts and hops, runs, and leaves captures and ground truth.

pub mod assembly;
pub mod capture;
mod chain;
pub mod element;
mod enum_dispatch;
mod fast_path;
pub mod fields;
pub mod links;
// epoll, timerfd and pidfd.
#[cfg(target_os = "linux")]
pub mod live;
pub mod plug_ins;
pub mod scenario;
pub mod simulation;
pub mod truth;
