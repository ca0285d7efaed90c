//! Small changes to an input: those that parsers trip over.

use crate::random::Random;

const LONGEST_INPUT_BYTES: usize = 1 << 14;
const EDGE_VALUES: [u32; 16] =
    [0, 1, 2, 3, 4, 7, 8, 0x0f, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_fffc, 0xffff_ffff];

/// Applies one to four changes; `other` lends a piece for splicing.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(4) {
        change(input, other, random);
    }
    input.truncate(LONGEST_INPUT_BYTES);
}

fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(input.len());
    let length = 1 + random.below(16);
    let end = (at + length).min(input.len());
    match random.below(11) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = random.word() as u8;
            }
        }
        2 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = byte.wrapping_add(if random.below(2) == 0 { 1 } else { 255 });
            }
        }
        3..=5 => {
            let value = EDGE_VALUES[random.below(EDGE_VALUES.len())];
            let little = random.below(2) == 0;
            let word = if little { value.to_le_bytes() } else { value.to_be_bytes() };
            let width = [1, 2, 4][random.below(3)];
            let bytes = if little { &word[..width] } else { &word[4 - width..] };
            for (place, byte) in input.iter_mut().skip(at).zip(bytes) {
                *place = *byte;
            }
        }
        6 => drop(input.drain(at..end)),
        7 => {
            let copy = input[at..end].to_vec();
            input.splice(at..at, copy);
        }
        8 => {
            let random_bytes: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
            input.splice(at..at, random_bytes);
        }
        9 => {
            let from = random.below(other.len());
            let piece = other[from..].iter().copied().take(1 + random.below(256));
            input.splice(at..end, piece);
        }
        _ => input.truncate(at.max(1)),
    }
}
