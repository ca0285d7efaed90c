//! Protocols over datagrams: what they write leaves as it is, one datagram a write, and nothing repairs losses but they
//! themselves.

use pepscope_path::{Nanoseconds, NEVER};

use super::{Host, HostError, Role};
use crate::applications::application::{Action, Protocol};
use crate::applications::streams::Streams;
use crate::packets::packet::{DatagramPacket, DatagramTransport, Packet};
use crate::packets::segment::ContentId;

/// The longest payload of one datagram: a UDP datagram that fills an IPv4 packet.
const MOST_PAYLOAD_BYTES: u64 = 65_507;

/// One end of a flow of datagrams.
#[derive(Debug)]
pub struct DatagramFlowSettings {
    /// The number of the flow, the same at both ends, of no flow of TCP, and below [`crate::FLOW_LIMIT`].
    pub flow: u32,
    pub user: u16,
    pub transport: DatagramTransport,
    pub role: Role,
    /// When a client begins.
    pub start_ns: Nanoseconds,
    pub time_to_live: u8,
    pub protocol: Box<dyn Protocol>,
    pub streams: Streams,
    /// The stream that its datagrams are cut from.
    pub content: ContentId,
}

/// What became of one end of a flow of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramFlowResult {
    pub flow: u32,
    pub user: u16,
    pub transport: DatagramTransport,
    pub sent_datagrams: u64,
    pub sent_bytes: u64,
    pub received_datagrams: u64,
    pub received_bytes: u64,
    /// The protocol closed.
    pub ended_ns: Option<Nanoseconds>,
}

#[derive(Debug)]
pub(super) struct DatagramFlow {
    settings: DatagramFlowSettings,
    result: DatagramFlowResult,
    start_ns: Nanoseconds,
    identification: u16,
}

impl DatagramFlow {
    /// What the protocol has to send now.
    fn poll(&mut self, now: Nanoseconds, leaving: &mut impl Extend<Packet>) {
        while self.result.ended_ns.is_none() {
            match self.settings.protocol.poll_action(now) {
                Some(Action::Write(write)) => {
                    let bytes = write.bytes();
                    if bytes == 0 || bytes > MOST_PAYLOAD_BYTES {
                        continue;
                    }
                    let (content_offset, bytes) = self.settings.streams.append(now, self.settings.content, write);
                    self.result.sent_datagrams += 1;
                    self.result.sent_bytes += bytes;
                    self.identification = self.identification.wrapping_add(1);
                    leaving.extend([Packet::Datagram(DatagramPacket {
                        flow: self.result.flow,
                        user: self.result.user,
                        transport: self.result.transport,
                        payload_bytes: bytes as u16,
                        content: self.settings.content,
                        content_offset,
                        ip_identification: self.identification,
                        time_to_live: self.settings.time_to_live,
                    })]);
                }
                Some(Action::Wake { .. }) => {}
                Some(Action::Close | Action::Abort) => self.result.ended_ns = Some(now),
                None => break,
            }
        }
    }

    fn next_time(&self) -> Nanoseconds {
        if self.result.ended_ns.is_some() {
            return NEVER;
        }
        self.start_ns.min(self.settings.protocol.poll_timeout())
    }

    fn counts_as_open(&self) -> bool {
        self.settings.role == Role::Client && self.result.ended_ns.is_none()
    }
}

impl Host {
    /// Adds one end of a flow of datagrams. A run goes on until the client's protocol closes.
    ///
    /// # Errors
    /// The flow's number is taken or too large.
    pub fn add_datagram_flow(&mut self, settings: DatagramFlowSettings) -> Result<(), HostError> {
        let flow = settings.flow;
        if self.places.get(flow).is_some() || self.datagram_places.get(flow).is_some() {
            return Err(HostError::FlowTaken { flow });
        }
        let place = self.datagram_flows.len();
        self.datagram_places.get_or_make(flow, || place).ok_or(HostError::FlowOutOfRange { flow })?;
        let start_ns = if settings.role == Role::Client { settings.start_ns } else { NEVER };
        let result = DatagramFlowResult {
            flow,
            user: settings.user,
            transport: settings.transport,
            sent_datagrams: 0,
            sent_bytes: 0,
            received_datagrams: 0,
            received_bytes: 0,
            ended_ns: None,
        };
        let added = DatagramFlow { settings, result, start_ns, identification: flow.wrapping_mul(40_503) as u16 };
        self.open_flows += usize::from(added.counts_as_open());
        self.datagram_times.reserve(place + 1);
        self.datagram_times.set(place, added.next_time());
        self.datagram_flows.push(added);
        Ok(())
    }

    /// What became of each flow of datagrams, in the order in which they were added.
    pub fn datagram_flows(&self) -> impl Iterator<Item = DatagramFlowResult> + '_ {
        self.datagram_flows.iter().map(|flow| flow.result)
    }

    pub(super) fn take_datagram(&mut self, now: Nanoseconds, datagram: &DatagramPacket) {
        let Some(place) = self.datagram_places.get(datagram.flow).copied() else {
            self.stray_packets += 1;
            return;
        };
        let flow = &mut self.datagram_flows[place];
        flow.result.received_datagrams += 1;
        flow.result.received_bytes += u64::from(datagram.payload_bytes);
        let end = datagram.content_offset + u64::from(datagram.payload_bytes);
        if let Some(message) = flow.settings.streams.message_at(now, datagram.content, end) {
            if flow.result.ended_ns.is_none() {
                flow.settings.protocol.handle_message(now, message);
            }
        }
        self.go_on(now, place);
    }

    pub(super) fn handle_datagram_timeouts(&mut self, now: Nanoseconds) {
        while let Some(place) = self.datagram_times.due(now) {
            let flow = &mut self.datagram_flows[place];
            if flow.start_ns <= now {
                flow.start_ns = NEVER;
                flow.settings.protocol.handle_connected(now);
            }
            if flow.settings.protocol.poll_timeout() <= now {
                flow.settings.protocol.handle_timeout(now);
            }
            self.go_on(now, place);
        }
    }

    fn go_on(&mut self, now: Nanoseconds, place: usize) {
        let flow = &mut self.datagram_flows[place];
        let was_open = flow.counts_as_open();
        flow.poll(now, &mut self.leaving);
        self.open_flows -= usize::from(was_open && !flow.counts_as_open());
        self.datagram_times.set(place, flow.next_time());
    }
}
