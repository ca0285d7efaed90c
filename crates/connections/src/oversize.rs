//! Partitions of a capture that take more memory than was allowed.

use crate::analysis::Connections;

/// Packets, and the bytes of memory that they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub packets: u64,
    pub bytes: u64,
}

/// The largest partition takes more memory than was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oversize {
    pub allowed_bytes: u64,
    pub partitions: usize,
    pub largest_connection: Size,
    pub largest_partition: Size,
}

/// The largest connection and the largest partition so far.
#[derive(Default)]
pub(crate) struct PartitionSizes {
    connection: Size,
    partition: Size,
}

impl PartitionSizes {
    /// Counts one partition.
    pub(crate) fn count(&mut self, connections: &Connections) {
        let Some(kept) = connections.packets() else { return };
        let mut partition = Size::default();
        for (place, summary) in connections.summaries().enumerate() {
            let size = Size { packets: summary.packets, bytes: kept.bytes_of(place) };
            partition.packets += size.packets;
            partition.bytes += size.bytes;
            if size.bytes > self.connection.bytes {
                self.connection = size;
            }
        }
        if partition.bytes > self.partition.bytes {
            self.partition = partition;
        }
    }

    pub(crate) fn beyond(&self, allowed_bytes: u64, partitions: usize) -> Option<Oversize> {
        (self.partition.bytes > allowed_bytes).then_some(Oversize {
            allowed_bytes,
            partitions,
            largest_connection: self.connection,
            largest_partition: self.partition,
        })
    }
}
