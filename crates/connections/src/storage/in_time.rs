//! Connections whose packets stand in their file in another order than that of time.
//!
//! A capture is written in order, so that times fall back where its clock was set. They also do where the file of a
//! tap's one card was appended to the other's, or a later part of a series stands first; then the times are right.

use pepscope_wire::segment::Segment;

use crate::analysis::Analysis;
use crate::key::Key;
use crate::storage::sorted::{Sorted, Sorter, RUN_BYTES};
use crate::storage::spill::{Partitions, SpillError};
use crate::stream::contradictions::Contradictions;
use crate::table::{FlowTable, Place};

/// Pairs of end points with connections whose times fall back.
pub(crate) struct Doubted {
    table: FlowTable,
    pairs: Vec<Pair>,
}

/// Two end points, and how often their packets contradict each other in either order.
struct Pair {
    key: Key,
    in_file: Contradictions,
    in_time: Contradictions,
}

impl Pair {
    fn of(key: Key) -> Pair {
        Pair { key, in_file: Contradictions::default(), in_time: Contradictions::default() }
    }

    fn goes_by_time(&self) -> bool {
        self.in_time.count < self.in_file.count
    }
}

impl Doubted {
    pub(crate) fn new(keys: impl Iterator<Item = Key>) -> Doubted {
        let (mut table, mut pairs) = (FlowTable::new(), Vec::<Pair>::new());
        for key in keys {
            if let Place::Vacant { slot } = table.find(key.hash(), &key, |index| &pairs[index as usize].key) {
                let index = pairs.len() as u32;
                pairs.push(Pair::of(key));
                table.insert(slot, key.hash(), index, |index| pairs[index as usize].key.hash());
            }
        }
        Doubted { table, pairs }
    }

    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(crate) fn contains(&self, key: &Key) -> bool {
        self.find(key).is_some()
    }

    fn go_by_time(&self, key: &Key) -> bool {
        self.find(key).is_some_and(|(place, _)| self.pairs[place].goes_by_time())
    }

    /// The pair that this segment is between, and which of its end points sends.
    fn pair_of(&mut self, segment: &Segment<'_>) -> Option<(&mut Pair, usize)> {
        let (place, side) = self.find(&Key::of(segment))?;
        Some((&mut self.pairs[place], side))
    }

    /// Place of a pair of end points, and which of them sends.
    fn find(&self, key: &Key) -> Option<(usize, usize)> {
        match self.table.find(key.hash(), key, |index| &self.pairs[index as usize].key) {
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
        doubted: &mut Doubted,
        analysis: &mut Analysis,
    ) -> Result<(), SpillError> {
        let sorted = self.weigh_orders(partition, doubted)?;
        let mut reader = self.read(partition);
        while let Some(segment) = reader.next_segment()? {
            if !doubted.go_by_time(&Key::of(&segment)) {
                analysis.push(&segment);
            }
        }
        sorted.visit(|segment| {
            if doubted.go_by_time(&Key::of(segment)) {
                analysis.push(segment);
            }
        })
    }

    /// Counts what the segments of a partition between doubted end points contradict in either order. Gives them in the
    /// order of time.
    fn weigh_orders(&self, partition: usize, doubted: &mut Doubted) -> Result<Sorted, SpillError> {
        let mut sorter = Sorter::create(self.directory(), RUN_BYTES)?;
        let mut reader = self.read(partition);
        while let Some(segment) = reader.next_segment()? {
            if let Some((pair, side)) = doubted.pair_of(&segment) {
                pair.in_file.note(side, &segment);
                sorter.push(&segment)?;
            }
        }
        let sorted = sorter.finish()?;
        sorted.visit(|segment| {
            if let Some((pair, side)) = doubted.pair_of(segment) {
                pair.in_time.note(side, segment);
            }
        })?;
        Ok(sorted)
    }
}
