//! TCP options of segments that open a connection, without what differs between connections of one host.

/// Option kinds (IANA registry); end of list and no-operation are one byte long.
const END_OF_LIST: u8 = 0;
const PADDING: u8 = 1;
const TIMESTAMPS: u8 = 8;
const TIMESTAMPS_BYTES: usize = 10;

/// The options with zeros for the values of timestamps; `blanked` bytes of padding in a row, which no stack sends, keep
/// all of them as they are. Options behind one that is not whole are kept.
pub fn without_stamps(octets: &[u8], blanked: usize) -> Vec<u8> {
    let mut kept = octets.to_vec();
    if blanked > 0 && octets.windows(blanked).any(|some| some.iter().all(|&byte| byte == PADDING)) {
        return kept;
    }
    let mut position = 0;
    while let Some(&kind) = octets.get(position) {
        if kind == END_OF_LIST {
            break;
        }
        if kind == PADDING {
            position += 1;
            continue;
        }
        let length = octets.get(position + 1).map_or(0, |&length| usize::from(length));
        if length < 2 || position + length > octets.len() {
            break;
        }
        if kind == TIMESTAMPS && length == TIMESTAMPS_BYTES {
            kept[position + 2..position + length].fill(0);
        }
        position += length;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_zeros_and_all_else_stays() {
        let linux = [2, 4, 5, 180, 4, 2, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 3, 7];
        let expected = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(without_stamps(&linux, 4), expected);
        // What looks like a timestamp is the value of another option, stands behind the end or is not whole.
        for kept in [[3, 5, 8, 10, 9, 9, 9].as_slice(), &[0, 8, 10, 9, 9, 9, 9, 9, 9, 9, 9], &[8, 10, 9, 9], &[2, 1, 9]]
        {
            assert_eq!(without_stamps(kept, 4), kept);
        }
        let padded = [8, 10, 1, 1, 1, 1, 5, 6, 7, 8];
        assert_eq!(without_stamps(&padded, 4), padded);
        assert_eq!(without_stamps(&padded, 5), [8, 10, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
