//! What the application wrote and the peer has not acknowledged yet.

use std::collections::VecDeque;

use crate::packets::run::{PlacedRun, Run};
use crate::packets::segment::ContentId;

/// Runs in the order of the stream, whose first byte is at position 1.
#[derive(Clone, Debug)]
pub(crate) struct SendQueue {
    /// All but the newest.
    older: VecDeque<PlacedRun>,
    /// It may be empty, or before the first stored byte.
    newest: PlacedRun,
    /// Ends of writes, for PSH.
    write_ends: VecDeque<u64>,
    start: u64,
    end: u64,
    capacity_bytes: u64,
    /// A write did not fit, so that the application waits.
    refused: bool,
}

impl SendQueue {
    pub fn new(capacity_bytes: u64) -> Self {
        Self {
            older: VecDeque::new(),
            newest: PlacedRun { start: 1, end: 1, content: ContentId::default(), content_offset: 0 },
            write_ends: VecDeque::new(),
            start: 1,
            end: 1,
            capacity_bytes,
            refused: false,
        }
    }

    /// Position after the last byte written.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }

    #[inline(always)]
    pub fn room_bytes(&self) -> u64 {
        self.capacity_bytes.saturating_sub(self.end - self.start)
    }

    /// Takes as much as fits.
    #[inline(always)]
    pub fn write(&mut self, run: Run) -> u64 {
        let accepted = run.bytes.min(self.room_bytes());
        self.refused = accepted < run.bytes;
        if accepted == 0 {
            return 0;
        }
        let placed = PlacedRun {
            start: self.end,
            end: self.end + accepted,
            content: run.content,
            content_offset: run.content_offset,
        };
        self.end = placed.end;
        if self.newest.is_continued_by(&placed) {
            self.newest.end = placed.end;
        } else {
            self.begin_run(placed);
        }
        if !self.refused {
            self.write_ends.push_back(self.end);
        }
        accepted
    }

    #[cold]
    #[inline(never)]
    fn begin_run(&mut self, run: PlacedRun) {
        if self.newest.end > self.start {
            self.older.push_back(self.newest);
        }
        self.newest = run;
    }

    /// Removes the bytes before `position`; returns whether a waiting application may write again.
    #[inline(always)]
    pub fn acknowledge(&mut self, position: u64, segment_bytes: u64) -> bool {
        self.start = position.min(self.end).max(self.start);
        while self.older.front().is_some_and(|run| run.end <= self.start) {
            self.older.pop_front();
        }
        while self.write_ends.front().is_some_and(|end| *end <= self.start) {
            self.write_ends.pop_front();
        }
        if self.refused && self.room_bytes() >= segment_bytes.min(self.capacity_bytes) {
            self.refused = false;
            return true;
        }
        false
    }

    /// Content, its offset and how many bytes of it follow at `position`.
    #[inline]
    pub fn at(&self, position: u64) -> Option<(ContentId, u64, u64)> {
        let run = if self.newest.start <= position {
            &self.newest
        } else {
            self.older.get(self.older.partition_point(|run| run.end <= position))?
        };
        if position < run.start || position >= run.end {
            return None;
        }
        let rest = run.from(position);
        Some((rest.content, rest.content_offset, rest.end - rest.start))
    }

    /// Content, its offset at `start` and where the run ends, if that is the newest run and no end of a write is known.
    #[inline(always)]
    pub fn at_plain(&self, start: u64) -> Option<(ContentId, u64, u64)> {
        let last = &self.newest;
        if start < last.start || !self.write_ends.is_empty() {
            return None;
        }
        Some((last.content, last.content_offset.wrapping_add(start - last.start), last.end))
    }

    /// Whether a write ends in the bytes after `start` and up to `end`.
    #[inline]
    pub fn has_write_end(&self, start: u64, end: u64) -> bool {
        match self.write_ends.front() {
            None => false,
            Some(first) if *first > end => false,
            Some(first) if *first > start => true,
            Some(_) => {
                let index = self.write_ends.partition_point(|place| *place <= start);
                self.write_ends.get(index).is_some_and(|place| *place <= end)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SendQueue;
    use crate::packets::run::Run;
    use crate::packets::segment::ContentId;

    fn run(content: u32, content_offset: u64, bytes: u64) -> Run {
        Run { content: ContentId(content), content_offset, bytes }
    }

    #[test]
    fn contiguous_writes_are_one_run_and_others_are_not() {
        let mut queue = SendQueue::new(1000);
        assert_eq!(queue.write(run(1, 0, 100)), 100);
        assert_eq!(queue.write(run(1, 100, 100)), 100);
        assert_eq!(queue.write(run(2, 0, 100)), 100);
        assert_eq!(queue.at(1), Some((ContentId(1), 0, 200)));
        assert_eq!(queue.at(151), Some((ContentId(1), 150, 50)));
        assert_eq!(queue.at(201), Some((ContentId(2), 0, 100)));
        assert_eq!(queue.at(301), None);
    }

    #[test]
    fn a_write_that_does_not_fit_is_cut_and_wakes_the_writer_later() {
        let mut queue = SendQueue::new(1000);
        assert_eq!(queue.write(run(1, 0, 1500)), 1000);
        assert_eq!(queue.write(run(1, 1000, 500)), 0);
        assert!(!queue.acknowledge(50, 100));
        assert!(queue.acknowledge(101, 100));
        assert!(!queue.acknowledge(201, 100), "the writer is woken once");
        assert_eq!(queue.write(run(1, 1000, 500)), 200);
    }

    #[test]
    fn only_whole_writes_end_in_a_push() {
        let mut queue = SendQueue::new(1000);
        queue.write(run(1, 0, 300));
        queue.write(run(1, 300, 2000));
        assert!(queue.has_write_end(1, 301));
        assert!(queue.has_write_end(201, 400));
        assert!(!queue.has_write_end(1, 300));
        assert!(!queue.has_write_end(301, 1001));
    }
}
