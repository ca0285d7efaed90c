//! A plain LTE or NR cell as a hop: what today's captures of cellular paths look like.
//!
//! Each direction is a [`carrier`] that sends one block an interval at a rate given by [`interval_rate`], repeats what fails,
//! and delivers in order; up, [`requests`] decide when a terminal may send. With time-division duplex a [`SlotPattern`] says
//! which direction an interval is for. [`link`] is the hop. The bearer below is the one
//! of [`crate::hsdpa`], counting bytes instead of frames. The model is in docs/models/lte.md.

pub mod carrier;
mod duplex;
pub mod interval_rate;
pub mod link;
pub mod requests;
pub mod settings;

pub use duplex::{Slot, SlotPattern};
pub use link::Lte;
pub use settings::LteSettings;
