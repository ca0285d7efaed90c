//! Parts of a capture that take more memory than was allowed, in words.

use pepscope_connections::Connections;

/// The largest connection and the largest part, in packets and in the bytes that they take.
#[derive(Default)]
pub(crate) struct Oversize {
    memory_bytes: u64,
    connection: (u64, u64),
    part: (u64, u64),
}

impl Oversize {
    pub(crate) fn beyond(memory_bytes: u64) -> Self {
        Oversize { memory_bytes, ..Oversize::default() }
    }

    pub(crate) fn look_at(&mut self, connections: &Connections) {
        let Some(kept) = connections.packets() else { return };
        let mut part = (0, 0);
        for (place, summary) in connections.summaries().enumerate() {
            let (packets, bytes) = (summary.packets, kept.bytes_of(place));
            part = (part.0 + packets, part.1 + bytes);
            if bytes > self.connection.1 {
                self.connection = (packets, bytes);
            }
        }
        if part.1 > self.part.1 {
            self.part = part;
        }
    }

    /// What to say where the largest part takes more memory than is allowed.
    pub(crate) fn warning(&self, parts: usize) -> Option<String> {
        let megabytes = |bytes: u64| bytes.div_ceil(1 << 20);
        if self.part.1 <= self.memory_bytes {
            return None;
        }
        let allowed = megabytes(self.memory_bytes);
        let (packets, bytes) = self.connection;
        Some(if bytes > self.memory_bytes {
            format!(
                "one connection of {packets} packets takes about {} MiB, more than the {allowed} MiB allowed: a \
                 connection is analysed whole",
                megabytes(bytes)
            )
        } else {
            format!(
                "the largest of {parts} parts has {} packets and takes about {} MiB, more than the {allowed} MiB \
                 allowed: no more parts can be made",
                self.part.0,
                megabytes(self.part.1)
            )
        })
    }
}
