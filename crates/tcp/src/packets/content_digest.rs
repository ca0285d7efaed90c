//! Proof that what arrived is what was sent, byte for byte, without the bytes.

use crate::packets::run::Run;

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// A digest of a stream of runs that does not depend on where the stream was cut.
///
/// Runs that continue each other are joined before they are hashed (Fowler, Noll and Vo's scheme over 64-bit words), so
/// two streams have one digest if they consist of the same bytes of the same contents in the same order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentDigest {
    folded: u64,
    last: Option<Run>,
}

impl ContentDigest {
    /// Appends `run`.
    #[inline(always)]
    pub fn push(&mut self, run: Run) {
        if run.bytes == 0 {
            return;
        }
        match &mut self.last {
            Some(last)
                if last.content == run.content
                    && last.content_offset.wrapping_add(last.bytes) == run.content_offset =>
            {
                last.bytes += run.bytes;
            }
            _ => {
                self.folded = self.value();
                self.last = Some(run);
            }
        }
    }

    /// The digest of all that was appended.
    #[must_use]
    pub fn value(&self) -> u64 {
        let Some(last) = &self.last else { return self.folded };
        [u64::from(last.content.0), last.content_offset, last.bytes]
            .into_iter()
            .fold(self.folded ^ BASIS, |hash, word| (hash ^ word).wrapping_mul(PRIME).rotate_left(29))
    }
}

#[cfg(test)]
mod tests {
    use super::ContentDigest;
    use crate::packets::run::Run;
    use crate::packets::segment::ContentId;

    fn digest(runs: &[(u32, u64, u64)]) -> u64 {
        let mut digest = ContentDigest::default();
        for (content, content_offset, bytes) in runs.iter().copied() {
            digest.push(Run { content: ContentId(content), content_offset, bytes });
        }
        digest.value()
    }

    #[test]
    fn cuts_do_not_matter() {
        assert_eq!(digest(&[(1, 0, 10), (2, 0, 5)]), digest(&[(1, 0, 4), (1, 4, 6), (2, 0, 0), (2, 0, 5)]));
    }

    #[test]
    fn everything_else_matters() {
        let streams: [&[(u32, u64, u64)]; 8] = [
            &[],
            &[(1, 0, 10)],
            &[(2, 0, 10)],
            &[(1, 1, 10)],
            &[(1, 0, 11)],
            &[(1, 0, 10), (2, 0, 5)],
            &[(2, 0, 5), (1, 0, 10)],
            &[(1, 0, 4), (1, 5, 6)],
        ];
        for (place, stream) in streams.iter().enumerate() {
            for other in &streams[place + 1..] {
                assert_ne!(digest(stream), digest(other), "{stream:?} {other:?}");
            }
        }
    }
}
