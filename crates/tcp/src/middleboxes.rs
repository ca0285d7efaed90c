//! What stands in the path and handles segments: proxies, local acknowledgement, rewriters of headers.

pub(crate) mod acknowledger;
pub mod proxy;
pub(crate) mod rewriter;
