//! From 32-bit sequence numbers to positions that never wrap.

/// The position in the stream (0 is the SYN) that `wire` names, taking the one nearest to `near`.
#[inline]
pub(crate) fn position(wire: u32, initial: u32, near: u64) -> u64 {
    near.saturating_add_signed(i64::from(wire.wrapping_sub(number(near, initial)) as i32))
}

/// The sequence number of `position`.
#[inline]
pub(crate) fn number(position: u64, initial: u32) -> u32 {
    initial.wrapping_add(position as u32)
}

#[cfg(test)]
mod tests {
    use super::{number, position};

    #[test]
    fn positions_survive_the_wrap() {
        let initial = u32::MAX - 5;
        for place in [0u64, 5, 6, 7, (1 << 32) - 1, 1 << 32, (1 << 33) + 9] {
            for near in [place, place + 1_000_000, place.saturating_sub(1_000_000)] {
                assert_eq!(position(number(place, initial), initial, near), place);
            }
        }
    }

    #[test]
    fn nothing_lies_before_the_first_sequence_number() {
        assert_eq!(position(99, 100, 0), 0);
    }
}
