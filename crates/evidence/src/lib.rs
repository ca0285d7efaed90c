//! Numbers that the detector's methods judge by, from the packets of a connection or of a pair of them.
//!
//! Nothing here decides: there is no verdict, and what a method may want to choose otherwise (limits, counts, shares) is
//! an argument. Columns come in as slices and go out as vectors.

mod ascending;
pub mod clocks;
mod columns;
mod distinct;
pub mod exchanges;
pub mod flows;
pub mod load;
mod median;
pub mod member_quantiles;
pub mod packets;
pub mod payload;
pub mod row_codes;
pub mod segments;
pub mod senders;
pub mod telling;
pub mod trains;
