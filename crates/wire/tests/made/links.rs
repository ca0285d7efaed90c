//! Packets behind every link header.

use super::frames::ethernet;

/// Link types that carry an EtherType; the others carry IP alone.
pub const LINKS_WITH_ETHER_TYPE: [u16; 19] =
    [1, 10, 50, 104, 105, 113, 119, 127, 149, 163, 192, 197, 242, 258, 276, 281, 282, 284, 285];
/// Link types that carry IP alone.
pub const LINKS_FOR_IP: [u16; 16] = [0, 7, 9, 12, 14, 51, 101, 108, 109, 117, 129, 204, 226, 228, 229, 239];

pub fn snap(ether_type: u16) -> Vec<u8> {
    [&[0xaa, 0xaa, 3, 0, 0, 0], &ether_type.to_be_bytes()[..]].concat()
}

/// A payload with its EtherType behind the header of a link type.
pub fn link_frame(link_type: u16, ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let kind = ether_type.to_be_bytes();
    let ipv4 = ether_type == 0x0800;
    let ppp: &[u8] = if ipv4 { &[0, 0x21] } else { &[0, 0x57] };
    match link_type {
        0 => [&u32::to_le_bytes(if ipv4 { 2 } else { 30 })[..], payload].concat(),
        108 => [&u32::to_be_bytes(if ipv4 { 2 } else { 24 })[..], payload].concat(),
        1 => ethernet(ether_type, payload),
        9 => [&[0xff, 3], ppp, payload].concat(),
        50 | 104 => [&[0x0f, 0], &kind[..], payload].concat(),
        51 => {
            let length = (ppp.len() + payload.len()) as u16;
            [&[0x11, 0, 0, 1], &length.to_be_bytes()[..], ppp, payload].concat()
        }
        113 => [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], &kind[..], payload].concat(),
        276 => [&kind[..], &[0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], payload].concat(),
        105 => wireless(0x88, 0x03, &[0; 8], &[&snap(ether_type)[..], payload].concat()),
        127 => {
            // Timer and flags present; the flags announce padding of the 26-byte header to 28.
            let radiotap = [0, 0, 17, 0, 3, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x20];
            let frame = wireless(0x88, 0x01, &[0; 4], &[&snap(ether_type)[..], payload].concat());
            [&radiotap[..], &frame].concat()
        }
        10 => {
            let header = [0x54, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
            [&header, &snap(ether_type)[..], payload].concat()
        }
        7 => [&[1, 2, if ipv4 { 212 } else { 196 }, 0, 0, 9], payload].concat(),
        129 => [&[1, 2, 0, 0, if ipv4 { 212 } else { 196 }, 0, 0, 9], payload].concat(),
        242 => [&[0; 40], &kind[..], &[0, 0], payload].concat(),
        239 => {
            // A packet header, a prefix of three letters with padding, the packet.
            let head = [if ipv4 { 2 } else { 10 }, 0, 0, 5, 8, 0, 1, 0, kind[0], kind[1], 1, 0];
            let prefix = [7, 0, 10, 0, b'a', b'b', 0, 0];
            [&head[..], &prefix, &(payload.len() as u16 + 4).to_le_bytes(), &[9, 0], payload].concat()
        }
        149 | 258 => [&pktap(1)[..], &ethernet(ether_type, payload)].concat(),
        109 => [&u32::to_le_bytes(if ipv4 { 2 } else { 28 })[..], &[0, 0, 0, 9, 0, 0, 0, 0], payload].concat(),
        117 => [&[61, if ipv4 { 2 } else { 24 }][..], &[0; 62], payload].concat(),
        204 => [&[1][..], &link_frame(9, ether_type, payload)].concat(),
        226 => [&[1, if ipv4 { 2 } else { 26 }][..], &[0; 22], payload].concat(),
        119 => capture_header(&[0x44u32.to_le_bytes(), 144u32.to_le_bytes()].concat(), 144, ether_type, payload),
        163 => capture_header(&[0x8021_1001u32.to_be_bytes(), 64u32.to_be_bytes()].concat(), 64, ether_type, payload),
        192 => capture_header(&[0, 0, 32, 0, 105, 0, 0, 0], 32, ether_type, payload),
        197 => {
            // A time, Ethernet with a further header behind which another one follows, lengths, and padding.
            let head = [[1; 8], [0x82, 4, 0, 0, 0, 0, 0, 0], [0x83, 0, 0, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0, 0]];
            [&head.concat()[..], &[0, 0], &ethernet(ether_type, payload)].concat()
        }
        282 => [&[0, 0, 0, 2], &ethernet(ether_type, payload)[..]].concat(),
        281 | 284 | 285 => {
            let frame = ethernet(ether_type, payload);
            let tag = if link_type == 285 { &[0xda, 0xda, 0, 0, 0xc0, 0x18, 0, 0][..] } else { &[0xc0, 0x18, 0, 0] };
            [&frame[..12], tag, &frame[12..]].concat()
        }
        _ => payload.to_vec(),
    }
}

/// An 802.11 frame behind a header of `bytes` that begins as given.
fn capture_header(start: &[u8], bytes: usize, ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = start.to_vec();
    out.resize(bytes, 0);
    [out, link_frame(105, ether_type, payload)].concat()
}

/// A PKTAP header of 112 bytes that announces a link type.
pub fn pktap(link_type: u32) -> Vec<u8> {
    let mut out = [112, 1, link_type].map(u32::to_le_bytes).concat();
    out.extend(b"en0");
    out.resize(112, 0);
    out
}

/// An 802.11 frame: control and flag bytes, what follows the 24 bytes that all have, and the body.
pub fn wireless(control: u8, flags: u8, more_header: &[u8], body: &[u8]) -> Vec<u8> {
    let mut out = vec![control, flags];
    out.extend([0; 22]);
    out.extend(more_header);
    out.extend(body);
    out
}
