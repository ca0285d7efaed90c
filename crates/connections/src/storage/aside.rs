//! What is set aside while a capture is read, in temporary files.

use crate::analysis::Analysis;
use crate::storage::in_time::Doubted;
use crate::storage::spill::{Spill, SpillError};

/// More doubted end points than these share a file.
const MOST_FILES: usize = 64;

/// Segments that the analysis does not take, or not yet.
#[derive(Default)]
pub(crate) struct Aside {
    pub(crate) apart: Option<Apart>,
    /// Every segment; without packet columns those of connections for which memory has no room.
    pub(crate) spill: Option<Spill>,
}

impl Aside {
    /// For every segment.
    pub(crate) fn every(partitions: usize) -> Result<Aside, SpillError> {
        Ok(Aside { apart: None, spill: Some(Spill::create(None, partitions)?) })
    }

    /// For the segments between doubted end points.
    pub(crate) fn doubted(doubted: Doubted) -> Result<Aside, SpillError> {
        let partitions = doubted.len().next_power_of_two().min(MOST_FILES);
        Ok(Aside { apart: Some(Apart { doubted, spill: Spill::create(None, partitions)? }), spill: None })
    }
}

/// Segments that come in the order of time after all others.
pub(crate) struct Apart {
    pub(crate) doubted: Doubted,
    pub(crate) spill: Spill,
}

/// Pushes all segments: partition by partition, those between doubted end points in the order of time.
pub(crate) fn push_all_in_time(spill: Spill, doubted: &Doubted, analysis: &mut Analysis) -> Result<(), SpillError> {
    let partitions = spill.finish()?;
    (0..partitions.len()).try_for_each(|partition| partitions.push_in_time(partition, doubted, analysis))
}
