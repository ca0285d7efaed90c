//! Round-trip times of data, on the side of the one who sent it, as this capture saw data leave and its
//! acknowledgement return.
//!
//! An acknowledgement that advances gives one sample: of the last segment that it covers. It gives none where that
//! segment was not captured, or late, so that it covers bytes behind the last one in its place: the sample would come
//! out too long. It gives none either (Karn) where a segment among the newly covered ones was sent more than once or
//! had to wait for bytes that came late, since the acknowledgement may then answer another copy. With timestamps
//! (RFC 7323) such a sample survives only if TSecr echoes the first copy of that last segment and no later one. An echo
//! of a later copy is never used: a receiver that delays its acknowledgements echoes the retransmission although it
//! answers the first copy, and the sample would come out too short.

use crate::stream::queue::Queue;

/// Segments remembered for one flow at most; when more are in flight, the oldest give no sample.
const OUTSTANDING_AT_MOST: usize = 1 << 16;
/// Above this capacity an emptied queue is given back.
const CAPACITY_KEPT: usize = 1 << 10;

#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    end: i64,
    time_ns: i64,
    length: u32,
    tsval: u32,
    timestamped: bool,
    /// Sent again, or held up behind bytes that came late.
    ambiguous: bool,
    /// A later copy carries the same TSval, or the segment was held up.
    echo_ambiguous: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Outstanding {
    segments: Queue<Sent>,
}

impl Outstanding {
    /// Data up to `end` left for the first time; `overlaps` where it repeats older bytes as well.
    #[inline(always)]
    pub(crate) fn sent(&mut self, start: i64, end: i64, time_ns: i64, tsval: Option<u32>, overlaps: bool) {
        if self.segments.len() >= OUTSTANDING_AT_MOST {
            self.segments.pop();
        }
        self.segments.push(Sent {
            end,
            time_ns,
            length: (end - start) as u32,
            tsval: tsval.unwrap_or(0),
            timestamped: tsval.is_some(),
            ambiguous: overlaps,
            echo_ambiguous: overlaps,
        });
    }

    /// Bytes from `start` up to `end` were sent again.
    pub(crate) fn sent_again(&mut self, start: i64, end: i64, tsval: Option<u32>) {
        let segments = self.segments.as_mut_slice();
        let from = segments.partition_point(|sent| sent.end <= start);
        for sent in segments.iter_mut().skip(from) {
            if sent.end - i64::from(sent.length) >= end {
                break;
            }
            sent.ambiguous = true;
            sent.echo_ambiguous |= tsval.is_none() || tsval == Some(sent.tsval);
        }
    }

    /// A hole that ended at `end` was filled: what lies above has waited for it.
    pub(crate) fn filled(&mut self, end: i64) {
        let segments = self.segments.as_mut_slice();
        let next = segments.partition_point(|sent| sent.end <= end);
        if let Some(sent) = segments.get_mut(next) {
            sent.ambiguous = true;
        }
    }

    /// The other side has everything up to `acknowledged`: when the segment left whose round trip this completes.
    #[inline]
    pub(crate) fn acknowledged(&mut self, acknowledged: i64, tsecr: Option<u32>) -> Option<i64> {
        let mut last = None;
        let mut ambiguous = false;
        while let Some(sent) = self.segments.as_slice().first() {
            if sent.end > acknowledged {
                break;
            }
            ambiguous |= sent.ambiguous;
            last = Some(*sent);
            self.segments.pop();
        }
        if self.segments.len() == 0 && self.segments.capacity() > CAPACITY_KEPT {
            self.segments.shrink_to(CAPACITY_KEPT / 2);
        }
        let sent = last?;
        if acknowledged > sent.end && self.lacks_bytes(sent.end, acknowledged) {
            return None;
        }
        let echoes_first_copy = sent.timestamped && tsecr == Some(sent.tsval) && !sent.echo_ambiguous;
        (!ambiguous || echoes_first_copy).then_some(sent.time_ns)
    }

    /// Whether bytes behind `end`, where the last segment that is acknowledged ends, are acknowledged as well and were
    /// not captured, or late. One byte is the FIN.
    #[cold]
    fn lacks_bytes(&self, end: i64, acknowledged: i64) -> bool {
        match self.segments.as_slice().first() {
            Some(next) => next.end - i64::from(next.length) > end,
            None => acknowledged > end + 1,
        }
    }

    /// Nothing more is expected.
    pub(crate) fn release(&mut self) {
        self.segments = Queue::default();
    }
}

/// Least, mean and greatest of the samples of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrips {
    pub(crate) samples: u64,
    sum_ns: u64,
    pub(crate) minimum_ns: i64,
    pub(crate) maximum_ns: i64,
}

impl RoundTrips {
    pub(crate) fn add(&mut self, round_trip_ns: i64) {
        if self.samples == 0 {
            self.minimum_ns = round_trip_ns;
            self.maximum_ns = round_trip_ns;
        } else {
            self.minimum_ns = self.minimum_ns.min(round_trip_ns);
            self.maximum_ns = self.maximum_ns.max(round_trip_ns);
        }
        self.samples += 1;
        self.sum_ns = self.sum_ns.saturating_add(round_trip_ns as u64);
    }

    pub(crate) fn mean_ns(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum_ns as f64 / self.samples as f64)
    }
}
