//! Requests and answers of protocols that number them.

use pepscope_wire::Datagram;

use super::ReferenceKind;

/// What an answer has in common with its request, within a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Echo { from: [u8; 16], number: u16 },
    Dns(u16),
    Ntp([u8; 8]),
    Stun([u8; 12]),
}

impl Tag {
    pub(super) fn kind(self) -> ReferenceKind {
        match self {
            Tag::Echo { .. } => ReferenceKind::IcmpEcho,
            Tag::Dns(_) => ReferenceKind::Dns,
            Tag::Ntp(_) => ReferenceKind::Ntp,
            Tag::Stun(_) => ReferenceKind::Stun,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Request(Tag),
    Answer(Tag),
    /// Of a known protocol, and neither.
    Other,
    /// Of a protocol that is not known here.
    Unknown,
}

const DNS_PORT: u16 = 53;
const NTP_PORT: u16 = 123;

pub(super) fn message(datagram: &Datagram<'_>) -> Message {
    let ports = [datagram.source_port, datagram.destination_port];
    if ports.contains(&DNS_PORT) {
        dns(datagram.payload)
    } else if ports.contains(&NTP_PORT) {
        ntp(datagram.payload)
    } else {
        stun(datagram.payload)
    }
}

/// RFC 1035, section 4.1.1.
fn dns(payload: &[u8]) -> Message {
    const IS_RESPONSE: u8 = 0x80;
    let Some([id_high, id_low, flags, ..]) = payload.first_chunk::<12>() else { return Message::Other };
    let tag = Tag::Dns(u16::from_be_bytes([*id_high, *id_low]));
    if flags & IS_RESPONSE == 0 {
        Message::Request(tag)
    } else {
        Message::Answer(tag)
    }
}

/// RFC 5905, section 7.3: what a client says it sent at comes back, whatever it is.
fn ntp(payload: &[u8]) -> Message {
    const MODE: u8 = 0x07;
    const CLIENT: u8 = 3;
    const SERVER: u8 = 4;
    const ORIGIN: usize = 24;
    const TRANSMIT: usize = 40;
    let timestamp = |at: usize| payload.get(at..)?.first_chunk::<8>().copied().filter(|bytes| *bytes != [0; 8]);
    match payload.first().map(|flags| flags & MODE) {
        Some(CLIENT) => timestamp(TRANSMIT).map_or(Message::Other, |sent| Message::Request(Tag::Ntp(sent))),
        Some(SERVER) => timestamp(ORIGIN).map_or(Message::Other, |sent| Message::Answer(Tag::Ntp(sent))),
        _ => Message::Other,
    }
}

/// RFC 8489, section 5.
fn stun(payload: &[u8]) -> Message {
    const NO_STUN: u8 = 0xc0;
    const CLASS: [u8; 2] = [0x01, 0x10];
    const COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
    let Some(header) = payload.first_chunk::<20>() else { return Message::Unknown };
    let (Some(cookie), Some(transaction)) = (header[4..].first_chunk::<4>(), header[8..].first_chunk::<12>()) else {
        return Message::Unknown;
    };
    if header[0] & NO_STUN != 0 || *cookie != COOKIE {
        return Message::Unknown;
    }
    match [header[0] & CLASS[0] != 0, header[1] & CLASS[1] != 0] {
        [false, false] => Message::Request(Tag::Stun(*transaction)),
        [true, _] => Message::Answer(Tag::Stun(*transaction)),
        [false, true] => Message::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ntp_answer_repeats_the_transmit_timestamp() {
        let mut request = [0; 48];
        (request[0], request[47]) = (0x23, 9);
        let mut answer = [0; 48];
        (answer[0], answer[31], answer[47]) = (0x24, 9, 77);
        let tag = Tag::Ntp([0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!((ntp(&request), ntp(&answer)), (Message::Request(tag), Message::Answer(tag)));
        assert_eq!((ntp(&request[..47]), ntp(&[0x23; 0])), (Message::Other, Message::Other));
    }

    #[test]
    fn stun_classes_are_told_apart() {
        let with_type = |kind: [u8; 2]| {
            let mut header = vec![kind[0], kind[1], 0, 0, 0x21, 0x12, 0xa4, 0x42];
            header.extend(0..12);
            stun(&header)
        };
        let tag = Tag::Stun([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(with_type([0, 1]), Message::Request(tag));
        assert_eq!(with_type([1, 1]), Message::Answer(tag));
        assert_eq!(with_type([1, 0x11]), Message::Answer(tag));
        assert_eq!(with_type([0, 0x11]), Message::Other);
        assert_eq!(with_type([0x80, 1]), Message::Unknown);
        assert_eq!(stun(&[0; 20]), Message::Unknown);
    }
}
