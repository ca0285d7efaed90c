//! Links of buffers and transmitters, with their delays, losses and impairments.

pub(crate) mod branches;
pub(crate) mod handover;
pub(crate) mod impairments;
pub(crate) mod line;
pub(crate) mod loss;
pub(crate) mod variable_rate;
pub(crate) mod wired;
