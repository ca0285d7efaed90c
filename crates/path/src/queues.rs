//! Buffers: what they hold, in which order it leaves, and what they drop or mark.

pub(crate) mod managed;
pub(crate) mod next_times;
pub(crate) mod policer;
pub(crate) mod queue;
pub(crate) mod ring;
pub(crate) mod schedule;
