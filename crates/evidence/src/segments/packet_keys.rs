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

/// What keys are made of, of one packet; members are those of `Packets`.
#[derive(Clone, Copy, Debug)]
pub struct KeyedPacket {
    pub direction: u8,
    pub flags: u16,
    pub marks: u16,
    pub ip_id: u16,
    pub sequence_offset: i64,
    pub acknowledgement_offset: i64,
    pub payload_bytes: u32,
    pub tsval: u32,
    pub tsecr: u32,
    pub payload_hash: u32,
}

/// The `most` least keys of a connection for each of these `fields`, ascending and each once, without SYN and RST.
///
/// A direction whose IP identification never changes has none that are made of it.
pub fn packet_keys<const FORMS: usize>(
    packets: impl Iterator<Item = KeyedPacket>,
    fields: [KeyFields; FORMS],
    most: usize,
) -> [Vec<PacketKey>; FORMS] {
    let mut forms = fields.map(|fields| KeysInMaking::new(fields, most));
    for packet in packets.filter(KeyedPacket::may_have_key) {
        forms.iter_mut().for_each(|form| form.push(&packet));
    }
    forms.map(KeysInMaking::finish)
}

impl Packets<'_> {
    /// What keys of these packets are made of.
    pub fn keyed(&self) -> impl Iterator<Item = KeyedPacket> + '_ {
        (0..self.len()).map(|place| KeyedPacket {
            direction: self.direction[place],
            flags: self.flags[place],
            marks: self.marks[place],
            ip_id: self.ip_id[place],
            sequence_offset: self.sequence_offset[place],
            acknowledgement_offset: self.acknowledgement_offset[place],
            payload_bytes: self.payload_bytes[place],
            tsval: self.tsval[place],
            tsecr: self.tsecr[place],
            payload_hash: self.payload_hash[place],
        })
    }
}

impl KeyedPacket {
    #[inline]
    fn may_have_key(&self) -> bool {
        self.flags & (flag::SYN | flag::RST) == 0 && self.acknowledgement_offset != NO_ACKNOWLEDGEMENT
    }

    /// The key that is made of the packet's own fields.
    #[inline]
    fn own_key(&self, fields: KeyFields) -> u64 {
        let (ip_id, length) = (i64::from(self.ip_id), i64::from(self.payload_bytes));
        if fields.stamps {
            let stamped = hashed([i64::from(self.tsval), i64::from(self.tsecr), length]);
            return if fields.ip_id { mixed(stamped, ip_id) } else { stamped };
        }
        hashed([ip_id, length, self.sequence_offset, self.acknowledgement_offset])
    }

    /// The key of a segment and its direction's next one by their first bytes.
    fn key_with_next(&self, next: &KeyedPacket) -> u64 {
        let [ip_ids, lengths, bytes] = [
            [self, next].map(|packet| i64::from(packet.ip_id)),
            [self, next].map(|packet| i64::from(packet.payload_bytes)),
            [self, next].map(|packet| i64::from(packet.payload_hash)),
        ];
        hashed([ip_ids, lengths, bytes].into_iter().flatten())
    }
}

/// Keys of one form, in the making; the pairs are by direction.
struct KeysInMaking {
    fields: KeyFields,
    most: usize,
    least: [Least; 2],
    first_ip_ids: [Option<u16>; 2],
    ip_ids_vary: [bool; 2],
    /// The last segment whose first bytes are known, where keys are made of two.
    before: [Option<KeyedPacket>; 2],
}

impl KeysInMaking {
    fn new(fields: KeyFields, most: usize) -> Self {
        Self {
            fields,
            most,
            least: [UP, DOWN].map(|direction| Least::new(direction, most)),
            first_ip_ids: [None; 2],
            ip_ids_vary: [false; 2],
            before: [None; 2],
        }
    }

    #[inline]
    fn push(&mut self, packet: &KeyedPacket) {
        let (fields, way) = (self.fields, usize::from(packet.direction == DOWN));
        if fields.stamps && packet.marks & mark::HAS_TIMESTAMPS == 0 {
            return;
        }
        if fields.ip_id {
            self.ip_ids_vary[way] |= *self.first_ip_ids[way].get_or_insert(packet.ip_id) != packet.ip_id;
        }
        if fields.stamps || fields.places {
            self.least[way].push(packet.own_key(fields));
        } else if packet.payload_hash != 0 {
            if let Some(before) = self.before[way].replace(*packet) {
                self.least[way].push(before.key_with_next(packet));
            }
        }
    }

    fn finish(self) -> Vec<PacketKey> {
        let Self { fields, most, least, ip_ids_vary, .. } = self;
        let telling = least.into_iter().zip(ip_ids_vary).filter(|&(_, vary)| vary || !fields.ip_id);
        let mut keys: Vec<PacketKey> = telling.flat_map(|(least, _)| least.kept).collect();
        least_once(&mut keys, most);
        keys
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

    #[inline]
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
        let keys_of = |fields, most| {
            let [keys] = packet_keys(packets.keyed(), [fields], most);
            keys
        };
        let keys = keys_of(STAMPS, 48);
        assert_eq!(keys.len(), 2);
        assert!(keys[0].value < keys[1].value);
        assert_eq!(keys_of(STAMPS, 1), keys[..1]);
        assert_eq!(keys_of(KeyFields { ip_id: true, ..STAMPS }, 48), []);
        let both = packet_keys(packets.keyed(), [KeyFields { ip_id: true, ..STAMPS }, STAMPS], 48);
        assert_eq!(both, [vec![], keys]);
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
