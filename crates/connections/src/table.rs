//! Hash table from endpoints to the latest connection between them: open addressing, linear probing, no deletion.

use crate::key::Key;

const EMPTY: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Slot {
    tag: u32,
    connection: u32,
}

/// Keys themselves live with the connections; a slot holds 32 bits of the hash and the connection's index.
pub(crate) struct FlowTable {
    slots: Vec<Slot>,
    used: usize,
}

/// Where a key's slot is.
pub(crate) enum Place {
    /// The connection, and the side of it that the key's sender is.
    Found {
        slot: usize,
        connection: u32,
        side: usize,
    },
    Vacant {
        slot: usize,
    },
}

impl FlowTable {
    pub(crate) fn new() -> Self {
        FlowTable { slots: vec![Slot { tag: 0, connection: EMPTY }; 1024], used: 0 }
    }

    pub(crate) fn find<'k>(&self, hash: u64, key: &Key, key_of: impl Fn(u32) -> &'k Key) -> Place {
        let mask = self.slots.len() - 1;
        let tag = hash as u32;
        let mut slot = (hash >> 32) as usize & mask;
        loop {
            let entry = self.slots[slot];
            if entry.connection == EMPTY {
                return Place::Vacant { slot };
            }
            if entry.tag == tag {
                if let Some(side) = key_of(entry.connection).side_of(key) {
                    return Place::Found { slot, connection: entry.connection, side };
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    /// A later connection between the same endpoints takes the slot.
    pub(crate) fn replace(&mut self, slot: usize, connection: u32) {
        self.slots[slot].connection = connection;
    }

    pub(crate) fn insert(&mut self, slot: usize, hash: u64, connection: u32, hash_of: impl Fn(u32) -> u64) {
        self.slots[slot] = Slot { tag: hash as u32, connection };
        self.used += 1;
        if self.used * 2 > self.slots.len() {
            self.grow(hash_of);
        }
    }

    fn grow(&mut self, hash_of: impl Fn(u32) -> u64) {
        let size = self.slots.len() * 4;
        let mask = size - 1;
        let mut slots = vec![Slot { tag: 0, connection: EMPTY }; size];
        for entry in self.slots.iter().filter(|entry| entry.connection != EMPTY) {
            let mut slot = (hash_of(entry.connection) >> 32) as usize & mask;
            while slots[slot].connection != EMPTY {
                slot = (slot + 1) & mask;
            }
            slots[slot] = *entry;
        }
        self.slots = slots;
    }
}
