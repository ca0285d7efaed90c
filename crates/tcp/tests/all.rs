//! Tests of this crate in one program: with one for each file, compiling and linking take twice as long.

mod acknowledgements;
mod against_ns2;
mod closing;
mod opening;
mod properties;
mod windows;
mod wire;
