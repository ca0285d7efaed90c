//! Which frames of the capture a connection's packets are, as differences of seven bits a byte: a packet takes one byte
//! where fewer than 128 frames of other connections lie before it, two below 16,384.

const MORE: u8 = 0x80;
const SEVEN_BITS: u32 = 7;

/// Bytes for any difference: one of 64 bits takes ten.
pub(super) const LONGEST_BYTES: usize = 16;

/// Writes the frame numbers of one connection; they ascend, as packets come in capture order.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameNumberWriter {
    latest: u64,
}

impl FrameNumberWriter {
    /// Writes how far the frame of the next packet is from the one before; gives how many bytes that takes.
    #[inline]
    pub(crate) fn write(&mut self, frame: u64, bytes: &mut [u8; LONGEST_BYTES]) -> usize {
        let mut rest = frame.wrapping_sub(self.latest);
        self.latest = frame;
        let mut count = 0;
        for byte in bytes {
            count += 1;
            if rest < u64::from(MORE) {
                *byte = rest as u8;
                break;
            }
            *byte = rest as u8 | MORE;
            rest >>= SEVEN_BITS;
        }
        count
    }
}

/// Reads the bytes of a `FrameNumberWriter` back.
pub(crate) fn frame_numbers(bytes: impl Iterator<Item = u8>) -> impl Iterator<Item = u64> {
    let (mut frame, mut difference, mut shift) = (0_u64, 0_u64, 0_u32);
    bytes.filter_map(move |byte| {
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
            let (mut writer, mut bytes, mut room) = (FrameNumberWriter::default(), Vec::new(), [0; LONGEST_BYTES]);
            for &number in &numbers {
                let count = writer.write(number, &mut room);
                bytes.extend_from_slice(&room[..count]);
            }
            prop_assert_eq!(frame_numbers(bytes.into_iter()).collect::<Vec<_>>(), numbers);
        }
    }

    #[test]
    fn a_packet_after_few_others_takes_a_byte() {
        let (mut writer, mut room) = (FrameNumberWriter::default(), [0; LONGEST_BYTES]);
        assert_eq!([1_000_000, 1_000_127, 1_000_255].map(|frame| writer.write(frame, &mut room)), [3, 1, 2]);
    }
}
