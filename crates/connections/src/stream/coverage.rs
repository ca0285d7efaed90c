//! Which bytes of a stream the capture holds: everything from the first captured byte to the highest, except the holes.

/// Above this many holes, those that the other side has long acknowledged are only counted.
const HOLES_KEPT: usize = 256;
/// Above this many, the lower half is only counted, acknowledged or not.
const HOLES_AT_MOST: usize = 1 << 16;

/// A range that was jumped over, and the packet that jumped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    start: i64,
    end: i64,
    pub(crate) time_ns: i64,
    pub(crate) tsval: Option<u32>,
}

/// What a data segment added.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Novelty {
    /// Continues the stream.
    Next,
    /// Jumps over bytes that were never captured.
    Ahead,
    /// All of it lay in a hole.
    Fills(Hole),
    /// New bytes together with known ones.
    Overlaps,
    /// Nothing new.
    Repeated,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    highest: i64,
    first: i64,
    holes: Vec<Hole>,
    retired_bytes: u64,
    started: bool,
}

impl Coverage {
    /// The stream begins at `offset`: whatever is missing from there on is a hole.
    pub(crate) fn start(&mut self, offset: i64) {
        if !self.started {
            self.started = true;
            self.first = offset;
            self.highest = offset;
        }
    }

    pub(crate) fn started(&self) -> bool {
        self.started
    }

    /// Data from `start` on would be `Novelty::Next`.
    #[inline]
    pub(crate) fn is_continued_at(&self, start: i64) -> bool {
        start == self.highest && self.started
    }

    /// Adds such data.
    #[inline]
    pub(crate) fn continue_to(&mut self, end: i64) {
        self.highest = end;
    }

    /// End of the highest captured byte.
    #[inline]
    pub(crate) fn highest(&self) -> i64 {
        self.highest
    }

    /// Start of the lowest captured byte.
    pub(crate) fn first(&self) -> i64 {
        self.first
    }

    /// Adds the bytes from `start` up to `end` (not empty); `acknowledged` is the other side's cumulative
    /// acknowledgement.
    #[inline]
    pub(crate) fn add(&mut self, start: i64, end: i64, time_ns: i64, tsval: Option<u32>, acknowledged: i64) -> Novelty {
        if self.is_continued_at(start) {
            self.continue_to(end);
            return Novelty::Next;
        }
        self.add_elsewhere(start, end, time_ns, tsval, acknowledged)
    }

    fn add_elsewhere(&mut self, start: i64, end: i64, time_ns: i64, tsval: Option<u32>, acknowledged: i64) -> Novelty {
        if !self.started {
            self.start(start);
            self.highest = end;
            return Novelty::Next;
        }
        if start > self.highest {
            self.retire(acknowledged);
            self.holes.push(Hole { start: self.highest, end: start, time_ns, tsval });
            self.highest = end;
            return Novelty::Ahead;
        }
        if start < self.first {
            return self.add_below(start, end, time_ns);
        }
        self.fill(start, end)
    }

    fn add_below(&mut self, start: i64, end: i64, time_ns: i64) -> Novelty {
        if end < self.first {
            self.holes.insert(0, Hole { start: end, end: self.first, time_ns, tsval: None });
        } else {
            self.fill(self.first, end);
        }
        self.first = start;
        Novelty::Overlaps
    }

    fn fill(&mut self, start: i64, end: i64) -> Novelty {
        let from = self.holes.partition_point(|hole| hole.end <= start);
        let to = from + self.holes[from..].partition_point(|hole| hole.start < end);
        let mut new_bytes = 0;
        let mut jumped = None;
        let mut kept: [Option<Hole>; 2] = [None, None];
        for hole in &self.holes[from..to] {
            new_bytes += hole.end.min(end) - hole.start.max(start);
            jumped.get_or_insert(*hole);
            if hole.start < start {
                kept[0] = Some(Hole { end: start, ..*hole });
            }
            if hole.end > end {
                kept[1] = Some(Hole { start: end, ..*hole });
            }
        }
        if from < to {
            self.holes.splice(from..to, kept.into_iter().flatten());
        }
        if end > self.highest {
            self.highest = end;
            return Novelty::Overlaps;
        }
        match jumped {
            None => Novelty::Repeated,
            Some(hole) if new_bytes == end - start => Novelty::Fills(hole),
            Some(_) => Novelty::Overlaps,
        }
    }

    fn retire(&mut self, acknowledged: i64) {
        if self.holes.len() < HOLES_KEPT {
            return;
        }
        let mut count = self.holes.partition_point(|hole| hole.end <= acknowledged);
        if count < HOLES_KEPT / 2 {
            if self.holes.len() < HOLES_AT_MOST {
                return;
            }
            count = HOLES_AT_MOST / 2;
        }
        self.retired_bytes += self.holes.drain(..count).map(|hole| (hole.end - hole.start) as u64).sum::<u64>();
    }

    /// Bytes in holes that lie below `acknowledged`.
    pub(crate) fn missed_bytes(&self, acknowledged: i64) -> u64 {
        let held: i64 = self.holes.iter().map(|hole| (hole.end.min(acknowledged) - hole.start).max(0)).sum();
        self.retired_bytes + held as u64
    }

    /// Give back spare memory once nothing more is expected.
    pub(crate) fn shrink(&mut self) {
        self.holes.shrink_to_fit();
    }
}
