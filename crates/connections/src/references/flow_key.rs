//! Flows by their ends, in either order, under the hash that connections use.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::key::{Endpoint, Key};

/// Both ends of a flow, and whether it is ICMP.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowKey {
    ends: Key,
    is_icmp: bool,
}

impl FlowKey {
    pub(super) fn new(source: ([u8; 16], u16), destination: ([u8; 16], u16), is_icmp: bool) -> Self {
        let end = |(address, port)| Endpoint::new(address, port);
        FlowKey { ends: Key { sender: end(source), receiver: end(destination) }, is_icmp }
    }
}

impl PartialEq for FlowKey {
    fn eq(&self, other: &Self) -> bool {
        self.is_icmp == other.is_icmp && self.ends.side_of(&other.ends).is_some()
    }
}

impl Eq for FlowKey {}

impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.ends.hash());
    }
}

/// Passes a hash on.
#[derive(Default)]
pub(super) struct PassedOn(u64);

impl Hasher for PassedOn {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

pub(super) type FlowMap<T> = HashMap<FlowKey, T, BuildHasherDefault<PassedOn>>;
