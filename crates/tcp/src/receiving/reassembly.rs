//! Received data that the application has not read: in order, and out of order.

use std::collections::VecDeque;

use crate::packets::run::{PlacedRun, Run};
use crate::packets::segment::ContentId;

/// Runs held out of order at most; what would make one more is dropped, as if it had not arrived. With full segments it
/// takes a window of twice as many, half of them lost, to get here.
const MAXIMUM_HELD_RUNS: usize = 4096;

/// Blocks remembered so that each is reported in several ACKs (RFC 2018, section 4).
const RECENT_BLOCKS: usize = 6;

/// The receive buffer.
#[derive(Clone, Debug)]
pub(crate) struct Reassembly {
    /// In order: all but the newest run, and that one, which is empty if it was read.
    ready: VecDeque<Run>,
    newest: Run,
    ready_bytes: u64,
    /// Sorted, without overlap; those that touch belong to different contents.
    held: VecDeque<PlacedRun>,
    next: u64,
    recent: [(u64, u64); RECENT_BLOCKS],
    recent_count: usize,
}

impl Reassembly {
    /// Expects the first byte at `next`.
    pub fn new(next: u64) -> Self {
        Self {
            ready: VecDeque::new(),
            newest: Run { content: ContentId::default(), content_offset: 0, bytes: 0 },
            ready_bytes: 0,
            held: VecDeque::new(),
            next,
            recent: [(0, 0); RECENT_BLOCKS],
            recent_count: 0,
        }
    }

    /// Position of the next byte expected.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    #[inline]
    pub fn ready_bytes(&self) -> u64 {
        self.ready_bytes
    }

    /// The content of the next byte to be read.
    pub fn next_content(&self) -> Option<ContentId> {
        let newest = Some(&self.newest).filter(|run| run.bytes > 0);
        self.ready.front().or(newest).map(|run| run.content)
    }

    #[inline]
    pub fn has_gaps(&self) -> bool {
        !self.held.is_empty()
    }

    /// Blocks to report, the most recently changed first.
    pub fn recent_blocks(&self) -> &[(u64, u64)] {
        &self.recent[..self.recent_count]
    }

    /// Takes a run that starts at the next byte expected or before, and whatever it joins up with.
    #[inline]
    pub fn append(&mut self, run: PlacedRun) {
        let run = run.from(self.next);
        if run.start == run.end {
            return;
        }
        self.make_ready(run);
        if self.held.is_empty() {
            return;
        }
        while let Some(first) = self.held.front().copied() {
            if first.start > self.next {
                break;
            }
            self.held.pop_front();
            if first.end > self.next {
                self.make_ready(first.from(self.next));
            }
        }
        let next = self.next;
        self.forget_recent(|block| block.1 <= next);
    }

    #[inline]
    fn make_ready(&mut self, run: PlacedRun) {
        let bytes = run.end - run.start;
        self.append_plain(Run { content: run.content, content_offset: run.content_offset, bytes });
    }

    /// Takes `bytes` bytes that are read already, where none are held or wait to be read.
    #[inline]
    pub fn pass(&mut self, bytes: u64) {
        self.next += bytes;
    }

    /// Takes a run that starts at the next byte expected, where none is held that it could join up with.
    #[inline]
    pub fn append_plain(&mut self, run: Run) {
        self.next += run.bytes;
        self.ready_bytes += run.bytes;
        let newest = &mut self.newest;
        if newest.content == run.content && newest.content_offset.wrapping_add(newest.bytes) == run.content_offset {
            newest.bytes += run.bytes;
            return;
        }
        if newest.bytes > 0 {
            self.ready.push_back(*newest);
        }
        *newest = run;
    }

    /// Holds a run that starts after the next byte expected; returns whether any of it was new and stored.
    pub fn hold(&mut self, run: PlacedRun) -> bool {
        let mut rest = run;
        let mut index = self.held.partition_point(|held| held.end <= run.start);
        let mut kept = false;
        while rest.start < rest.end && self.held.len() < MAXIMUM_HELD_RUNS {
            match self.held.get(index) {
                Some(other) if other.start <= rest.start => {
                    rest = rest.from(other.end);
                    index += 1;
                }
                other => {
                    let end = other.map_or(rest.end, |other| other.start.min(rest.end));
                    index = self.place(index, PlacedRun { end, ..rest });
                    rest = rest.from(end);
                    kept = true;
                }
            }
        }
        self.report(run.start);
        kept
    }

    /// Puts `run` before the run at `index`, joining those that continue one another; the index after it.
    fn place(&mut self, index: usize, run: PlacedRun) -> usize {
        let joins_next = self.held.get(index).is_some_and(|next| run.is_continued_by(next));
        let previous = index.checked_sub(1).and_then(|before| self.held.get_mut(before));
        match previous {
            Some(previous) if previous.is_continued_by(&run) => {
                previous.end = run.end;
                if joins_next {
                    let next_end = self.held.remove(index).map_or(run.end, |next| next.end);
                    self.held[index - 1].end = next_end;
                }
                index
            }
            _ if joins_next => {
                let next = &mut self.held[index];
                next.start = run.start;
                next.content_offset = run.content_offset;
                index + 1
            }
            _ => {
                self.held.insert(index, run);
                index + 1
            }
        }
    }

    /// Moves the block around `position` to the front of those reported.
    fn report(&mut self, position: u64) {
        let index = self.held.partition_point(|held| held.end <= position);
        let Some(mut block) =
            self.held.get(index).filter(|held| held.start <= position).map(|held| (held.start, held.end))
        else {
            return;
        };
        for before in self.held.range(..index).rev() {
            if before.end != block.0 {
                break;
            }
            block.0 = before.start;
        }
        for after in self.held.range(index + 1..) {
            if after.start != block.1 {
                break;
            }
            block.1 = after.end;
        }
        self.forget_recent(|old| block.0 <= old.0 && old.1 <= block.1);
        self.recent_count = (self.recent_count + 1).min(RECENT_BLOCKS);
        self.recent[..self.recent_count].rotate_right(1);
        self.recent[0] = block;
    }

    fn forget_recent(&mut self, is_obsolete: impl Fn(&(u64, u64)) -> bool) {
        let mut kept = 0;
        for index in 0..self.recent_count {
            if !is_obsolete(&self.recent[index]) {
                self.recent[kept] = self.recent[index];
                kept += 1;
            }
        }
        self.recent_count = kept;
    }

    /// Takes up to `limit` bytes of the first run.
    #[inline]
    pub fn read(&mut self, limit: u64) -> Option<Run> {
        let first = self.ready.front_mut().unwrap_or(&mut self.newest);
        let bytes = first.bytes.min(limit);
        if bytes == 0 {
            return None;
        }
        let run = Run { bytes, ..*first };
        self.ready_bytes -= bytes;
        first.content_offset = first.content_offset.wrapping_add(bytes);
        first.bytes -= bytes;
        if self.ready.front().is_some_and(|first| first.bytes == 0) {
            self.ready.pop_front();
        }
        Some(run)
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.ready.clear();
        self.newest.bytes = 0;
        self.ready_bytes = 0;
        self.held.clear();
        self.recent_count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Reassembly;
    use crate::packets::run::{PlacedRun, Run};
    use crate::packets::segment::ContentId;
    use proptest::prelude::*;

    fn placed(start: u64, end: u64) -> PlacedRun {
        PlacedRun { start, end, content: ContentId(1), content_offset: start }
    }

    #[test]
    fn a_filled_gap_gives_one_run() {
        let mut reassembly = Reassembly::new(0);
        assert!(reassembly.hold(placed(20, 30)));
        assert!(reassembly.hold(placed(10, 20)));
        assert!(!reassembly.hold(placed(12, 28)));
        assert_eq!(reassembly.recent_blocks(), [(10, 30)]);
        reassembly.append(placed(0, 10));
        assert_eq!(reassembly.next(), 30);
        assert_eq!(reassembly.read(100), Some(Run { content: ContentId(1), content_offset: 0, bytes: 30 }));
        assert!(reassembly.recent_blocks().is_empty());
    }

    #[test]
    fn the_block_that_changed_last_is_reported_first() {
        let mut reassembly = Reassembly::new(0);
        reassembly.hold(placed(10, 20));
        reassembly.hold(placed(30, 40));
        reassembly.hold(placed(50, 60));
        reassembly.hold(placed(40, 45));
        assert_eq!(reassembly.recent_blocks(), [(30, 45), (50, 60), (10, 20)]);
    }

    #[test]
    fn a_block_spans_contents() {
        let mut reassembly = Reassembly::new(0);
        reassembly.hold(placed(10, 20));
        reassembly.hold(PlacedRun { start: 20, end: 30, content: ContentId(2), content_offset: 0 });
        assert_eq!(reassembly.recent_blocks(), [(10, 30)]);
        reassembly.append(placed(0, 10));
        assert_eq!(reassembly.read(100).map(|run| run.bytes), Some(20));
        assert_eq!(reassembly.read(100).map(|run| run.content), Some(ContentId(2)));
    }

    proptest! {
        #[test]
        fn any_order_with_overlaps_gives_the_stream(parts in prop::collection::vec((0u64..190, 1u64..40), 0..60)) {
            let mut reassembly = Reassembly::new(0);
            let whole = (0..200).step_by(25).map(|start| (start, 25));
            let mut read = 0;
            for (start, length) in parts.into_iter().chain(whole) {
                let run = placed(start, (start + length).min(200));
                if start > reassembly.next() { reassembly.hold(run); } else { reassembly.append(run); }
                while let Some(run) = reassembly.read(7) {
                    prop_assert_eq!(run.content_offset, read);
                    read += run.bytes;
                }
                prop_assert_eq!(read, reassembly.next());
            }
            prop_assert_eq!(read, 200);
            prop_assert!(!reassembly.has_gaps());
        }
    }
}
