//! What carries a flow.

use pepscope_tcp::DatagramTransport;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A connection that the mobile opens.
    Tcp {
        /// Only once an application needs it.
        when_needed: bool,
    },
    Datagrams(DatagramTransport),
}

impl Transport {
    pub(crate) fn is_tcp(self) -> bool {
        matches!(self, Self::Tcp { .. })
    }
}
