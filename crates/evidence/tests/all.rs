//! Tests of this crate in one program: with one for each file, compiling and linking take twice as long.

mod agreement;
mod asked_payload;
mod clouds;
mod conversation;
mod exchanges;
mod flow_times;
mod hostile_exchanges;
mod pair_segments;
mod proxy_exchanges;
mod senders_and_load;
mod unasked_exchanges;
