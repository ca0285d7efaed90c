//! The second clock: hops between two TUN devices, in real time.
//!
//! A [`chain::LiveChain`] is the sans-IO part: frames in, frames out, every event at its own time, however late the
//! caller is. An [`event_loop::LivePath`] feeds it from two TUN devices and measures the lateness.

pub mod chain;
pub mod element;
mod error;
pub mod event_loop;
pub mod frame;
pub mod lateness;
mod pool;
pub mod report_datagram;
pub mod rewriter;

pub use error::LiveError;
