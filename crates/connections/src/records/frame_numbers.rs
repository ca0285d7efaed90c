//! Which frames of the capture a connection's packets are, as differences of seven bits a byte: a packet takes one byte
//! where fewer than 128 frames of other connections lie before it, two below 16,384.

const MORE: u8 = 0x80;
const SEVEN_BITS: u32 = 7;

/// Frame numbers of one connection, growing; they ascend, as packets come in capture order.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameNumberWriter {
    bytes: Vec<u8>,
    latest: u64,
}

impl FrameNumberWriter {
    /// Write the frame of the next packet; gives the bytes it took.
    #[inline]
    pub(crate) fn push(&mut self, frame: u64) -> usize {
        let mut rest = frame.wrapping_sub(self.latest);
        self.latest = frame;
        let before = self.bytes.len();
        while rest >= u64::from(MORE) {
            self.bytes.push(rest as u8 | MORE);
            rest >>= SEVEN_BITS;
        }
        self.bytes.push(rest as u8);
        self.bytes.len() - before
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads the bytes of a `FrameNumberWriter` back.
pub(crate) fn frame_numbers(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let (mut frame, mut difference, mut shift) = (0_u64, 0_u64, 0_u32);
    bytes.iter().filter_map(move |&byte| {
        difference |= u64::from(byte & !MORE).checked_shl(shift).unwrap_or_default();
        if byte & MORE != 0 {
            shift += SEVEN_BITS;
            return None;
        }
        frame = frame.wrapping_add(difference);
        (difference, shift) = (0, 0);
        Some(frame)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back_as_they_went_in(
            differences in prop::collection::vec(prop_oneof![0..200_u64, any::<u64>()], 0..60),
        ) {
            let numbers: Vec<u64> = differences
                .iter()
                .scan(0_u64, |frame, difference| {
                    *frame = frame.wrapping_add(*difference);
                    Some(*frame)
                })
                .collect();
            let mut writer = FrameNumberWriter::default();
            let counted: usize = numbers.iter().map(|&frame| writer.push(frame)).sum();
            let bytes = writer.finish();
            prop_assert_eq!(bytes.len(), counted);
            prop_assert_eq!(frame_numbers(&bytes).collect::<Vec<_>>(), numbers);
        }
    }

    #[test]
    fn a_packet_after_few_others_takes_a_byte() {
        let mut writer = FrameNumberWriter::default();
        assert_eq!([writer.push(1_000_000), writer.push(1_000_127), writer.push(1_000_255)], [3, 1, 2]);
    }
}
