//! Tests of this crate in one program: with one for each file, compiling and linking take twice as long.

mod bpf;
mod containers;
mod corpus;
mod damage;
mod datagrams;
mod echoes;
mod editable;
mod layers;
mod made;
mod rejects;
mod visits;
