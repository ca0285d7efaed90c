//! AES-128 (FIPS 197) and its Galois counter mode (NIST SP 800-38D), for packets that dissectors can decrypt: plain and
//! slow, and no protection against anybody.

pub(super) const TAG_BYTES: usize = 16;
type Block = [u8; 16];

/// Multiplication by x in AES's field.
fn double(byte: u8) -> u8 {
    byte << 1 ^ if byte & 0x80 == 0 { 0 } else { 0x1b }
}

/// The substitution box: the inverse in the field, and an affine map.
fn substitution() -> [u8; 256] {
    let mut table = [0; 256];
    let (mut power, mut inverse) = (1_u8, 1_u8);
    loop {
        power ^= double(power); // times 3
        inverse ^= inverse << 1; // divided by 3
        inverse ^= inverse << 2;
        inverse ^= inverse << 4;
        if inverse & 0x80 != 0 {
            inverse ^= 0x09;
        }
        let affine = [1, 2, 3, 4].iter().fold(inverse, |sum, shift| sum ^ inverse.rotate_left(*shift));
        table[usize::from(power)] = affine ^ 0x63;
        if power == 1 {
            break;
        }
    }
    table[0] = 0x63;
    table
}

/// A key, expanded.
pub(super) struct Aes128 {
    box_: [u8; 256],
    rounds: Vec<Block>,
}

impl Aes128 {
    pub(super) fn new(key: &Block) -> Self {
        let box_ = substitution();
        let mut words: Vec<[u8; 4]> = key.chunks(4).map(|word| [word[0], word[1], word[2], word[3]]).collect();
        let mut constant = 1;
        for place in 4..44 {
            let mut word = words[place - 1];
            if place % 4 == 0 {
                word.rotate_left(1);
                word = word.map(|byte| box_[usize::from(byte)]);
                word[0] ^= constant;
                constant = double(constant);
            }
            let earlier = words[place - 4];
            word.iter_mut().zip(earlier).for_each(|(byte, other)| *byte ^= other);
            words.push(word);
        }
        let mut rounds = vec![[0; 16]; 11];
        rounds.iter_mut().flatten().zip(words.concat()).for_each(|(place, byte)| *place = byte);
        Self { box_, rounds }
    }

    pub(super) fn encrypt(&self, block: &Block) -> Block {
        let mut state = xor(block, &self.rounds[0]);
        for (number, key) in self.rounds.iter().enumerate().skip(1) {
            let mut shifted = [0; 16];
            for (place, byte) in shifted.iter_mut().enumerate() {
                let (column, row) = (place / 4, place % 4);
                *byte = self.box_[usize::from(state[4 * ((column + row) % 4) + row])];
            }
            if number < 10 {
                for column in shifted.chunks_mut(4) {
                    let all = column.iter().fold(0, |sum, byte| sum ^ byte);
                    let first = column[0];
                    for row in 0..4 {
                        let next = if row == 3 { first } else { column[row + 1] };
                        column[row] ^= all ^ double(column[row] ^ next);
                    }
                }
            }
            state = xor(&shifted, key);
        }
        state
    }

    /// Ciphertext and tag of `plaintext`.
    pub(super) fn seal(&self, nonce: &[u8; 12], associated: &[u8], plaintext: &[u8]) -> Vec<u8> {
        let counter_block = |counter: u32| {
            let mut block = [0; 16];
            block[..12].copy_from_slice(nonce);
            block[12..].copy_from_slice(&counter.to_be_bytes());
            self.encrypt(&block)
        };
        let mut sealed = Vec::with_capacity(plaintext.len() + TAG_BYTES);
        for (counter, part) in (2..).zip(plaintext.chunks(16)) {
            sealed.extend(part.iter().zip(counter_block(counter)).map(|(byte, stream)| byte ^ stream));
        }
        let hash_key = u128::from_be_bytes(self.encrypt(&[0; 16]));
        let lengths = ((associated.len() as u128 * 8) << 64) | (sealed.len() as u128 * 8);
        let blocks = associated.chunks(16).chain(sealed.chunks(16)).map(block_number);
        let hash = blocks.chain([lengths]).fold(0, |hash, block| multiply(hash ^ block, hash_key));
        sealed.extend(xor(&hash.to_be_bytes(), &counter_block(1)));
        sealed
    }
}

fn xor(one: &Block, other: &Block) -> Block {
    let mut sum = *one;
    sum.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
    sum
}

fn block_number(part: &[u8]) -> u128 {
    let mut block = [0; 16];
    block[..part.len()].copy_from_slice(part);
    u128::from_be_bytes(block)
}

/// In the field of GCM, whose bits count from the left.
fn multiply(one: u128, mut other: u128) -> u128 {
    let mut product = 0;
    for bit in (0..128).rev() {
        if one >> bit & 1 == 1 {
            product ^= other;
        }
        other = other >> 1 ^ if other & 1 == 1 { 0xe1 << 120 } else { 0 };
    }
    product
}

#[cfg(test)]
mod tests {
    use super::Aes128;

    #[test]
    fn a_block_is_encrypted_as_in_the_standard() {
        // FIPS 197, appendix C.1.
        let key: [u8; 16] = core::array::from_fn(|place| place as u8);
        let block = core::array::from_fn(|place| 0x11 * place as u8);
        let wanted = 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a_u128;
        assert_eq!(u128::from_be_bytes(Aes128::new(&key).encrypt(&block)), wanted);
    }

    #[test]
    fn a_message_is_sealed_as_in_the_standard() {
        // Test cases 1 and 2 of the GCM specification (McGrew and Viega).
        let aes = Aes128::new(&[0; 16]);
        let tag =
            |sealed: Vec<u8>, from: usize| sealed[from..].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(tag(aes.seal(&[0; 12], &[], &[]), 0), "58e2fccefa7e3061367f1d57a4e7455a");
        let sealed = aes.seal(&[0; 12], &[], &[0; 16]);
        assert_eq!(tag(sealed, 0), "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf");
    }
}
