//! Which packets belong together: the four-tuple of addresses and ports, in either order. Tunnels are left out on
//! purpose: the two directions of a GTP-U user's connection travel under different identifiers and must meet.

use pepscope_wire::segment::Segment;
use pepscope_wire::PlainSegment;

/// Address and port in a form that compares and hashes in a few instructions.
#[derive(Clone, Copy, Debug, Eq)]
pub(crate) struct Endpoint {
    address: [u64; 2],
    port: u16,
}

impl PartialEq for Endpoint {
    /// Number by number: an address that was just put together from two halves is not ready to be read as a whole.
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        let ([high, low], [other_high, other_low]) = (self.address, other.address);
        self.port == other.port && low == other_low && high == other_high
    }
}

impl Endpoint {
    pub(crate) fn new(address: [u8; 16], port: u16) -> Self {
        let whole = u128::from_be_bytes(address);
        Endpoint { address: [(whole >> 64) as u64, whole as u64], port }
    }

    pub(crate) fn address(&self) -> [u8; 16] {
        (u128::from(self.address[0]) << 64 | u128::from(self.address[1])).to_be_bytes()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn hash(&self) -> u64 {
        // The port goes to the top, where IPv4-mapped addresses hold zeros and IPv6 addresses the network prefix.
        folded_product(
            self.address[1] ^ 0x9e37_79b9_7f4a_7c15,
            self.address[0] ^ (u64::from(self.port) << 48) ^ 0xd6e8_feb8_6659_fd93,
        )
    }
}

/// High and low half of a 128-bit product, added without carry: two multiplications' worth of mixing for one.
pub(crate) fn folded_product(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product >> 64) as u64 ^ product as u64
}

/// Both endpoints, the sender of the packet first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) sender: Endpoint,
    pub(crate) receiver: Endpoint,
}

impl Key {
    pub(crate) fn of(segment: &Segment<'_>) -> Self {
        Key {
            sender: Endpoint::new(segment.source, segment.source_port),
            receiver: Endpoint::new(segment.destination, segment.destination_port),
        }
    }

    pub(crate) fn of_plain(segment: &PlainSegment<'_>) -> Self {
        Key {
            sender: Endpoint { address: segment.source, port: segment.source_port },
            receiver: Endpoint { address: segment.destination, port: segment.destination_port },
        }
    }

    /// Same for both directions.
    pub(crate) fn hash(&self) -> u64 {
        let sum = self.sender.hash().wrapping_add(self.receiver.hash());
        folded_product(sum, 0xa076_1d64_78bd_642f)
    }

    /// Eight cheap bits, the same for both directions, in which a few connections hardly ever agree.
    #[inline]
    pub(crate) fn hint(&self) -> u8 {
        let ports = u64::from(self.sender.port ^ self.receiver.port);
        let both = self.sender.address[1] ^ self.receiver.address[1] ^ (ports << 32);
        (both.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }

    /// 0 where `other` runs the same way, 1 where it runs the other way, `None` where it is another connection's.
    #[inline]
    pub(crate) fn side_of(&self, other: &Key) -> Option<usize> {
        if self.sender == other.sender && self.receiver == other.receiver {
            Some(0)
        } else if self.sender == other.receiver && self.receiver == other.sender {
            Some(1)
        } else {
            None
        }
    }
}
