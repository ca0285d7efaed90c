//! What two captures show of connections, as numbers, and the packets that show it.

pub(crate) mod agreement;
pub(crate) mod pair_numbers;
pub(crate) mod pair_segments;
pub(crate) mod payload_fingerprints;
pub(crate) mod pointed;
pub(crate) mod telling;
