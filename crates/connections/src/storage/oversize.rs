//! What the partitions of a capture take in memory, and those that take more than was allowed.

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
#[derive(Debug, Default)]
pub(crate) struct PartitionSizes {
    connection: Size,
    partition: Size,
    /// Bytes with payload samples; while a partition is loaded, its connections count too.
    loaded_bytes: u64,
    loading_bytes: u64,
}

impl PartitionSizes {
    /// Counts one partition.
    pub(crate) fn count(&mut self, connections: &Connections) {
        let Some(kept) = connections.packets() else { return };
        self.loaded_bytes = self.loaded_bytes.max(connections.kept_bytes());
        self.loading_bytes = self.loading_bytes.max(connections.memory_bytes());
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

    /// Bytes that loading the largest partition takes.
    pub(crate) fn largest_loading_bytes(&self) -> u64 {
        self.loading_bytes
    }

    /// How many partitions may be in memory at a time, while the last of them is loaded; at least one.
    pub(crate) fn kept_in(&self, memory_bytes: u64) -> usize {
        let others = memory_bytes.saturating_sub(self.loading_bytes) / self.loaded_bytes.max(1);
        1 + usize::try_from(others).unwrap_or(usize::MAX - 1)
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
