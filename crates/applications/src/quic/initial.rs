//! Initial packets (RFC 9000, section 17.2.2), protected as RFC 9001, section 5, has it: with keys that anybody can derive
//! from the connection ID, so that captures of them can be read.

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::aes::cipher::BlockCipherEncrypt;
use aes_gcm::aes::{Aes128, Block};
use aes_gcm::{Aes128Gcm, KeyInit};
use hkdf::Hkdf;
use sha2::Sha256;

/// RFC 9001, section 5.2.
const SALT: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f,
    0x0a,
];
pub(super) const VERSION: [u8; 4] = [0, 0, 0, 1];
/// Long header, fixed bit, type Initial, packet numbers of four bytes.
const FIRST_BYTE: u8 = 0xc3;
const NUMBER_BYTES: usize = 4;
const TAG_BYTES: usize = 16;

/// What one Initial packet says.
pub(super) struct Initial<'a> {
    /// The connection ID that the client's first packet was sent to: the keys come from it.
    pub(super) original: &'a [u8; 8],
    pub(super) from_client: bool,
    pub(super) destination: &'a [u8],
    pub(super) source: &'a [u8],
    pub(super) number: u32,
    pub(super) frames: Vec<u8>,
}

/// A variable-length integer of two bytes (RFC 9000, section 16).
pub(super) fn integer_16(value: u16) -> [u8; 2] {
    (0x4000 | value).to_be_bytes()
}

/// A CRYPTO frame from the beginning (RFC 9000, section 19.6).
pub(super) fn crypto_frame(message: &[u8]) -> Vec<u8> {
    [&[0x06, 0x00][..], &integer_16(message.len() as u16), message].concat()
}

/// An ACK frame of the packets up to `largest`, all of them (RFC 9000, section 19.3).
pub(super) fn acknowledgement_frame(largest: u8) -> Vec<u8> {
    vec![0x02, largest, 0, 0, largest]
}

impl Initial<'_> {
    /// The packet, with padding frames so that it has at least `least_bytes`.
    pub(super) fn sealed(mut self, least_bytes: usize) -> Vec<u8> {
        let header_bytes = 1 + 4 + 1 + self.destination.len() + 1 + self.source.len() + 1 + 2 + NUMBER_BYTES;
        // Header protection takes its sample behind four bytes of number, whatever their length is.
        let wanted = least_bytes.saturating_sub(header_bytes + TAG_BYTES).max(4);
        if self.frames.len() < wanted {
            self.frames.resize(wanted, 0);
        }
        let mut header = vec![FIRST_BYTE];
        header.extend(VERSION);
        header.push(self.destination.len() as u8);
        header.extend(self.destination);
        header.push(self.source.len() as u8);
        header.extend(self.source);
        header.push(0); // no token
        header.extend(integer_16((NUMBER_BYTES + self.frames.len() + TAG_BYTES) as u16));
        let number_at = header.len();
        header.extend(self.number.to_be_bytes());
        let keys = self.keys();
        let mut nonce = keys.nonce;
        nonce[8..].iter_mut().zip(self.number.to_be_bytes()).for_each(|(byte, number)| *byte ^= number);
        let payload = Payload { msg: &self.frames, aad: &header };
        let Ok(sealed) = Aes128Gcm::new(&keys.key.into()).encrypt(&nonce.into(), payload) else {
            unreachable!("only a message above 64 GiB is refused (NIST SP 800-38D)");
        };
        let mut mask = Block::default();
        mask.copy_from_slice(&sealed[..16]);
        Aes128::new(&keys.header_protection.into()).encrypt_block(&mut mask);
        header[0] ^= mask[0] & 0x0f;
        header[number_at..].iter_mut().zip(&mask[1..]).for_each(|(byte, mask)| *byte ^= mask);
        [header, sealed].concat()
    }

    fn keys(&self) -> Keys {
        let initial = Hkdf::<Sha256>::new(Some(&SALT), self.original);
        let secret: [u8; 32] = expand_label(&initial, if self.from_client { "client in" } else { "server in" });
        let Ok(side) = Hkdf::<Sha256>::from_prk(&secret) else {
            unreachable!("a secret has the length of a hash");
        };
        Keys {
            key: expand_label(&side, "quic key"),
            nonce: expand_label(&side, "quic iv"),
            header_protection: expand_label(&side, "quic hp"),
        }
    }
}

/// Of one side's Initial packets (RFC 9001, section 5.1).
struct Keys {
    key: [u8; 16],
    nonce: [u8; 12],
    header_protection: [u8; 16],
}

/// HKDF-Expand-Label without context (RFC 8446, section 7.1).
fn expand_label<const BYTES: usize>(secret: &Hkdf<Sha256>, label: &str) -> [u8; BYTES] {
    let full = format!("tls13 {label}");
    let mut output = [0; BYTES];
    let info = [&(BYTES as u16).to_be_bytes()[..], &[full.len() as u8], full.as_bytes(), &[0]];
    if secret.expand_multi_info(&info, &mut output).is_err() {
        unreachable!("only more than 255 hashes are refused (RFC 5869)");
    }
    output
}

#[cfg(test)]
mod tests {
    use super::Initial;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn keys_are_those_of_rfc_9001() {
        // Appendix A.1.
        let original = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
        let packet = |from_client| Initial {
            original: &original,
            from_client,
            destination: &original,
            source: &[],
            number: 2,
            frames: Vec::new(),
        };
        let client = packet(true).keys();
        assert_eq!(hex(&client.key), "1f369613dd76d5467730efcbe3b1a22d");
        assert_eq!(hex(&client.nonce), "fa044b2f42a3fd3b46fb255c");
        assert_eq!(hex(&client.header_protection), "9f50449e04a0e810283a1e9933adedd2");
        let server = packet(false).keys();
        assert_eq!(hex(&server.key), "cf3a5331653c364c88f0f379b6067e37");
    }

    #[test]
    fn a_packet_begins_as_that_of_rfc_9001_does() {
        // Appendix A.2: the header is protected with a sample of the ciphertext, whose first bytes are those of the
        // CRYPTO frame there.
        let original = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
        let frames = "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c";
        let frames = (0..frames.len() / 2).map(|at| u8::from_str_radix(&frames[2 * at..2 * at + 2], 16).expect("hex"));
        let made = Initial {
            original: &original,
            from_client: true,
            destination: &original,
            source: &[],
            number: 2,
            frames: frames.collect(),
        }
        .sealed(1200);
        assert_eq!(made.len(), 1200);
        assert_eq!(hex(&made[..22]), "c000000001088394c8f03e5157080000449e7b9aec34");
        assert_eq!(hex(&made[22..38]), "d1b1c98dd7689fb8ec11d242b123dc9b");
    }
}
