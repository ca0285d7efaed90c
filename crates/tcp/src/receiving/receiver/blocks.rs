//! Selective acknowledgements.

use super::Receiver;
use crate::packets::segment::SackBlocks;
use crate::packets::sequence::number;

impl Receiver {
    /// Whether there is anything for a SACK option.
    #[inline]
    pub fn has_blocks(&self) -> bool {
        self.sack && (self.buffer.has_gaps() || self.duplicate.is_some() || self.held_fin().is_some())
    }

    /// Where a FIN is that arrived before what precedes it; only a kernel reports it.
    fn held_fin(&self) -> Option<u64> {
        self.fin.filter(|fin| self.kernel.is_some() && *fin > self.buffer.next())
    }

    /// Blocks for a pure ACK, at most `limit` (RFC 2018, section 4; RFC 2883, section 4).
    pub fn sack_blocks(&mut self, limit: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let mut room = limit;
        let mut push = |block: (u64, u64)| {
            if room > 0 && blocks.push(number(block.0, self.initial), number(block.1, self.initial)) {
                room -= 1;
            }
        };
        if let Some(duplicate) = self.duplicate.take() {
            push(duplicate);
        }
        let mut fin = self.held_fin();
        for (left, right) in self.buffer.recent_blocks() {
            let with_fin = fin.take_if(|fin| *fin == *right);
            push((*left, with_fin.map_or(*right, |fin| fin + 1)));
        }
        if let Some(fin) = fin {
            push((fin, fin + 1));
        }
        blocks
    }
}
