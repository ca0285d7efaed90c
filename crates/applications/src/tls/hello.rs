//! ClientHello and ServerHello (RFC 8446, sections 4.1.2 and 4.1.3; RFC 5246, section 7.4.1).

use pepscope_path::Random;

use super::bytes::{extension, handshake, with_length_16, words};
use super::{TlsSettings, TlsVersion};

const LEGACY_VERSION: [u8; 2] = [3, 3];
const TLS_1_3: [u8; 2] = [3, 4];
const X25519: u16 = 0x001d;
const AES_128_GCM_SHA256: u16 = 0x1301;
const ECDHE_RSA_AES_128_GCM_SHA256: u16 = 0xc02f;
const RSA_PSS_RSAE_SHA256: u16 = 0x0804;
/// A ticket of OpenSSL: key name, IV, the encrypted session and its MAC.
pub(super) const TICKET_BYTES: usize = 208;

mod kind {
    pub const SERVER_NAME: u16 = 0;
    pub const STATUS_REQUEST: u16 = 5;
    pub const SUPPORTED_GROUPS: u16 = 10;
    pub const EC_POINT_FORMATS: u16 = 11;
    pub const SIGNATURE_ALGORITHMS: u16 = 13;
    pub const ALPN: u16 = 16;
    pub const SIGNED_CERTIFICATE_TIMESTAMP: u16 = 18;
    pub const PADDING: u16 = 21;
    pub const EXTENDED_MAIN_SECRET: u16 = 23;
    pub const SESSION_TICKET: u16 = 35;
    pub const PRE_SHARED_KEY: u16 = 41;
    pub const SUPPORTED_VERSIONS: u16 = 43;
    pub const PSK_KEY_EXCHANGE_MODES: u16 = 45;
    pub const KEY_SHARE: u16 = 51;
    pub const QUIC_TRANSPORT_PARAMETERS: u16 = 57;
    pub const RENEGOTIATION_INFO: u16 = 0xff01;
}

pub(crate) fn random_bytes(random: &mut Random, count: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..count.div_ceil(8)).flat_map(|_| random.bits().to_be_bytes()).collect();
    bytes.truncate(count);
    bytes
}

/// The ClientHello message: at least as long as `settings` say, by padding (RFC 7685).
///
/// Over QUIC it has transport parameters and no session to imitate (RFC 9001, sections 8.2 and 8.4).
pub(crate) fn client_hello(settings: &TlsSettings, random: &mut Random, over_quic: bool) -> Vec<u8> {
    let is_1_3 = settings.version == TlsVersion::Tls13;
    let suites: &[u16] = match (is_1_3, over_quic) {
        (_, true) => &[AES_128_GCM_SHA256, 0x1302, 0x1303],
        (true, false) => &[AES_128_GCM_SHA256, 0x1302, 0x1303, 0xc02b, ECDHE_RSA_AES_128_GCM_SHA256, 0xc02c, 0xc030],
        (false, false) => &[0xc02b, ECDHE_RSA_AES_128_GCM_SHA256, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0x009c, 0x009d],
    };
    let mut start = LEGACY_VERSION.to_vec();
    start.extend(random_bytes(random, 32));
    let session: &[u8] = if over_quic { &[] } else { &settings.session_id };
    start.push(session.len() as u8);
    start.extend(session);
    start.extend(with_length_16(&words(suites)));
    start.extend([1, 0]); // no compression

    let name = settings.server_name.as_bytes();
    let listed_name = [&[0][..], &with_length_16(name)].concat();
    let ticket = if settings.is_resumed { random_bytes(random, TICKET_BYTES) } else { Vec::new() };
    let mut extensions = vec![
        extension(kind::SERVER_NAME, &with_length_16(&listed_name)),
        extension(kind::EXTENDED_MAIN_SECRET, &[]),
        extension(kind::RENEGOTIATION_INFO, &[0]),
        extension(kind::SUPPORTED_GROUPS, &with_length_16(&words(&[X25519, 0x0017, 0x0018]))),
        extension(kind::EC_POINT_FORMATS, &[1, 0]),
        extension(kind::SESSION_TICKET, if is_1_3 { &[] } else { &ticket }),
        extension(kind::ALPN, &protocol_names(settings.protocol.offered())),
        extension(kind::STATUS_REQUEST, &[1, 0, 0, 0, 0]),
        extension(
            kind::SIGNATURE_ALGORITHMS,
            &with_length_16(&words(&[0x0403, RSA_PSS_RSAE_SHA256, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601])),
        ),
        extension(kind::SIGNED_CERTIFICATE_TIMESTAMP, &[]),
    ];
    if is_1_3 {
        let share = [&words(&[X25519])[..], &with_length_16(&random_bytes(random, 32))].concat();
        extensions.push(extension(kind::KEY_SHARE, &with_length_16(&share)));
        extensions.push(extension(kind::PSK_KEY_EXCHANGE_MODES, &[1, 1]));
        let versions: &[u8] = if over_quic { &[2, 3, 4] } else { &[4, 3, 4, 3, 3] };
        extensions.push(extension(kind::SUPPORTED_VERSIONS, versions));
    }
    if over_quic {
        extensions.push(extension(kind::QUIC_TRANSPORT_PARAMETERS, &transport_parameters()));
    }
    let last = if is_1_3 && settings.is_resumed {
        // The identities must come last of all (RFC 8446, section 4.2.11).
        let identity = [&with_length_16(&ticket)[..], &random_bytes(random, 4)].concat();
        let binder = [&[32][..], &random_bytes(random, 32)].concat();
        extension(kind::PRE_SHARED_KEY, &[with_length_16(&identity), with_length_16(&binder)].concat())
    } else {
        Vec::new()
    };
    let message_bytes = 4 + start.len() + 2 + extensions.iter().map(Vec::len).sum::<usize>() + last.len();
    if let Some(missing) = settings.client_hello_bytes.checked_sub(message_bytes + 4) {
        extensions.push(extension(kind::PADDING, &vec![0; missing]));
    }
    extensions.push(last);
    start.extend(with_length_16(&extensions.concat()));
    handshake(1, &start)
}

/// The ServerHello message that answers it.
pub(crate) fn server_hello(settings: &TlsSettings, random: &mut Random, over_quic: bool) -> Vec<u8> {
    let is_1_3 = settings.version == TlsVersion::Tls13;
    let mut start = LEGACY_VERSION.to_vec();
    start.extend(random_bytes(random, 32));
    let session: &[u8] = if over_quic { &[] } else { &settings.session_id };
    start.push(session.len() as u8);
    start.extend(session);
    start.extend(words(&[if is_1_3 { AES_128_GCM_SHA256 } else { ECDHE_RSA_AES_128_GCM_SHA256 }]));
    start.push(0);
    let mut extensions = Vec::new();
    if is_1_3 {
        extensions.push(extension(kind::SUPPORTED_VERSIONS, &TLS_1_3));
        let share = [&words(&[X25519])[..], &with_length_16(&random_bytes(random, 32))].concat();
        extensions.push(extension(kind::KEY_SHARE, &share));
        if settings.is_resumed {
            extensions.push(extension(kind::PRE_SHARED_KEY, &[0, 0]));
        }
    } else {
        extensions.push(extension(kind::RENEGOTIATION_INFO, &[0]));
        extensions.push(extension(kind::EXTENDED_MAIN_SECRET, &[]));
        extensions.push(extension(kind::EC_POINT_FORMATS, &[1, 0]));
        if !settings.is_resumed {
            extensions.push(extension(kind::SESSION_TICKET, &[]));
        }
        extensions.push(extension(kind::ALPN, &protocol_names(settings.protocol.chosen())));
    }
    start.extend(with_length_16(&extensions.concat()));
    handshake(2, &start)
}

/// RFC 7301, section 3.1.
fn protocol_names(names: &[&str]) -> Vec<u8> {
    let listed: Vec<u8> = names.iter().flat_map(|name| [&[name.len() as u8], name.as_bytes()].concat()).collect();
    with_length_16(&listed)
}

/// The length of the EncryptedExtensions message, which names the protocol and accepts the server name.
pub(crate) fn encrypted_extensions_bytes(settings: &TlsSettings) -> u64 {
    let protocol = extension(kind::ALPN, &protocol_names(settings.protocol.chosen()));
    4 + 2 + 4 + protocol.len() as u64
}

/// RFC 9000, section 18: identifiers and values as variable-length integers.
fn transport_parameters() -> Vec<u8> {
    // Idle timeout 30 s; datagrams of 1472 bytes; 1 MiB a connection and stream; 100 streams each way; an empty source
    // connection ID.
    let numbers: [(u8, u32); 8] = [
        (0x01, 30_000),
        (0x03, 1472),
        (0x04, 1 << 20),
        (0x05, 1 << 20),
        (0x06, 1 << 20),
        (0x07, 1 << 20),
        (0x08, 100),
        (0x09, 100),
    ];
    let mut listed: Vec<u8> = numbers
        .iter()
        .flat_map(|(identifier, value)| [&[*identifier, 4][..], &(value | 2 << 30).to_be_bytes()].concat())
        .collect();
    listed.extend([0x0f, 0]);
    listed
}
