//! What an application saw, in numbers.

use pepscope_path::Nanoseconds;

/// What an application saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplicationCounts {
    /// Taken by the send buffer.
    pub written_bytes: u64,
    pub read_bytes: u64,
    /// The digests of what was written and of what was read (see [`crate::ContentDigest`]).
    pub written_digest: u64,
    pub read_digest: u64,
    pub first_read_ns: Option<Nanoseconds>,
    pub last_read_ns: Option<Nanoseconds>,
    /// `Receive` steps that got what they waited for, and how long they waited, in sum and at most.
    pub answers: u64,
    pub answer_time_ns: Nanoseconds,
    pub longest_answer_ns: Nanoseconds,
    /// The script's close or abort came.
    pub ended_ns: Option<Nanoseconds>,
    pub aborted: bool,
}
