//! Records (RFC 8446, section 5; RFC 5246, section 6.2).

use pepscope_tcp::Piece;

use super::TlsVersion;

const HEADER_VERSION: [u8; 2] = [3, 3];
/// Most plaintext of a record.
pub(super) const MOST_PLAINTEXT_BYTES: u64 = 1 << 14;
/// TLS 1.3: the content type, and the tag of AEAD ciphers. TLS 1.2 with AES-GCM: explicit nonce and tag (RFC 5288).
const PROTECTION_1_3_BYTES: u64 = 1 + 16;
const PROTECTION_1_2_BYTES: u64 = 8 + 16;

pub(super) mod content {
    pub const CHANGE_CIPHER_SPEC: u8 = 20;
    pub const ALERT: u8 = 21;
    pub const HANDSHAKE: u8 = 22;
    pub const APPLICATION_DATA: u8 = 23;
}

/// A record in clear.
pub(super) fn plain(content: u8, version: [u8; 2], body: &[u8]) -> Piece {
    let length = (body.len() as u16).to_be_bytes();
    Piece::Literal([&[content][..], &version, &length, body].concat())
}

pub(super) fn plain_handshake(message: &[u8]) -> Piece {
    plain(content::HANDSHAKE, HEADER_VERSION, message)
}

pub(super) fn change_cipher_spec() -> Piece {
    plain(content::CHANGE_CIPHER_SPEC, HEADER_VERSION, &[1])
}

/// One protected record: header and filler. In TLS 1.3 all show as application data.
pub(super) fn protected(version: TlsVersion, content: u8, plaintext_bytes: u64) -> [Piece; 2] {
    let (shown, added) = match version {
        TlsVersion::Tls13 => (content::APPLICATION_DATA, PROTECTION_1_3_BYTES),
        TlsVersion::Tls12 => (content, PROTECTION_1_2_BYTES),
    };
    let body_bytes = plaintext_bytes + added;
    let length = (body_bytes as u16).to_be_bytes();
    [Piece::Literal([&[shown][..], &HEADER_VERSION, &length].concat()), Piece::Filler(body_bytes)]
}

/// The records of so many bytes of an application, the fewest that there can be.
pub(super) fn application_data(version: TlsVersion, mut bytes: u64, most_record_bytes: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    while bytes > 0 {
        let part = bytes.min(most_record_bytes.clamp(1, MOST_PLAINTEXT_BYTES));
        pieces.extend(protected(version, content::APPLICATION_DATA, part));
        bytes -= part;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::{application_data, TlsVersion};
    use pepscope_tcp::Piece;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_hold_all_bytes(bytes in 0u64..200_000, most in 1000u64..40_000, is_1_3 in any::<bool>()) {
            let (version, added) = if is_1_3 { (TlsVersion::Tls13, 17) } else { (TlsVersion::Tls12, 24) };
            let pieces = application_data(version, bytes, most);
            let mut held = 0;
            for record in pieces.chunks(2) {
                let [Piece::Literal(header), Piece::Filler(body)] = record else { panic!("a header and a body") };
                prop_assert_eq!(&header[..3], &[23, 3, 3]);
                prop_assert_eq!(u64::from(u16::from_be_bytes([header[3], header[4]])), *body);
                held += body - added;
            }
            prop_assert_eq!(held, bytes);
        }
    }
}
