//! IP reassembly: datagrams put together from their fragments, bounded in number, bytes and age.

use std::collections::{HashMap, VecDeque};

use crate::error::Reject;

/// What fragments of one datagram have in common (RFC 791 section 3.2, RFC 8200 section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FragmentKey {
    pub(crate) source: [u8; 16],
    pub(crate) destination: [u8; 16],
    pub(crate) identification: u32,
    pub(crate) protocol: u8,
    /// Addresses inside different tunnels may be the same and mean different hosts.
    pub(crate) tunnel_identifier: u32,
}

/// A datagram's payload, whole on the wire; of what was captured, the part before the first hole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Assembled {
    pub(crate) captured: Vec<u8>,
    pub(crate) wire_bytes: usize,
}

const MOST_DATAGRAMS: usize = 1024;
const MOST_BYTES: usize = 16 << 20;
/// Fragments of 576-byte links make at most 120 of the largest datagram.
const MOST_PIECES: usize = 256;
/// What a piece costs besides its bytes.
const PIECE_OVERHEAD_BYTES: usize = 64;
const LARGEST_DATAGRAM_BYTES: u32 = 65_535;
/// RFC 791 and RFC 8200 give up after 15 and 60 seconds; Linux after 30.
const LONGEST_WAIT_NS: i64 = 30_000_000_000;

struct Piece {
    offset: u32,
    wire_bytes: u32,
    captured: Vec<u8>,
}

struct Datagram {
    first_time_ns: i64,
    total_bytes: Option<u32>,
    pieces: Vec<Piece>,
    held_bytes: usize,
    number: u64,
}

/// Waiting fragments of a capture.
#[derive(Default)]
pub(crate) struct Fragments {
    waiting: HashMap<FragmentKey, Datagram>,
    /// Oldest first; entries whose number no longer matches are stale.
    order: VecDeque<(u64, FragmentKey)>,
    held_bytes: usize,
    next_number: u64,
    latest_number: u64,
    given_up_datagrams: u64,
}

impl Fragments {
    /// Datagrams of which some fragment never came, those still waiting included.
    pub(crate) fn unfinished_datagrams(&self) -> u64 {
        self.given_up_datagrams + self.waiting.len() as u64
    }

    /// Number of the datagram that the fragment added last belongs to.
    pub(crate) fn latest_number(&self) -> u64 {
        self.latest_number
    }

    /// Adds a fragment: `wire_bytes` of payload from `offset` on, of which `captured` are at hand.
    pub(crate) fn add(
        &mut self,
        key: FragmentKey,
        time_ns: i64,
        offset: u32,
        more: bool,
        captured: &[u8],
        wire_bytes: usize,
    ) -> Result<Assembled, Reject> {
        let wire_bytes = u32::try_from(wire_bytes).map_err(|_| Reject::Malformed)?;
        let end = offset.checked_add(wire_bytes).filter(|end| *end <= LARGEST_DATAGRAM_BYTES);
        let Some(end) = end.filter(|_| wire_bytes > 0) else {
            return Err(Reject::Malformed);
        };
        self.give_up_old(time_ns);
        let number = self.next_number;
        let datagram = self.waiting.entry(key).or_insert_with(|| {
            self.order.push_back((number, key));
            self.next_number += 1;
            Datagram { first_time_ns: time_ns, total_bytes: None, pieces: Vec::new(), held_bytes: 0, number }
        });
        if !more {
            datagram.total_bytes.get_or_insert(end);
        }
        self.latest_number = datagram.number;
        let cost = captured.len() + PIECE_OVERHEAD_BYTES;
        let at = datagram.pieces.partition_point(|piece| piece.offset <= offset);
        datagram.pieces.insert(at, Piece { offset, wire_bytes, captured: captured.to_vec() });
        datagram.held_bytes += cost;
        self.held_bytes += cost;
        let finished = datagram.assembled();
        let crowded = datagram.pieces.len() > MOST_PIECES;
        if let Some(assembled) = finished {
            self.forget(&key);
            return Ok(assembled);
        }
        if crowded {
            self.forget(&key);
            self.given_up_datagrams += 1;
        }
        while self.waiting.len() > MOST_DATAGRAMS || self.held_bytes > MOST_BYTES {
            if !self.give_up_oldest() {
                break;
            }
        }
        Err(Reject::FragmentHeld)
    }

    fn give_up_old(&mut self, now_ns: i64) {
        while let Some((number, key)) = self.order.front() {
            let stale = match self.waiting.get(key).filter(|datagram| datagram.number == *number) {
                Some(datagram) => now_ns.saturating_sub(datagram.first_time_ns) > LONGEST_WAIT_NS,
                None => true,
            };
            if !stale {
                break;
            }
            self.give_up_oldest();
        }
    }

    fn give_up_oldest(&mut self) -> bool {
        let Some((number, key)) = self.order.pop_front() else {
            return false;
        };
        if self.waiting.get(&key).is_some_and(|datagram| datagram.number == number) {
            self.forget(&key);
            self.given_up_datagrams += 1;
        }
        true
    }

    fn forget(&mut self, key: &FragmentKey) {
        if let Some(datagram) = self.waiting.remove(key) {
            self.held_bytes -= datagram.held_bytes;
        }
    }
}

impl Datagram {
    /// The whole, once the wire lengths cover it. Where fragments overlap, what stands earlier in the datagram wins.
    fn assembled(&self) -> Option<Assembled> {
        let total_bytes = self.total_bytes?;
        let mut covered = 0;
        for piece in &self.pieces {
            if piece.offset > covered {
                return None;
            }
            covered = covered.max(piece.offset + piece.wire_bytes);
        }
        if covered < total_bytes {
            return None;
        }
        let mut captured = Vec::new();
        for piece in &self.pieces {
            let Some(new) = captured.len().checked_sub(piece.offset as usize) else { break };
            captured.extend_from_slice(piece.captured.get(new..).unwrap_or_default());
        }
        captured.truncate(total_bytes as usize);
        Some(Assembled { captured, wire_bytes: total_bytes as usize })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(identification: u32) -> FragmentKey {
        FragmentKey { source: [1; 16], destination: [2; 16], identification, protocol: 6, tunnel_identifier: 0 }
    }

    #[test]
    fn any_order_and_overlap() {
        let bytes: Vec<u8> = (0..40).collect();
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
            let mut fragments = Fragments::default();
            let mut done = None;
            for part in order {
                let (from, to, more) = [(0, 16, true), (8, 32, true), (32, 40, false)][part];
                done = fragments.add(key(7), 0, from as u32, more, &bytes[from..to], to - from).ok();
            }
            assert_eq!(done, Some(Assembled { captured: bytes.clone(), wire_bytes: 40 }));
            assert_eq!((fragments.held_bytes, fragments.unfinished_datagrams()), (0, 0));
        }
    }

    #[test]
    fn snapped_fragments_keep_the_wire_length() {
        let mut fragments = Fragments::default();
        assert_eq!(fragments.add(key(1), 0, 0, true, &[9; 10], 16), Err(Reject::FragmentHeld));
        let done = fragments.add(key(1), 0, 16, false, &[8; 4], 16);
        assert_eq!(done, Ok(Assembled { captured: vec![9; 10], wire_bytes: 32 }));
    }

    #[test]
    fn the_last_fragment_sets_the_end() {
        let mut fragments = Fragments::default();
        assert_eq!(fragments.add(key(1), 0, 0, true, &[9; 32], 32), Err(Reject::FragmentHeld));
        let done = fragments.add(key(1), 0, 8, false, &[8; 12], 12);
        assert_eq!(done, Ok(Assembled { captured: vec![9; 20], wire_bytes: 20 }));
    }

    #[test]
    fn number_bytes_and_age_are_bounded() {
        let mut fragments = Fragments::default();
        for identification in 0..5_000 {
            let added = fragments.add(key(identification), 0, 0, true, &[0; 1400], 1400);
            assert_eq!(added, Err(Reject::FragmentHeld));
        }
        assert_eq!(fragments.waiting.len(), MOST_DATAGRAMS);
        assert_eq!(fragments.unfinished_datagrams(), 5_000);
        for round in 0..400 {
            let _ = fragments.add(key(0), 0, 8 * round, true, &[0; 60_000], 60_000);
            assert!(fragments.held_bytes <= MOST_BYTES + 61_000);
        }
        let late = fragments.add(key(9_999), LONGEST_WAIT_NS + 1, 0, true, &[0; 8], 8);
        assert_eq!(late, Err(Reject::FragmentHeld));
        assert_eq!(fragments.waiting.len(), 1);
    }

    #[test]
    fn impossible_fragments_are_malformed() {
        let mut fragments = Fragments::default();
        assert_eq!(fragments.add(key(1), 0, 65_528, true, &[0; 8], 8), Err(Reject::Malformed));
        assert_eq!(fragments.add(key(1), 0, 8, true, &[], 0), Err(Reject::Malformed));
    }
}
