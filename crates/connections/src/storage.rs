//! Temporary files: packets and summaries that take more memory than is allowed.

pub(crate) mod aside;
pub(crate) mod in_time;
pub(crate) mod oversize;
pub(crate) mod partitioned;
pub(crate) mod positioned;
pub(crate) mod sorted;
pub mod spill;
pub mod stored;
pub(crate) mod summary_record;
