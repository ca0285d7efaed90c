//! HTTP/2 in clear (RFC 9113), at once or behind an upgrade (RFC 7540, section 3.2): its control frames wait for nothing,
//! and the response to a request that was upgraded does not wait for the client's preface.

use super::stream::Stream;
use super::turns::Turn;

/// What a client sends before its first frame (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length (three bytes), type, flags and stream of a frame (section 4.1).
const FRAME_HEADER_BYTES: usize = 9;

/// PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY and WINDOW_UPDATE (section 6).
const CONTROL_TYPES: [u8; 6] = [2, 3, 4, 6, 7, 8];

/// The preface is the client's first question, or its second one behind an upgrade.
const OPENING_QUESTIONS: usize = 2;

/// Where the preface stands in the client's stream, if it speaks HTTP/2 in clear.
pub(super) fn preface_offset(client: &Stream<'_>, turns: &[Turn]) -> Option<i64> {
    let questions = turns.iter().filter(|turn| turn.asked == 0).take(OPENING_QUESTIONS);
    questions.map(|turn| turn.question_offset).find(|&offset| client.bytes_at(offset).starts_with(PREFACE))
}

/// Whether bytes are control frames alone, as far as they were captured, behind the preface if they begin with it.
pub(super) fn are_control_frames(bytes: &[u8]) -> bool {
    let mut rest = bytes.strip_prefix(PREFACE).unwrap_or(bytes);
    let mut frames = 0;
    while let Some(&[high, middle, low, kind, ..]) = rest.first_chunk::<FRAME_HEADER_BYTES>() {
        if !CONTROL_TYPES.contains(&kind) {
            return false;
        }
        frames += 1;
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        rest = rest.get(FRAME_HEADER_BYTES + length..).unwrap_or_default();
    }
    frames > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const HEADERS: [u8; 10] = [0, 0, 1, 1, 5, 0, 0, 0, 1, 0x82];

    #[test]
    fn a_request_behind_control_frames_is_seen() {
        assert!(are_control_frames(&[PREFACE, &SETTINGS, &SETTINGS].concat()));
        assert!(!are_control_frames(&[PREFACE, &SETTINGS, &HEADERS].concat()));
        assert!(!are_control_frames(PREFACE) && !are_control_frames(b"") && !are_control_frames(&SETTINGS[..8]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(bytes.len() >= FRAME_HEADER_BYTES || !are_control_frames(&bytes));
        }
    }
}
