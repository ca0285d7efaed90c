//! Headers of frames, one after the other: link layers, tags, IP, tunnels, TCP.

pub(crate) mod echo;
pub(crate) mod ethertype;
pub(crate) mod fragments;
pub(crate) mod header;
pub(crate) mod inner_packet;
pub(crate) mod ip;
pub(crate) mod layer;
pub(crate) mod link;
pub mod tcp;
pub(crate) mod tunnel;
pub(crate) mod view;
pub(crate) mod wireless;
