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
            let places: Vec<usize> = (0..self.len()).filter(|&place| self.has_key(place, direction, fields)).collect();
            let ip_id = |place: &usize| self.ip_id[*place];
            if fields.ip_id && places.iter().map(ip_id).all(|id| Some(id) == places.first().map(ip_id)) {
                continue;
            }
            let values = self.key_values(&places, fields).into_iter();
            keys.extend(values.map(|value| PacketKey { value, direction }));
        }
        least_once(keys, most)
    }

    fn has_key(&self, place: usize, direction: u8, fields: KeyFields) -> bool {
        self.direction[place] == direction
            && self.flags[place] & (flag::SYN | flag::RST) == 0
            && self.acknowledgement_offset[place] != NO_ACKNOWLEDGEMENT
            && (!fields.stamps || self.marks[place] & mark::HAS_TIMESTAMPS != 0)
    }

    fn key_values(&self, places: &[usize], fields: KeyFields) -> Vec<u64> {
        let length = |place: usize| i64::from(self.payload_bytes[place]);
        let ip_id = |place: usize| i64::from(self.ip_id[place]);
        if fields.stamps {
            let stamped = |&place: &usize| {
                let stamps = [i64::from(self.tsval[place]), i64::from(self.tsecr[place]), length(place)];
                hashed(stamps.into_iter().chain(fields.ip_id.then(|| ip_id(place))))
            };
            return places.iter().map(stamped).collect();
        }
        if fields.places {
            let placed = |&place: &usize| {
                let offsets = [self.sequence_offset[place], self.acknowledgement_offset[place]];
                hashed([ip_id(place), length(place)].into_iter().chain(offsets))
            };
            return places.iter().map(placed).collect();
        }
        let known: Vec<usize> = places.iter().copied().filter(|&place| self.payload_hash[place] != 0).collect();
        let bytes = |place: usize| i64::from(self.payload_hash[place]);
        let with_next = |two: &[usize]| {
            let both = |field: &dyn Fn(usize) -> i64| two.iter().map(|&place| field(place)).collect::<Vec<_>>();
            hashed([both(&ip_id), both(&length), both(&bytes)].concat())
        };
        known.windows(2).map(with_next).collect()
    }
}

/// The `most` least keys, ascending, each value once: of equal ones that of the client's packet.
///
/// Of many keys few are wanted, so only the least are sorted: more of them until enough differ.
fn least_once(mut keys: Vec<PacketKey>, most: usize) -> Vec<PacketKey> {
    let mut sorted = most.saturating_mul(2).max(1);
    while sorted < keys.len() {
        let (least, ..) = keys.select_nth_unstable(sorted);
        least.sort_unstable();
        if least.chunk_by(|one, two| one.value == two.value).count() >= most {
            break;
        }
        sorted = sorted.saturating_mul(4);
    }
    if sorted >= keys.len() {
        keys.sort_unstable();
    } else {
        keys.truncate(sorted);
    }
    keys.dedup_by_key(|key| key.value);
    keys.truncate(most);
    keys
}

fn hashed(fields: impl IntoIterator<Item = i64>) -> u64 {
    fields.into_iter().fold(0, |value: u64, field| {
        let mixed = (value ^ u64::from_ne_bytes(field.to_ne_bytes())).wrapping_mul(MIX);
        mixed ^ (mixed >> 29)
    })
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
            drawn in proptest::collection::vec((0u64..60, 0u8..2), 0..200),
            most in 0usize..20,
        ) {
            let keys: Vec<PacketKey> = drawn.iter().map(|&(value, direction)| PacketKey { value, direction }).collect();
            let mut wanted = keys.clone();
            wanted.sort();
            wanted.dedup_by_key(|key| key.value);
            wanted.truncate(most);
            prop_assert_eq!(least_once(keys, most), wanted);
        }
    }
}
