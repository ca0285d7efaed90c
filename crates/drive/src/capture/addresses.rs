//! Which addresses and ports the flows of a simulation have at a tap.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Address and port of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub address: IpAddr,
    pub port: u16,
}

/// Both ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    pub server: Endpoint,
    pub mobile: Endpoint,
}

/// What a flow is, as far as addresses go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    Tcp {
        flow: u32,
        version_6: bool,
    },
    /// Datagrams of a protocol over IPv4; `has_ports` where UDP carries them.
    Datagrams {
        flow: u32,
        has_ports: bool,
    },
    Voice,
    Report,
}

/// A translation between the tap and the mobiles: all of them appear under one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    /// Replaces mobiles' addresses of its own IP version.
    pub address: IpAddr,
    pub ports: TranslatedPorts,
}

/// Which ports a translation shows (RFC 4787, section 4.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranslatedPorts {
    /// Flow 0 appears from this port, flow n from the nth behind it.
    CountedFrom(u16),
    /// The mobiles' own: port preservation.
    Kept,
}

const FIRST_MOBILE: u32 = 0x0a2d_0002; // 10.45.0.2
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 10);
const SERVER_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x113, 0, 0, 0, 0, 0x10);
const BASE_STATION: Ipv4Addr = Ipv4Addr::new(10, 44, 0, 1);
const PROXY: Ipv4Addr = Ipv4Addr::new(10, 44, 0, 2);
const FIRST_CLIENT_PORT: u16 = 40_000;
const VOICE_PORT: u16 = 16_384;
const REPORT_PORT: u16 = 31_000;
/// The port of flows that are given no other.
pub const DEFAULT_SERVER_PORT: u16 = 5001;

/// The addresses of one tap: servers and mobiles in documentation and private ranges, ports by flow.
#[derive(Clone, Debug, Default)]
pub struct AddressBook {
    server_ports: Vec<u16>,
    server_numbers: Vec<u16>,
    translation: Option<Translation>,
}

impl AddressBook {
    /// `server_ports[n]` is where flow n goes; `translation` stands between this tap and the mobiles.
    #[must_use]
    pub fn new(server_ports: Vec<u16>, translation: Option<Translation>) -> Self {
        Self { server_ports, server_numbers: Vec::new(), translation }
    }

    /// `numbers[n]` is the number of flow n's server, which is added to the first one's address; 0 for flows behind the
    /// list.
    #[must_use]
    pub fn with_servers(mut self, numbers: Vec<u16>) -> Self {
        self.server_numbers = numbers;
        self
    }

    fn server(&self, flow: u32) -> (Ipv4Addr, Ipv6Addr) {
        let number = self.server_numbers.get(flow as usize).copied().unwrap_or(0);
        let version_4 = Ipv4Addr::from(u32::from(SERVER) + u32::from(number));
        (version_4, Ipv6Addr::from(u128::from(SERVER_6) + u128::from(number)))
    }

    /// Server and mobile ends of a flow of mobile `user`.
    #[must_use]
    pub fn ends(&self, kind: FlowKind, user: u16) -> Ends {
        let mobile = IpAddr::V4(Ipv4Addr::from(FIRST_MOBILE + u32::from(user)));
        let ends = match kind {
            FlowKind::Tcp { flow, version_6 } => {
                let server_port = self.server_ports.get(flow as usize).copied().unwrap_or(DEFAULT_SERVER_PORT);
                let (server, mobile) = if version_6 {
                    let mobile = Ipv6Addr::new(0x2001, 0xdb8, 0x45, 0, 0, 0, 0, user.wrapping_add(2));
                    (IpAddr::V6(self.server(flow).1), IpAddr::V6(mobile))
                } else {
                    (IpAddr::V4(self.server(flow).0), mobile)
                };
                let client_port = port_from(FIRST_CLIENT_PORT, flow);
                Ends {
                    server: Endpoint { address: server, port: server_port },
                    mobile: Endpoint { address: mobile, port: client_port },
                }
            }
            FlowKind::Datagrams { flow, has_ports } => {
                let server_port = self.server_ports.get(flow as usize).copied().unwrap_or(DEFAULT_SERVER_PORT);
                let ports = if has_ports { (server_port, port_from(FIRST_CLIENT_PORT, flow)) } else { (0, 0) };
                let server = IpAddr::V4(self.server(flow).0);
                Ends {
                    server: Endpoint { address: server, port: ports.0 },
                    mobile: Endpoint { address: mobile, port: ports.1 },
                }
            }
            FlowKind::Voice => Ends {
                server: Endpoint { address: IpAddr::V4(SERVER), port: VOICE_PORT },
                mobile: Endpoint { address: mobile, port: VOICE_PORT },
            },
            FlowKind::Report => {
                return Ends {
                    server: Endpoint { address: IpAddr::V4(PROXY), port: REPORT_PORT },
                    mobile: Endpoint { address: IpAddr::V4(BASE_STATION), port: REPORT_PORT },
                }
            }
        };
        match self.translation {
            Some(translation) if translation.address.is_ipv4() == ends.mobile.address.is_ipv4() => {
                let number = match kind {
                    FlowKind::Datagrams { has_ports: false, .. } => {
                        return Ends { mobile: Endpoint { address: translation.address, port: 0 }, ..ends }
                    }
                    FlowKind::Tcp { flow, .. } | FlowKind::Datagrams { flow, .. } => flow,
                    FlowKind::Voice | FlowKind::Report => u32::from(user),
                };
                let port = match translation.ports {
                    TranslatedPorts::CountedFrom(first) => port_from(first, number),
                    TranslatedPorts::Kept => ends.mobile.port,
                };
                Ends { mobile: Endpoint { address: translation.address, port }, ..ends }
            }
            _ => ends,
        }
    }
}

/// The nth port from `first` on, staying within `first` .. 65535.
fn port_from(first: u16, number: u32) -> u16 {
    let span = u32::from(u16::MAX - first) + 1;
    first + (number % span) as u16
}

#[cfg(test)]
mod tests {
    use super::{AddressBook, FlowKind, TranslatedPorts, Translation};
    use std::net::{IpAddr, Ipv4Addr};

    const FLOW: FlowKind = FlowKind::Tcp { flow: 3, version_6: false };

    #[test]
    fn translation_hides_the_mobile_and_nothing_else() {
        let plain = AddressBook::new(vec![80; 4], None).ends(FLOW, 1);
        let address = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
        let translated =
            AddressBook::new(vec![80; 4], Some(Translation { address, ports: TranslatedPorts::CountedFrom(2000) }))
                .ends(FLOW, 1);
        assert_eq!(translated.server, plain.server);
        assert_eq!((translated.mobile.address, translated.mobile.port), (address, 2003));
        assert_ne!(plain.mobile.address, address);
    }

    #[test]
    fn kept_ports_are_the_mobiles_own() {
        let plain = AddressBook::new(Vec::new(), None);
        let address = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
        let kept = AddressBook::new(Vec::new(), Some(Translation { address, ports: TranslatedPorts::Kept }));
        let kinds = [FLOW, FlowKind::Datagrams { flow: 4, has_ports: true }, FlowKind::Voice];
        for (user, kind) in (1..).zip(kinds) {
            let (plain, kept) = (plain.ends(kind, user), kept.ends(kind, user));
            assert_eq!((kept.mobile.address, kept.mobile.port), (address, plain.mobile.port));
        }
        assert_eq!(kept.ends(FlowKind::Datagrams { flow: 4, has_ports: false }, 1).mobile.port, 0);
    }

    #[test]
    fn another_version_passes_untranslated() {
        let address = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
        let book =
            AddressBook::new(Vec::new(), Some(Translation { address, ports: TranslatedPorts::CountedFrom(2000) }));
        let kind = FlowKind::Tcp { flow: 0, version_6: true };
        assert_eq!(book.ends(kind, 0), AddressBook::default().ends(kind, 0));
    }

    #[test]
    fn ports_stay_ports_for_any_number_of_flows() {
        for flow in [25_535, 25_536, u32::MAX] {
            let ends = AddressBook::default().ends(FlowKind::Tcp { flow, version_6: false }, 0);
            assert!(ends.mobile.port >= 40_000);
        }
    }
}
