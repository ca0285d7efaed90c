//! Keys of packets: hashes of fields that middleboxes leave unchanged although they change addresses, ports or numbers.

use crate::packets::{flag, mark, Packets, DOWN, NO_ACKNOWLEDGEMENT, UP};

/// An odd number of which both halves of the bits are mixed (2^64 over the golden ratio).
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// What a key is made of beside a packet's length; with neither stamps nor places also of the first bytes of a segment
/// and of its direction's next one.
#[derive(Clone, Copy, Debug)]
pub struct KeyFields {
    pub stamps: bool,
    pub ip_id: bool,
    pub places: bool,
}

/// A key, and the direction of its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketKey {
    pub value: u64,
    pub direction: u8,
}

impl Packets<'_> {
    /// The `most` least keys of a connection, ascending and each once, without SYN and RST.
    ///
    /// A direction whose IP identification never changes has none that are made of it.
    pub fn packet_keys(&self, fields: KeyFields, most: usize) -> Vec<PacketKey> {
        let mut keys = Vec::new();
        for direction in [UP, DOWN] {
            let mut places = (0..self.len()).filter(|&place| self.has_key(place, direction, fields));
            if fields.ip_id {
                let first = places.clone().next().map(|place| self.ip_id[place]);
                if places.clone().all(|place| Some(self.ip_id[place]) == first) {
                    continue;
                }
            }
            let mut least = Least::new(direction, most);
            if fields.stamps || fields.places {
                places.for_each(|place| least.push(self.own_key(place, fields)));
            } else {
                let mut before: Option<usize> = None;
                for place in places.by_ref().filter(|&place| self.payload_hash[place] != 0) {
                    before.into_iter().for_each(|before| least.push(self.key_of_two([before, place])));
                    before = Some(place);
                }
            }
            keys.extend(least.kept);
        }
        least_once(&mut keys, most);
        keys
    }

    fn has_key(&self, place: usize, direction: u8, fields: KeyFields) -> bool {
        self.direction[place] == direction
            && self.flags[place] & (flag::SYN | flag::RST) == 0
            && self.acknowledgement_offset[place] != NO_ACKNOWLEDGEMENT
            && (!fields.stamps || self.marks[place] & mark::HAS_TIMESTAMPS != 0)
    }

    /// The key of a packet that is made of its own fields.
    fn own_key(&self, place: usize, fields: KeyFields) -> u64 {
        let (ip_id, length) = (i64::from(self.ip_id[place]), i64::from(self.payload_bytes[place]));
        if fields.stamps {
            let stamped = hashed([i64::from(self.tsval[place]), i64::from(self.tsecr[place]), length]);
            return if fields.ip_id { mixed(stamped, ip_id) } else { stamped };
        }
        hashed([ip_id, length, self.sequence_offset[place], self.acknowledgement_offset[place]])
    }

    /// The key of a segment and its direction's next one by their first bytes.
    fn key_of_two(&self, places: [usize; 2]) -> u64 {
        let [ip_ids, lengths, bytes] = [
            places.map(|place| i64::from(self.ip_id[place])),
            places.map(|place| i64::from(self.payload_bytes[place])),
            places.map(|place| i64::from(self.payload_hash[place])),
        ];
        hashed([ip_ids, lengths, bytes].into_iter().flatten())
    }
}

/// The least keys of one direction so far, some more than are wanted.
struct Least {
    kept: Vec<PacketKey>,
    direction: u8,
    most: usize,
    /// No greater key is among the least.
    bound: u64,
}

impl Least {
    fn new(direction: u8, most: usize) -> Self {
        Self { kept: Vec::new(), direction, most, bound: u64::MAX }
    }

    fn push(&mut self, value: u64) {
        if value > self.bound {
            return;
        }
        self.kept.push(PacketKey { value, direction: self.direction });
        if self.kept.len() > SORTED_EVERY * self.most {
            least_once(&mut self.kept, self.most);
            if let Some(last) = self.kept.last().filter(|_| self.kept.len() == self.most) {
                self.bound = last.value;
            }
        }
    }
}

/// Of so many times the keys that are wanted the least are sorted out.
const SORTED_EVERY: usize = 4;

/// Leaves the `most` least keys, ascending, each value once: of equal ones that of the client's packet.
fn least_once(keys: &mut Vec<PacketKey>, most: usize) {
    keys.sort_unstable();
    keys.dedup_by_key(|key| key.value);
    keys.truncate(most);
}

fn hashed(fields: impl IntoIterator<Item = i64>) -> u64 {
    fields.into_iter().fold(0, mixed)
}

fn mixed(value: u64, field: i64) -> u64 {
    let mixed = (value ^ u64::from_ne_bytes(field.to_ne_bytes())).wrapping_mul(MIX);
    mixed ^ (mixed >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAMPS: KeyFields = KeyFields { stamps: true, ip_id: false, places: false };

    #[test]
    fn equal_packets_have_one_key_and_a_constant_ip_id_none() {
        let packets = Packets {
            time_ns: &[0, 1, 2, 3],
            direction: &[UP, UP, UP, DOWN],
            sequence_offset: &[0, 0, 10, 0],
            acknowledgement_offset: &[0, 0, 0, NO_ACKNOWLEDGEMENT],
            payload_bytes: &[10, 10, 10, 0],
            flags: &[flag::ACK; 4],
            tsval: &[1, 1, 2, 3],
            tsecr: &[5, 5, 5, 5],
            ip_id: &[7, 7, 7, 7],
            payload_hash: &[1, 1, 2, 0],
            marks: &[mark::HAS_TIMESTAMPS; 4],
            ..Packets::default()
        };
        let keys = packets.packet_keys(STAMPS, 48);
        assert_eq!(keys.len(), 2);
        assert!(keys[0].value < keys[1].value);
        assert_eq!(packets.packet_keys(STAMPS, 1), keys[..1]);
        assert_eq!(packets.packet_keys(KeyFields { ip_id: true, ..STAMPS }, 48), []);
    }

    proptest! {
        #[test]
        fn the_least_keys_are_those_of_all_in_order(
            drawn in proptest::collection::vec((0u64..60, UP..=DOWN), 0..400),
            most in 0usize..20,
        ) {
            let mut wanted: Vec<PacketKey> =
                drawn.iter().map(|&(value, direction)| PacketKey { value, direction }).collect();
            wanted.sort();
            wanted.dedup_by_key(|key| key.value);
            wanted.truncate(most);
            let mut found = Vec::new();
            for direction in [UP, DOWN] {
                let mut least = Least::new(direction, most);
                drawn.iter().filter(|key| key.1 == direction).for_each(|key| least.push(key.0));
                found.extend(least.kept);
            }
            least_once(&mut found, most);
            prop_assert_eq!(found, wanted);
        }
    }
}
