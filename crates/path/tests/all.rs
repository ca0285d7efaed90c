//! Tests of this crate in one program: with one for each file, compiling and linking take twice as long.

mod branches;
mod dedicated_channel;
mod device;
mod handover;
mod hsdpa;
mod impairments;
mod lte;
mod mahimahi;
mod managed;
mod policer;
mod probe;
mod radio_packet;
mod radio_states;
mod traces;
mod umts;
mod umts_theory;
mod variable_rate;
mod wired;
