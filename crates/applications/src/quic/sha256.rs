//! SHA-256 (FIPS 180-4), HMAC (RFC 2104) and the expansions of HKDF (RFC 5869, RFC 8446 section 7.1).

const BLOCK_BYTES: usize = 64;
pub(super) const HASH_BYTES: usize = 32;

/// The first 32 bits of the fractional parts of the square roots (shift 2) or cube roots (shift 3) of primes.
fn fraction_of_root(prime: u32, degree: u32) -> u32 {
    // The root times 2^32, found bit by bit: exact in 128-bit arithmetic.
    let wanted = u128::from(prime);
    let (mut low, mut high) = (0_u128, 1_u128 << 40);
    while high - low > 1 {
        let middle = (low + high) / 2;
        let below = match degree {
            2 => middle * middle <= wanted << 64,
            // (middle / 2^32)^3 <= prime, with middle below 2^36: the cube stays below 2^108.
            _ => middle < 1 << 36 && middle * middle * middle <= wanted << 96,
        };
        if below {
            low = middle;
        } else {
            high = middle;
        }
    }
    low as u32
}

fn primes(count: usize) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let mut candidate = 2;
    while found.len() < count {
        if found.iter().all(|prime| candidate % prime != 0) {
            found.push(candidate);
        }
        candidate += 1;
    }
    found
}

/// The hash of `message`.
pub(super) fn sha256(message: &[u8]) -> [u8; HASH_BYTES] {
    let primes = primes(64);
    let rounds: Vec<u32> = primes.iter().map(|prime| fraction_of_root(*prime, 3)).collect();
    let mut state: Vec<u32> = primes[..8].iter().map(|prime| fraction_of_root(*prime, 2)).collect();
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(BLOCK_BYTES), 0);
    if padded.len() - message.len() < 9 {
        padded.resize(padded.len() + BLOCK_BYTES, 0);
    }
    let length_at = padded.len() - 8;
    padded[length_at..].copy_from_slice(&(8 * message.len() as u64).to_be_bytes());
    for block in padded.chunks(BLOCK_BYTES) {
        compress(&mut state, block, &rounds);
    }
    let mut hash = [0; HASH_BYTES];
    hash.chunks_mut(4).zip(state).for_each(|(place, word)| place.copy_from_slice(&word.to_be_bytes()));
    hash
}

fn compress(state: &mut [u32], block: &[u8], rounds: &[u32]) {
    let mut schedule: Vec<u32> =
        block.chunks(4).map(|word| word.iter().fold(0, |all, byte| all << 8 | u32::from(*byte))).collect();
    for place in 16..64 {
        let (early, late) = (schedule[place - 15], schedule[place - 2]);
        let small_0 = early.rotate_right(7) ^ early.rotate_right(18) ^ early >> 3;
        let small_1 = late.rotate_right(17) ^ late.rotate_right(19) ^ late >> 10;
        let sum = schedule[place - 16].wrapping_add(small_0).wrapping_add(schedule[place - 7]).wrapping_add(small_1);
        schedule.push(sum);
    }
    let mut work = [0; 8];
    work.copy_from_slice(state);
    for (round, word) in rounds.iter().zip(&schedule) {
        let [a, b, c, d, e, f, g, h] = work;
        let big_1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = e & f ^ !e & g;
        let first = h.wrapping_add(big_1).wrapping_add(choice).wrapping_add(*round).wrapping_add(*word);
        let big_0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = a & b ^ a & c ^ b & c;
        work = [first.wrapping_add(big_0).wrapping_add(majority), a, b, c, d.wrapping_add(first), e, f, g];
    }
    state.iter_mut().zip(work).for_each(|(word, worked)| *word = word.wrapping_add(worked));
}

pub(super) fn hmac(key: &[u8], message: &[u8]) -> [u8; HASH_BYTES] {
    let mut padded = [0; BLOCK_BYTES];
    padded[..key.len()].copy_from_slice(key); // keys here are no longer than a block
    let with = |byte: u8| padded.map(|key| key ^ byte);
    let inner = sha256(&[&with(0x36)[..], message].concat());
    sha256(&[&with(0x5c)[..], &inner].concat())
}

/// HKDF-Expand-Label without context, for up to one hash of output (RFC 8446, section 7.1).
pub(super) fn expand_label(secret: &[u8], label: &str, bytes: usize) -> Vec<u8> {
    let full = format!("tls13 {label}");
    let mut info = (bytes as u16).to_be_bytes().to_vec();
    info.push(full.len() as u8);
    info.extend(full.as_bytes());
    info.extend([0, 1]); // an empty context, and the number of the block
    hmac(secret, &info)[..bytes].to_vec()
}

#[cfg(test)]
mod tests {
    use super::{hmac, sha256};

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn hashes_are_those_of_the_standard() {
        // FIPS 180-4 examples, and RFC 4231, test case 2.
        assert_eq!(hex(&sha256(b"abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hex(&sha256(b"")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        let two_blocks = sha256(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq");
        assert_eq!(hex(&two_blocks), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        let tag = hmac(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(hex(&tag), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}
