//! The UMTS dedicated channel: PDCP header compression and RLC acknowledged mode over transport blocks that fail.
//!
//! `pdu` has the units on the radio channel, `segmentation` cuts packets into them, `sender` and `receiver` are the two sides of one
//! RLC entity (3GPP TS 25.322), and `bearer` joins two entities by transport channels, one a direction.
//! docs/models/umts_dch.md describes the model.

mod bearer;
mod pdu;
mod receiver;
mod segmentation;
mod sender;
#[cfg(test)]
mod sender_transcripts;
mod settings;

pub use bearer::DedicatedChannel;
pub use settings::{
    DedicatedChannelSettings, HeaderCompression, PollSettings, RadioLinkControlSettings, StatusFormat,
    TransportChannelSettings,
};
