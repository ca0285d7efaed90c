//! Columns of numbers in few bytes: many are the same in all rows, or one of a few.

/// Numbers of many rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    Floats(Vec<f64>),
    Integers(Vec<i64>),
    Truths(Vec<bool>),
}

/// The bytes do not hold columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPacked;

const FLOATS: u8 = 0;
const INTEGERS: u8 = 1;
const TRUTHS: u8 = 2;

/// How words follow: one for all rows; so many different ones, and codes of them; the least, and how far each is above
/// it; one a row.
const CONSTANT: u8 = 0;
const CODED: u8 = 1;
const ABOVE_LEAST: u8 = 2;
const PLAIN: u8 = 3;

const WORD_BYTES: usize = 8;
/// Codes take a byte at most.
const MOST_CODES: usize = 256;

pub fn pack_floats(out: &mut Vec<u8>, values: &[f64]) {
    pack(out, FLOATS, values.iter().map(|value| value.to_bits()));
}

pub fn pack_integers(out: &mut Vec<u8>, values: &[i64]) {
    pack(out, INTEGERS, values.iter().map(|&value| value as u64));
}

pub fn pack_truths(out: &mut Vec<u8>, values: &[bool]) {
    pack(out, TRUTHS, values.iter().map(|&value| u64::from(value)));
}

fn pack(out: &mut Vec<u8>, kind: u8, words: impl ExactSizeIterator<Item = u64> + Clone) {
    out.push(kind);
    push_word(out, words.len() as u64);
    if let Some(codes) = Codes::of(words.clone()) {
        codes.pack(out);
    } else if kind != INTEGERS || !pack_above_least(out, words.clone()) {
        out.push(PLAIN);
        words.for_each(|word| push_word(out, word));
    }
}

fn push_word(out: &mut Vec<u8>, word: u64) {
    out.extend_from_slice(&word.to_le_bytes());
}

/// Words that are one of a few.
struct Codes {
    words: Vec<u64>,
    codes: Vec<u8>,
}

impl Codes {
    /// Places in a table of words, of which most are free.
    const SLOTS: usize = 4 * MOST_CODES;

    /// None where there are more different ones than codes.
    fn of(words: impl ExactSizeIterator<Item = u64>) -> Option<Self> {
        let mut found = Codes { words: Vec::new(), codes: Vec::with_capacity(words.len()) };
        let mut slots = [u16::MAX; Self::SLOTS];
        let mut last = None;
        for word in words {
            let code = match last {
                Some((same, code)) if same == word => code,
                _ => found.code(&mut slots, word)?,
            };
            last = Some((word, code));
            found.codes.push(code);
        }
        Some(found)
    }

    fn code(&mut self, slots: &mut [u16; Self::SLOTS], word: u64) -> Option<u8> {
        // Fibonacci hashing (Knuth, The Art of Computer Programming, section 6.4): high bits of a product.
        let mut slot = (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as usize % Self::SLOTS;
        loop {
            match self.words.get(usize::from(slots[slot])) {
                Some(&known) if known == word => return Some(slots[slot] as u8),
                Some(_) => slot = (slot + 1) % Self::SLOTS,
                None if self.words.len() == MOST_CODES => return None,
                None => {
                    slots[slot] = self.words.len() as u16;
                    self.words.push(word);
                    return Some(slots[slot] as u8);
                }
            }
        }
    }

    fn pack(&self, out: &mut Vec<u8>) {
        if let [word] = self.words[..] {
            out.push(CONSTANT);
            push_word(out, word);
            return;
        }
        out.push(CODED);
        out.extend_from_slice(&(self.words.len() as u16).to_le_bytes());
        self.words.iter().for_each(|&word| push_word(out, word));
        let bits = code_bits(self.words.len());
        for together in self.codes.chunks(8 / bits) {
            out.push(together.iter().rev().fold(0, |byte, code| (u32::from(byte) << bits) as u8 | code));
        }
    }
}

/// The bits of a code, a divisor of eight.
fn code_bits(count: usize) -> usize {
    match count {
        0..=2 => 1,
        3..=4 => 2,
        5..=16 => 4,
        _ => 8,
    }
}

/// False, and nothing appended, where that takes as many bytes as the words.
fn pack_above_least(out: &mut Vec<u8>, words: impl Iterator<Item = u64> + Clone) -> bool {
    let numbers = words.map(|word| word as i64);
    let (Some(least), Some(most)) = (numbers.clone().min(), numbers.clone().max()) else { return false };
    let width = match most.wrapping_sub(least) as u64 {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => return false,
    };
    out.extend_from_slice(&[ABOVE_LEAST, width]);
    push_word(out, least as u64);
    for number in numbers {
        out.extend_from_slice(&number.wrapping_sub(least).to_le_bytes()[..usize::from(width)]);
    }
    true
}

/// The columns that were packed, in their order.
pub fn unpack(packed: &[u8]) -> Result<Vec<Numbers>, NotPacked> {
    let mut rest = Reading { rest: packed };
    let mut columns = Vec::new();
    while !rest.rest.is_empty() {
        let kind = rest.byte()?;
        let words = rest.words()?;
        columns.push(match kind {
            FLOATS => Numbers::Floats(words.into_iter().map(f64::from_bits).collect()),
            INTEGERS => Numbers::Integers(words.into_iter().map(|word| word as i64).collect()),
            TRUTHS => Numbers::Truths(words.into_iter().map(|word| word != 0).collect()),
            _ => return Err(NotPacked),
        });
    }
    Ok(columns)
}

struct Reading<'a> {
    rest: &'a [u8],
}

impl<'a> Reading<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], NotPacked> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(NotPacked)?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, NotPacked> {
        Ok(self.take(1)?[0])
    }

    fn word(&mut self) -> Result<u64, NotPacked> {
        Ok(little_endian(self.take(WORD_BYTES)?))
    }

    fn words(&mut self) -> Result<Vec<u64>, NotPacked> {
        let count = usize::try_from(self.word()?).map_err(|_| NotPacked)?;
        match self.byte()? {
            CONSTANT => Ok(vec![self.word()?; count]),
            CODED => self.coded(count),
            ABOVE_LEAST => self.above_least(count),
            PLAIN => {
                let bytes = self.take(count.checked_mul(WORD_BYTES).ok_or(NotPacked)?)?;
                Ok(bytes.chunks_exact(WORD_BYTES).map(little_endian).collect())
            }
            _ => Err(NotPacked),
        }
    }

    fn coded(&mut self, count: usize) -> Result<Vec<u64>, NotPacked> {
        let different = usize::from(little_endian(self.take(2)?) as u16);
        let words = self.take(WORD_BYTES * different)?;
        let words: Vec<u64> = words.chunks_exact(WORD_BYTES).map(little_endian).collect();
        let bits = code_bits(different);
        let in_byte = 8 / bits;
        let mask = u8::MAX >> (8 - bits);
        let codes = self.take(count.div_ceil(in_byte))?;
        let mut made = Vec::with_capacity(codes.len() * in_byte);
        for &byte in codes {
            for place in 0..in_byte {
                made.push(usize::from(byte >> (bits * place) & mask));
            }
        }
        made.truncate(count);
        made.into_iter().map(|code| words.get(code).copied().ok_or(NotPacked)).collect()
    }

    fn above_least(&mut self, count: usize) -> Result<Vec<u64>, NotPacked> {
        let width = usize::from(self.byte()?);
        let least = self.word()?;
        if !(1..=WORD_BYTES).contains(&width) {
            return Err(NotPacked);
        }
        let bytes = self.take(count.checked_mul(width).ok_or(NotPacked)?)?;
        Ok(bytes.chunks_exact(width).map(|above| least.wrapping_add(little_endian(above))).collect())
    }
}

/// A number of at most eight bytes.
fn little_endian(bytes: &[u8]) -> u64 {
    let mut word = [0; WORD_BYTES];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}
