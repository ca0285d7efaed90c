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

/// Segments of which those between doubted end points come in the order of time.
pub(crate) struct Apart {
    pub(crate) doubted: Doubted,
    pub(crate) spill: Spill,
}

impl Apart {
    /// Pushes all segments, partition by partition.
    pub(crate) fn push_in_time(mut self, mut analysis: Analysis) -> Result<Analysis, SpillError> {
        let partitions = self.spill.finish()?;
        for partition in 0..partitions.len() {
            partitions.push_in_time(partition, &mut self.doubted, &mut analysis)?;
        }
        Ok(analysis)
    }
}
