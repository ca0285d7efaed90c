//! Captured payload, stored for the same stream regions in every capture, so that two captures can be compared.

use crate::key::folded_product;
use crate::records::piece_choice::{ChoosePieces, Offered, Payload};

/// Regions are blocks of 64 KiB.
const BLOCK_SHIFT: u32 = 16;
/// Number of blocks from the beginning that are stored completely.
const FIRST_BLOCKS: i64 = 8;
/// Longest piece, in bytes.
pub const PIECE_BYTES: usize = 256;

/// Whether payload at this stream offset is kept: the first eight blocks, then four in every doubling.
#[inline]
pub(crate) fn is_kept(offset: i64) -> bool {
    let block = offset >> BLOCK_SHIFT;
    if block < FIRST_BLOCKS {
        return block >= 0;
    }
    let bit_length = i64::BITS - block.leading_zeros();
    block.trailing_zeros() + 3 >= bit_length
}

/// A hash of the first 16 payload bytes and of how many there are; 0 where fewer were captured than
/// `min(16, payload_length)` or there is no payload.
#[inline]
pub(crate) fn payload_hash(payload: &[u8], payload_length: u32) -> u32 {
    let wanted = payload_length.min(16) as usize;
    let Some(start) = payload.get(..wanted).filter(|start| !start.is_empty()) else { return 0 };
    let whole = match start.first_chunk::<16>() {
        Some(bytes) => u128::from_le_bytes(*bytes),
        None => start.iter().rev().fold(0, |whole, &byte| whole << 8 | u128::from(byte)),
    };
    let left = whole as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let right = (whole >> 64) as u64 ^ 0xd6e8_feb8_6659_fd93;
    let mixed = folded_product(folded_product(left, right) ^ wanted as u64, 0xa076_1d64_78bd_642f);
    (mixed as u32).max(1)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) offset: i64,
    pub(crate) position: u64,
    pub(crate) connection: u32,
    pub(crate) length: u16,
    /// Who sent it; once all are grouped, the direction.
    pub(crate) side: u8,
}

impl Piece {
    fn owner(&self) -> usize {
        self.connection as usize * 2 + usize::from(self.side)
    }
}

/// Pieces of all connections in the order of their packets; the bytes are contiguous.
#[derive(Default)]
pub(crate) struct PieceStore {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    /// Without one all pieces of the sample are kept.
    choice: Option<Box<dyn ChoosePieces + Send>>,
}

impl PieceStore {
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.pieces.len() * size_of::<Piece>()
    }

    pub(crate) fn of(payload: Payload) -> Self {
        let choice = match payload {
            Payload::Chosen(choice) => Some(choice()),
            Payload::Sample | Payload::Nothing => None,
        };
        PieceStore { choice, ..PieceStore::default() }
    }

    /// Keep what the packet brings, where that is asked for.
    #[inline]
    pub(crate) fn offer(&mut self, connection: u32, side: usize, offered: &Offered<'_>) {
        if let Some(choice) = &mut self.choice {
            if !choice.is_wanted(connection as usize, side, offered) {
                return;
            }
        }
        if !offered.is_new {
            return;
        }
        let Some(payload) = offered.bytes.filter(|bytes| !bytes.is_empty()) else { return };
        self.pieces.push(Piece {
            offset: offered.start,
            position: self.bytes.len() as u64,
            connection,
            length: payload.len() as u16,
            side: side as u8,
        });
        self.bytes.extend_from_slice(payload);
    }

    /// Gives every connection another number.
    pub(crate) fn rank(&mut self, ranks: &[usize]) {
        for piece in &mut self.pieces {
            piece.connection = ranks[piece.connection as usize] as u32;
        }
    }

    /// Group by connection and direction; `settle` gives each piece's direction and its final offset, or `None` to drop
    /// it.
    pub(crate) fn group(mut self, connections: usize, settle: impl Fn(&Piece) -> Option<(u8, i64)>) -> PayloadPieces {
        self.pieces.retain_mut(|piece| match settle(piece) {
            Some((direction, offset)) => {
                piece.side = direction;
                piece.offset = offset;
                true
            }
            None => false,
        });
        let (starts, pieces) = by_owner(self.pieces, connections * 2);
        PayloadPieces { starts, pieces, bytes: self.bytes }
    }
}

/// Where the pieces of each owner begin, and behind the last where all end; and the pieces owner by owner, which keep
/// their order. Owners are few numbers, so that counting is enough to sort by them.
fn by_owner(pieces: Vec<Piece>, owners: usize) -> (Vec<usize>, Vec<Piece>) {
    let mut starts = vec![0; owners + 1];
    for piece in &pieces {
        starts[piece.owner() + 1] += 1;
    }
    for owner in 0..owners {
        starts[owner + 1] += starts[owner];
    }
    if pieces.is_sorted_by_key(Piece::owner) {
        return (starts, pieces);
    }
    let mut places = starts.clone();
    let mut sorted = pieces.clone();
    for piece in pieces {
        let place = &mut places[piece.owner()];
        sorted[*place] = piece;
        *place += 1;
    }
    (starts, sorted)
}

/// Payload pieces grouped by connection and direction.
#[derive(Clone, Debug, Default)]
pub struct PayloadPieces {
    starts: Vec<usize>,
    pieces: Vec<Piece>,
    bytes: Vec<u8>,
}

impl PayloadPieces {
    /// Bytes that all of it takes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.bytes.len() + self.pieces.len() * size_of::<Piece>() + self.starts.len() * size_of::<usize>()) as u64
    }

    /// Stream offset and bytes of each piece that one direction (0 up, 1 down) of a connection has.
    pub fn of(&self, connection: usize, direction: usize) -> impl Iterator<Item = (i64, &[u8])> + Clone {
        let owner = connection * 2 + direction;
        let range = match (self.starts.get(owner), self.starts.get(owner + 1)) {
            (Some(&start), Some(&end)) => start..end,
            _ => 0..0,
        };
        self.pieces[range].iter().map(|piece| {
            let position = piece.position as usize;
            (piece.offset, &self.bytes[position..position + usize::from(piece.length)])
        })
    }
}
