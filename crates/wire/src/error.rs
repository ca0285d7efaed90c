//! What can go wrong with a capture: reasons not to start, damage on the way, frames that are no TCP segment.

use std::fmt;

use crate::files::other_kinds::kind_of;

/// Why a capture cannot be read at all; `Display` is one sentence.
#[derive(Debug)]
pub enum CaptureError {
    /// The file cannot be opened.
    Open { name: String, cause: String },
    /// The first bytes cannot be read or decompressed.
    Read { name: String, cause: String },
    /// There is not one byte.
    Empty { name: String },
    /// The content ends before the file header does.
    ShortHeader { name: String, bytes: usize },
    /// The first bytes belong to no capture format that is known here.
    UnknownKind { name: String, first_bytes: Vec<u8> },
    /// The file header contradicts itself.
    BadHeader { name: String, cause: String },
}

impl fmt::Display for CaptureError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { name, cause } if name.is_empty() => out.write_str(cause),
            Self::Open { name, cause } => write!(out, "cannot open {name}: {cause}"),
            Self::Read { name, cause } => write!(out, "cannot read {name}: {cause}"),
            Self::Empty { name } => write!(out, "{name} is empty: it has not even a file header"),
            Self::ShortHeader { name, bytes } => {
                write!(out, "{name} ends after {bytes} bytes, within its file header")
            }
            Self::UnknownKind { name, first_bytes } => {
                const SHOWN_BYTES: usize = 8;
                write!(out, "{name} is neither pcap nor pcapng nor snoop")?;
                if let Some(kind) = kind_of(first_bytes) {
                    return write!(out, ", but {kind}");
                }
                write!(out, ", plain or compressed by gzip, zstd, xz, bzip2 or lz4: it begins with")?;
                first_bytes.iter().take(SHOWN_BYTES).try_for_each(|byte| write!(out, " {byte:02x}"))?;
                write!(out, "; `editcap -F pcapng FILE NEW` converts what Wireshark can read")
            }
            Self::BadHeader { name, cause } => write!(out, "{name} has a broken file header: {cause}"),
        }
    }
}

impl std::error::Error for CaptureError {}

/// Where and how a capture broke off (a truncated file, say); everything before it was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset in the (decompressed) capture of the record that could not be read.
    pub byte_offset: u64,
    /// What is wrong there, as the end of a sentence that names the place.
    pub cause: String,
}

/// Why a frame yields no TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reject {
    /// This decoder does not know the link-layer type.
    UnknownLinkType,
    /// No IP inside (ARP, LLDP, 802.11 management, ...).
    NotIp,
    /// IP, but no TCP inside.
    NotTcp,
    /// The snap length cut it before the end of the TCP window field.
    CutShort,
    /// Lengths or versions contradict each other.
    Malformed,
    /// More nested headers than any real frame has.
    TooDeep,
    /// Link-layer encryption.
    Encrypted,
    /// Stored until the other fragments of its datagram arrive.
    FragmentHeld,
}
