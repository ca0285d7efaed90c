//! Tests of this crate in one program: with one for each file, compiling and linking take twice as long.

mod captures;
mod cells;
mod proxies;
mod scenarios;
