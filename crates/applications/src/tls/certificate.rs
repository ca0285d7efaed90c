//! Certificates (RFC 5280) that dissectors read whole; keys and signatures are random, so that no signature verifies.

use pepscope_path::Random;

use super::bytes::{handshake, with_length_24};
use super::hello::random_bytes;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const NULL: u8 = 0x05;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const IA5_STRING: u8 = 0x16;
const UTC_TIME: u8 = 0x17;

/// sha256WithRSAEncryption and rsaEncryption (RFC 8017), commonName (RFC 5280), subjectAltName, and the comment that
/// Netscape's certificates had, which may be as long as one likes.
const SHA_256_WITH_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];
const COMMENT: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x86, 0xf8, 0x42, 0x01, 0x0d];
const DNS_NAME: u8 = 0x82;

/// RSA with 2048 bits.
pub(super) const SIGNATURE_BYTES: usize = 256;
/// Share of a chain's bytes in the server's own certificate, which has more extensions than that of its issuer.
const LEAF_SHARE: f64 = 0.55;

/// The length of the Certificate message of TLS 1.3 with a chain of `chain_bytes` (RFC 8446, section 4.4.2).
pub(crate) fn certificate_message_bytes(chain_bytes: u64) -> u64 {
    4 + 1 + 3 + 2 * (3 + 2) + chain_bytes
}

/// The Certificate message of TLS 1.2: two certificates of about `chain_bytes` in all (RFC 5246, section 7.4.2).
pub(super) fn certificate_message(name: &str, chain_bytes: u64, random: &mut Random) -> Vec<u8> {
    let leaf_bytes = (chain_bytes as f64 * LEAF_SHARE) as usize;
    let leaf = certificate(name, "Example Issuing CA", leaf_bytes, random);
    let issuer_bytes = (chain_bytes as usize).saturating_sub(leaf.len());
    let issuer = certificate("Example Issuing CA", "Example Root CA", issuer_bytes, random);
    let chain = [with_length_24(&leaf), with_length_24(&issuer)].concat();
    handshake(11, &with_length_24(&chain))
}

/// A certificate of `bytes` bytes, or the fewest that it takes.
fn certificate(subject: &str, issuer: &str, bytes: usize, random: &mut Random) -> Vec<u8> {
    let (serial, key) = (random_bytes(random, 15), random_bytes(random, 255));
    let signature = random_bytes(random, SIGNATURE_BYTES);
    let build = |comment_bytes: usize| {
        let algorithm = der(SEQUENCE, &[&der(OBJECT_IDENTIFIER, &[SHA_256_WITH_RSA]), &der(NULL, &[])]);
        let times = der(SEQUENCE, &[&der(UTC_TIME, &[b"230801000000Z"]), &der(UTC_TIME, &[b"250801000000Z"])]);
        let key_algorithm = der(SEQUENCE, &[&der(OBJECT_IDENTIFIER, &[RSA]), &der(NULL, &[])]);
        let modulus = der(INTEGER, &[&[0, 0xc5], &key]); // a leading zero keeps it positive
        let numbers = der(SEQUENCE, &[&modulus, &der(INTEGER, &[&[1, 0, 1]])]);
        let public_key = der(SEQUENCE, &[&key_algorithm, &der(BIT_STRING, &[&[0], &numbers])]);
        let alternative = der(SEQUENCE, &[&der(DNS_NAME, &[subject.as_bytes()])]);
        let mut extensions = extension(SUBJECT_ALTERNATIVE_NAME, &alternative);
        if comment_bytes > 0 {
            extensions.extend(extension(COMMENT, &der(IA5_STRING, &[&vec![b'x'; comment_bytes]])));
        }
        let signed = der(
            SEQUENCE,
            &[
                &der(0xa0, &[&der(INTEGER, &[&[2]])]), // version 3
                &der(INTEGER, &[&[0x5a], &serial]),
                &algorithm,
                &common_name(issuer),
                &times,
                &common_name(subject),
                &public_key,
                &der(0xa3, &[&der(SEQUENCE, &[&extensions])]),
            ],
        );
        der(SEQUENCE, &[&signed, &algorithm, &der(BIT_STRING, &[&[0], &signature])])
    };
    let mut comment_bytes = bytes.saturating_sub(build(0).len());
    // The comment's own headers, and longer lengths around it, take some of the room.
    while comment_bytes > 0 {
        let built = build(comment_bytes);
        if built.len() <= bytes {
            return built;
        }
        comment_bytes = comment_bytes.saturating_sub(built.len() - bytes);
    }
    build(0)
}

fn common_name(name: &str) -> Vec<u8> {
    let attribute = [der(OBJECT_IDENTIFIER, &[COMMON_NAME]), der(UTF8_STRING, &[name.as_bytes()])].concat();
    der(SEQUENCE, &[&der(SET, &[&der(SEQUENCE, &[&attribute])])])
}

fn extension(identifier: &[u8], value: &[u8]) -> Vec<u8> {
    der(SEQUENCE, &[&der(OBJECT_IDENTIFIER, &[identifier]), &der(OCTET_STRING, &[value])])
}

/// A value by the distinguished encoding rules (X.690, section 8.1).
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = match content.len() {
        short @ 0..=127 => vec![short as u8],
        middle @ 128..=255 => vec![0x81, middle as u8],
        long => [&[0x82][..], &(long as u16).to_be_bytes()].concat(),
    };
    [&[tag][..], &length, &content].concat()
}

#[cfg(test)]
mod tests {
    use super::{certificate, certificate_message};
    use pepscope_path::Random;

    #[test]
    fn certificates_have_the_length_that_is_asked_for() {
        for bytes in [900, 1200, 1653, 2400, 4000] {
            let made = certificate("server.example", "Example Issuing CA", bytes, &mut Random::new(1, "certificate"));
            assert!(made.len() <= bytes && made.len() + 3 >= bytes, "{} of {bytes}", made.len());
        }
        let small = certificate("server.example", "Example Issuing CA", 0, &mut Random::new(1, "certificate"));
        assert!(small.len() < 800, "{}", small.len());
    }

    #[test]
    fn a_chain_is_as_long_as_its_two_certificates() {
        let message = certificate_message("server.example", 3000, &mut Random::new(1, "certificate"));
        assert!((3000 - 6..=3000 + 13).contains(&message.len()), "{}", message.len());
    }
}
