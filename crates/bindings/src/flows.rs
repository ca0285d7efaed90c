//! What flows show at both ends, and the clocks behind their times, as numbers.

pub(crate) mod clocks;
pub(crate) mod flow_columns;
pub(crate) mod flow_ends;
pub(crate) mod flow_times;
pub(crate) mod host_clock;
pub(crate) mod staircases;
pub(crate) mod timestamps;
