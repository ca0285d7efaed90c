//! Connections whose packets stand in their file in another order than that of time.
//!
//! A capture is written in order, so that times fall back where its clock was set. They also do where the file of a
//! tap's one card was appended to the other's, or a later part of a series stands first; then the times are right.

use crate::analysis::Analysis;
use crate::key::Key;
use crate::storage::sorted::{Sorter, RUN_BYTES};
use crate::storage::spill::{Partitions, SpillError};
use crate::stream::contradictions::Contradictions;
use crate::table::{FlowTable, Place};

/// Pairs of end points with connections whose times fall back.
pub(crate) struct Doubted {
    table: FlowTable,
    keys: Vec<Key>,
}

impl Doubted {
    pub(crate) fn new(keys: impl Iterator<Item = Key>) -> Doubted {
        let mut doubted = Doubted { table: FlowTable::new(), keys: Vec::new() };
        for key in keys {
            let known = &doubted.keys;
            if let Place::Vacant { slot } = doubted.table.find(key.hash(), &key, |index| &known[index as usize]) {
                let index = known.len() as u32;
                doubted.keys.push(key);
                let known = &doubted.keys;
                doubted.table.insert(slot, key.hash(), index, |index| known[index as usize].hash());
            }
        }
        doubted
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Number of a pair of end points, and which of them sends.
    pub(crate) fn find(&self, key: &Key) -> Option<(usize, usize)> {
        match self.table.find(key.hash(), key, |index| &self.keys[index as usize]) {
            Place::Found { connection, side, .. } => Some((connection as usize, side)),
            Place::Vacant { .. } => None,
        }
    }
}

impl Partitions {
    /// Pushes the segments of a partition: in the order of time those between doubted end points whose packets
    /// contradict each other less often in that order, all others in capture order.
    pub(crate) fn push_in_time(
        &self,
        partition: usize,
        doubted: &Doubted,
        analysis: &mut Analysis,
    ) -> Result<(), SpillError> {
        let mut in_file = vec![Contradictions::default(); doubted.len()];
        let mut in_time = in_file.clone();
        let mut sorter = Sorter::create(self.directory(), RUN_BYTES)?;
        let mut reader = self.read(partition);
        while let Some(segment) = reader.next_segment()? {
            if let Some((number, side)) = doubted.find(&Key::of(&segment)) {
                in_file[number].note(side, &segment);
                sorter.push(&segment)?;
            }
        }
        let sorted = sorter.finish()?;
        sorted.visit(|segment| {
            if let Some((number, side)) = doubted.find(&Key::of(segment)) {
                in_time[number].note(side, segment);
            }
        })?;
        let goes_by_time =
            |key: &Key| doubted.find(key).is_some_and(|(number, _)| in_time[number].count < in_file[number].count);
        let mut reader = self.read(partition);
        while let Some(segment) = reader.next_segment()? {
            if !goes_by_time(&Key::of(&segment)) {
                analysis.push(&segment);
            }
        }
        sorted.visit(|segment| {
            if goes_by_time(&Key::of(segment)) {
                analysis.push(segment);
            }
        })
    }
}
