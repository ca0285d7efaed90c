//! Both editions against their equations.

mod linux;
mod rfc_9438;
